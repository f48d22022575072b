// The allocator's settings for a process that moves megabytes every round.
//
// This header knows nothing of what is allocated.

#ifndef GOSSAMER_RUNTIME_BASE_ALLOCATOR_H_
#define GOSSAMER_RUNTIME_BASE_ALLOCATOR_H_

namespace gossamer {

// Keeps up to 64 MiB of freed memory for the next allocation.  By default glibc
// returns most of it to the kernel and asks for it again a moment later, at the
// cost of a page fault and a cleared page every 4 KiB.  Called by main(),
// before threads start.
void KeepFreedMemory();

// Returns all freed memory to the kernel, also what is kept for the next
// allocation.  Takes milliseconds, in which threads that allocate wait.
void GiveBackFreedMemory();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_ALLOCATOR_H_
