// The C interface between the runtime and the part compiled by nvcc (grade_cub.cu). Plain types only.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// order[e] = position in its segment of the element that comes e-th, stable and ascending; NaN after all
/// numbers, -0.0 equal to 0.0. sorted[e] = the e-th key, no float. ranks: of each element, as
/// which of its segment it comes.
/// Those are null that are not wanted. `kind` of the keys: 1 bytes, 2 int32, 3 int64, 4 float32, 5 float64.
/// Segments are offsets[0..segments] when `offsets` is not null, `length` elements each when length > 0,
/// otherwise one. `failure`: null, or where the device has a word of 64 bits; once it is not 0, offsets hold
/// anything, and nothing is sorted. Call with `scratch` null to learn how many bytes it needs; then again.
/// Fewer than 2^31 elements. Returns 0 or a CUDA error. The second call may wait for the device, to learn
/// which bits the keys differ in and how long segments are: from KELPIE_CUB_LOOKS elements on; and whether
/// any segment was long, where more than KELPIE_CUB_FEW have segments of different lengths. *waits: how often
/// it has.
#define KELPIE_CUB_LOOKS (1 << 16)
#define KELPIE_CUB_FEW (1 << 12)
int kelpie_cub_grade(int kind, const void* keys, int64_t* order, void* sorted, int64_t* ranks,
                     int64_t elements, int64_t segments, const int64_t* offsets, int64_t length,
                     const void* failure, void* scratch, uint64_t* scratchBytes, void* stream, int* waits);

#ifdef __cplusplus
}
#endif
