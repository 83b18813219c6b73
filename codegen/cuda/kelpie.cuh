// Everything that generated kernels use.
#pragma once

#include "compact.cuh"
#include "integer_division.cuh"
#include "records.cuh"
#include "recursion.cuh"
#include "reduce.cuh"
#include "scan.cuh"
#include "segment_columns.cuh"
#include "segment_groups.cuh"
#include "segment_heads.cuh"
#include "segment_keys.cuh"
#include "segment_numbers.cuh"
#include "segment_ranks.cuh"
#include "segment_reduce.cuh"
#include "segment_rows.cuh"
#include "segments.cuh"
#include "transposed_tile.cuh"
