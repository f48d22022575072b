#include "runtime/transport/nccl/cuda_nccl_device.h"

#include <cstring>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Memory is taken in such steps: payloads of an edge differ by little.
constexpr size_t kStep = size_t{64} << 10;

// Blocks by their sizes.
using Blocks = std::multimap<size_t, void*>;

}  // namespace

// The stream, and the memory that is in no use.
//
// All work on a block is on this stream, so a block that is given back may be
// taken again at once: work of before is done before.  The host writes to
// staged blocks outside of that order, which is why those are kept until the
// stream is idle.
struct CudaNcclDevice::Memory {
  Memory(const DeviceCalls& c, int i) : calls(c), index(i) {}
  // Errors have nobody left to go to.
  ~Memory() {
    if (stream == nullptr) return;
    calls.use(index);
    MutexLock lock(&mu);
    for (const auto& [bytes, block] : device) calls.release(block);
    for (const auto& [bytes, block] : pinned) calls.release_pinned(block);
    calls.destroy_stream(stream);
  }

  // A block of the kind, or null and the reason.
  void* Take(Blocks Memory::*kind,
             const char* (*allocate)(size_t bytes, void** memory),
             size_t* bytes, const char** why) {
    *bytes = (*bytes / kStep + 1) * kStep;
    {
      MutexLock lock(&mu);
      const auto fit = (this->*kind).lower_bound(*bytes);
      if (fit != (this->*kind).end() && fit->first <= 2 * *bytes) {
        *bytes = fit->first;
        void* const block = fit->second;
        (this->*kind).erase(fit);
        return block;
      }
    }
    void* block = nullptr;
    *why = allocate(*bytes, &block);
    return *why == nullptr ? block : nullptr;
  }
  void GiveBack(Blocks Memory::*kind, size_t bytes, void* block) {
    MutexLock lock(&mu);
    (this->*kind).emplace(bytes, block);
  }

  const DeviceCalls& calls;
  const int index;
  DeviceStream* stream = nullptr;
  Mutex mu;
  Blocks device ABSL_GUARDED_BY(mu);
  Blocks pinned ABSL_GUARDED_BY(mu);
};

absl::StatusOr<std::unique_ptr<CudaNcclDevice>> CudaNcclDevice::Open(
    const DeviceCalls& calls, int index) {
  const auto memory = std::make_shared<Memory>(calls, index);
  std::unique_ptr<CudaNcclDevice> made(new CudaNcclDevice(memory));
  GOSSAMER_RETURN_IF_ERROR(made->Use());
  GOSSAMER_RETURN_IF_ERROR(
      made->Check("no stream", calls.create_stream(&memory->stream)));
  return made;
}

CudaNcclDevice::~CudaNcclDevice() {
  if (end_ != nullptr) memory_->calls.destroy_event(end_);
  if (memory_->stream == nullptr) return;
  // Copies of staged bodies may be under way.
  memory_->calls.use(memory_->index);
  memory_->calls.synchronize(memory_->stream);
}

absl::Status CudaNcclDevice::Check(const char* what, const char* why) const {
  if (why == nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cuda:", memory_->index, ": ", what, ": ", why));
}

void* CudaNcclDevice::stream() { return memory_->stream; }

absl::Status CudaNcclDevice::Use() {
  return Check("use", memory_->calls.use(memory_->index));
}

absl::StatusOr<std::shared_ptr<void>> CudaNcclDevice::Allocate(size_t bytes) {
  GOSSAMER_RETURN_IF_ERROR(Use());
  const char* why = nullptr;
  void* const block =
      memory_->Take(&Memory::device, memory_->calls.allocate, &bytes, &why);
  if (block == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cuda:%d: %.1f MB of device memory for NCCL: %s",
                        memory_->index, static_cast<double>(bytes) / 1e6, why));
  }
  return std::shared_ptr<void>(block, [memory = memory_, bytes](void* p) {
    memory->GiveBack(&Memory::device, bytes, p);
  });
}

absl::StatusOr<std::shared_ptr<std::byte[]>> CudaNcclDevice::AllocateHost(
    size_t bytes) {
  GOSSAMER_RETURN_IF_ERROR(Use());
  const char* why = nullptr;
  void* const block = memory_->Take(
      &Memory::pinned, memory_->calls.allocate_pinned, &bytes, &why);
  if (block == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cuda:%d: %.1f MB of pinned memory for NCCL: %s",
                        memory_->index, static_cast<double>(bytes) / 1e6, why));
  }
  return std::shared_ptr<std::byte[]>(
      static_cast<std::byte*>(block), [memory = memory_, bytes](std::byte* p) {
        memory->GiveBack(&Memory::pinned, bytes, p);
      });
}

absl::Status CudaNcclDevice::Enqueue(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  GOSSAMER_RETURN_IF_ERROR(Use());
  if (end_ != nullptr)
    memory_->calls.destroy_event(std::exchange(end_, nullptr));
  return Check("copy", memory_->calls.copy(memory_->stream, to, from, bytes));
}

// A copy from memory that is not pinned would wait for the stream.
absl::Status CudaNcclDevice::CopyIn(void* to, std::span<const std::byte> from) {
  if (from.empty()) return absl::OkStatus();
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<std::byte[]> staged,
                            AllocateHost(from.size()));
  std::memcpy(staged.get(), from.data(), from.size());
  staged_.push_back(staged);
  return Enqueue(to, staged.get(), from.size());
}

absl::Status CudaNcclDevice::CopyOut(std::span<std::byte> to,
                                     const void* from) {
  return Enqueue(to.data(), from, to.size());
}

absl::StatusOr<bool> CudaNcclDevice::Idle() {
  const DeviceCalls& calls = memory_->calls;
  GOSSAMER_RETURN_IF_ERROR(Use());
  if (end_ == nullptr) {
    GOSSAMER_RETURN_IF_ERROR(Check("event", calls.create_event(&end_)));
    GOSSAMER_RETURN_IF_ERROR(
        Check("event", calls.record(end_, memory_->stream)));
  }
  bool done = false;
  GOSSAMER_RETURN_IF_ERROR(Check("earlier work", calls.poll(end_, &done)));
  if (!done) return false;
  calls.destroy_event(std::exchange(end_, nullptr));
  staged_.clear();
  return true;
}

}  // namespace gossamer
