#include "gan_models/torch_queue.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"
#include "gan_models/graph_memory.h"

namespace gossamer {
namespace {

at::Device CudaDevice(Device device) {
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

// torch knows a stream that is not its own by CUDA's pointer
// (c10::cuda::getStreamFromExternal, without its library).
c10::Stream StreamOf(DeviceStream* stream, Device device) {
  return c10::Stream(c10::Stream::UNSAFE, CudaDevice(device),
                     reinterpret_cast<c10::StreamId>(stream));
}

}  // namespace

const TorchQueue& TorchQueue::Host() {
  static const TorchQueue& host =
      *new TorchQueue(DeviceQueue::Host(), /*cuda=*/false, nullptr);
  return host;
}

TorchQueue::TorchQueue(DeviceQueue queue, bool cuda, Executor executor)
    : queue_(std::move(queue)),
      cuda_(cuda),
      executor_(std::move(executor)),
      late_(std::make_shared<absl::Status>()) {}

TorchQueue::TorchQueue(DeviceQueue queue, Executor executor)
    : TorchQueue(std::move(queue), /*cuda=*/false, std::move(executor)) {}

absl::StatusOr<TorchQueue> TorchQueue::Open(DeviceQueue queue) {
  if (queue.on_host()) return Host();
  try {
    at::Context& context = at::globalContext();
    context.lazyInitDevice(at::kCUDA);
    // Ten bits of mantissa without a word are not float32.
    context.setAllowTF32CuBLAS(false);
    context.setAllowTF32CuDNN(false);
    // A run repeats to the bit: sums of threads in no order are out. Operations
    // that have them and no other way are none of ours (gpu_check looks), so
    // torch's warnings of those are about nothing.
    context.setDeterministicCuDNN(true);
    context.setDeterministicAlgorithms(true, /*warn_only=*/true);
    context.setDeterministicFillUninitializedMemory(false);
  } catch (const std::exception& e) {
    const std::string what = e.what();
    return absl::FailedPreconditionError(absl::StrCat(
        "torch cannot use the GPU: ", what.substr(0, what.find('\n')),
        "; set resources.device=cpu, or see gossamer doctor"));
  }
  queue.OnShortage([] {
    // The queue then says what it lacks.
    GuardTorch([] {
      GraphMemory::GiveBackUnused();
      return absl::OkStatus();
    }).IgnoreError();
  });
  return TorchQueue(std::move(queue), /*cuda=*/true, nullptr);
}

template <typename T>
at::Tensor ViewOf(DeviceSpan<T> values, const std::vector<int64_t>& shape,
                  at::ScalarType type, bool cuda) {
  const at::Device device = cuda ? CudaDevice(values.device) : at::kCPU;
  return at::for_blob(values.data, shape)
      .options(at::TensorOptions().dtype(type).device(device))
      .target_device(device)
      .make_tensor();
}

at::Tensor TorchQueue::View(DeviceSpan<float> values,
                            const std::vector<int64_t>& shape) const {
  return ViewOf(values, shape, at::kFloat, cuda_);
}

at::Tensor TorchQueue::View(DeviceSpan<int64_t> values,
                            const std::vector<int64_t>& shape) const {
  return ViewOf(values, shape, at::kLong, cuda_);
}

absl::Status TorchQueue::On(DeviceStream* stream, const Work& work) const {
  const auto guarded = [](const Work& piece) {
    return GuardTorch([&] {
      piece();
      return absl::OkStatus();
    });
  };
  if (executor_) {
    executor_([work, guarded, late = late_] { late->Update(guarded(work)); });
    return absl::OkStatus();
  }
  if (!cuda_) return guarded(work);
  return guarded([&] {
    const c10::StreamGuard guard(StreamOf(stream, queue_.device()));
    work();
  });
}

absl::Status TorchQueue::Enqueue(const Work& work) const {
  return On(queue_.stream(), work);
}

absl::StatusOr<CapturedWork> TorchQueue::Capture(const Work& work) const {
  if (cuda_) {
    // Memory of the steps before is of the queue's stream, where no graph can
    // use it, and torch may give none back while a stream is captured.
    GOSSAMER_RETURN_IF_ERROR(GuardTorch([] {
      GraphMemory::GiveBackUnused();
      return absl::OkStatus();
    }));
  }
  std::shared_ptr<void> memory;
  absl::StatusOr<CapturedWork> captured =
      queue_.Capture([&](DeviceStream* stream) {
        if (!cuda_) return On(stream, work);
        // The intermediate values of a graph lie in memory that is nobody
        // else's for as long as it is replayed.
        std::shared_ptr<GraphMemory> graph_memory;
        GOSSAMER_RETURN_IF_ERROR(GuardTorch([&] {
          graph_memory =
              std::make_shared<GraphMemory>(queue_.device().index, stream);
          return absl::OkStatus();
        }));
        const absl::Status enqueued = On(stream, work);
        graph_memory->End();
        memory = std::move(graph_memory);
        return enqueued;
      });
  if (captured.ok()) captured->Hold(std::move(memory));
  return captured;
}

absl::Status TorchQueue::TakeLateError() const {
  return std::exchange(*late_, absl::OkStatus());
}

}  // namespace gossamer
