// How a process that moves megabytes every round wants its allocator.
//
// Knows nothing of what is allocated.

#ifndef GOSSAMER_RUNTIME_BASE_ALLOCATOR_H_
#define GOSSAMER_RUNTIME_BASE_ALLOCATOR_H_

namespace gossamer {

// Keeps up to 64 MiB of freed memory for the next allocation.  By default glibc
// hands most of it back and takes it again a moment later, a page fault and a
// cleared page every 4 KiB.  For main(), before threads start.
void KeepFreedMemory();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_ALLOCATOR_H_
