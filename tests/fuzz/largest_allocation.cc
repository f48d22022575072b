// Counts allocations: with a sanitizer by its hooks, else by operator new.

#include "tests/fuzz/largest_allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GOSSAMER_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GOSSAMER_SANITIZED
#endif
#ifdef GOSSAMER_SANITIZED
// The declaration of sanitizer/allocator_interface.h, which clang has and gcc
// has not.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, size_t),
    void (*free_hook)(const volatile void*));
#endif

namespace gossamer::fuzz {
namespace {

std::atomic<size_t> largest = 0;

void Note(size_t size) {
  size_t known = largest.load(std::memory_order_relaxed);
  while (size > known && !largest.compare_exchange_weak(known, size)) {
  }
}

#ifdef GOSSAMER_SANITIZED
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t size) { Note(size); },
    [](const volatile void*) {});
#endif

}  // namespace

size_t LargestAllocation() { return largest; }
void ResetLargestAllocation() { largest = 0; }

#ifndef GOSSAMER_SANITIZED
void* Allocate(size_t size) {
  Note(size);
  void* p = std::malloc(size == 0 ? 1 : size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
#endif

}  // namespace gossamer::fuzz

#ifndef GOSSAMER_SANITIZED
// All other forms end in these, except those for large alignments.
void* operator new(size_t size) { return gossamer::fuzz::Allocate(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif
