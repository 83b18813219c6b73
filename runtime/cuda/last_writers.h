// The C interface between the runtime and the part compiled by nvcc (last_writers.cu). Plain types only.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Who writes last. places[i] of `elements`: where element i writes; what is not below `target`, such as
/// KELPIE_WRITES_NOWHERE: nowhere. writers[p] of `target` becomes the greatest i with places[i] == p, and
/// where there is none `fill`; or, with `onto`, the greatest of these and of what it held. `counted`: null,
/// or where the device has the number of elements, which is no greater. Nothing is done once the word of 64
/// bits at `error` is not 0. Call with `scratch` null to learn how many bytes it needs, or an error where the
/// device has too little shared memory; then again. At least one element, fewer than 2^31; target from 1 to
/// 2^32 - 2^16. Does not wait. Returns 0 or a CUDA error.
#define KELPIE_WRITES_NOWHERE 0xffffffffu
int kelpie_last_writers(const uint32_t* places, int64_t elements, const int64_t* counted, int64_t* writers,
                        int64_t target, int onto, int64_t fill, const void* error, void* scratch,
                        uint64_t* scratchBytes, void* stream);

#ifdef __cplusplus
}
#endif
