#include "gan_models/graph_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>

namespace gossamer {
namespace {

// By its virtual functions alone: its library is open wherever there is a
// CUDA device, and never linked.
c10::cuda::CUDACachingAllocator::CUDAAllocator& Allocator() {
  return *static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator*>(
      c10::GetAllocator(c10::DeviceType::CUDA));
}

// torch numbers its own graphs from 1.
uint64_t NextId() {
  static std::atomic<uint64_t> next = uint64_t{1} << 32;
  return next++;
}

c10::MempoolId_t PoolOf(uint64_t id) { return {id, 0}; }

}  // namespace

void GraphMemory::GiveBackUnused() { Allocator().emptyCache(); }

GraphMemory::GraphMemory(int device, DeviceStream* stream)
    : device_(device), id_(NextId()) {
  Allocator().beginAllocateToPool(
      static_cast<c10::DeviceIndex>(device_), PoolOf(id_),
      [stream](cudaStream_t of) {
        return of == reinterpret_cast<cudaStream_t>(stream);
      });
}

void GraphMemory::End() {
  if (ended_) return;
  ended_ = true;
  Allocator().endAllocateToPool(static_cast<c10::DeviceIndex>(device_),
                                PoolOf(id_));
}

GraphMemory::~GraphMemory() {
  End();
  Allocator().releasePool(static_cast<c10::DeviceIndex>(device_), PoolOf(id_));
}

}  // namespace gossamer
