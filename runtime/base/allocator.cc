#include "runtime/base/allocator.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace gossamer {

void KeepFreedMemory() {
#if defined(__GLIBC__)
  // Setting one of the two turns off glibc's own adjustment of both, so both
  // are set.
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc accepts
#endif
}

void GiveBackFreedMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace gossamer
