// The table of device_calls.h, by CUDA's runtime.

#include <cuda_runtime.h>

#include <cstdio>

#include "algorithms/kernels/cuda/calls.h"

namespace gossamer {
namespace {

const char* Text(cudaError_t error) {
  if (error == cudaSuccess) return nullptr;
  thread_local char text[256];
  std::snprintf(text, sizeof(text), "%s: %s", cudaGetErrorName(error),
                cudaGetErrorString(error));
  // An error of a call is not one of the next; what a device's work has done
  // wrong stays, whatever is read here.
  cudaGetLastError();
  return text;
}

cudaStream_t Of(DeviceStream* stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}
cudaEvent_t Of(DeviceEvent* event) {
  return reinterpret_cast<cudaEvent_t>(event);
}

cudaGraphExec_t Of(DeviceGraph* graph) {
  return reinterpret_cast<cudaGraphExec_t>(graph);
}

const char* EndCapture(DeviceStream* stream, DeviceGraph** graph) {
  cudaGraph_t kept = nullptr;
  if (const char* error = Text(cudaStreamEndCapture(Of(stream), &kept))) {
    return error;
  }
  cudaGraphExec_t made = nullptr;
  const char* const error = Text(cudaGraphInstantiate(&made, kept, 0));
  cudaGraphDestroy(kept);
  *graph = reinterpret_cast<DeviceGraph*>(made);
  return error;
}

const char* Describe(int device, DeviceFacts* facts) {
  cudaDeviceProp properties;
  if (const char* error = Text(cudaGetDeviceProperties(&properties, device))) {
    return error;
  }
  // A name that is too long is cut.
  std::snprintf(facts->name, sizeof(facts->name), "%.*s",
                static_cast<int>(sizeof(facts->name)) - 1, properties.name);
  facts->major = properties.major;
  facts->minor = properties.minor;
  if (const char* error = Text(cudaDeviceGetPCIBusId(
          facts->address, sizeof(facts->address), device))) {
    return error;
  }
  int before = 0;
  if (const char* error = Text(cudaGetDevice(&before))) return error;
  size_t free = 0, all = 0;
  const char* error = Text(cudaSetDevice(device));
  if (error == nullptr) error = Text(cudaMemGetInfo(&free, &all));
  if (error != nullptr) return error;
  facts->memory = all;
  facts->free = free;
  return Text(cudaSetDevice(before));
}

}  // namespace

const DeviceCalls& CudaCalls() {
  static constexpr DeviceCalls table = {
      .versions =
          [](int* driver, int* build) {
            *build = CUDART_VERSION;
            return Text(cudaDriverGetVersion(driver));
          },
      .count = [](int* devices) { return Text(cudaGetDeviceCount(devices)); },
      .describe = Describe,
      .can_reach =
          [](int from, int to, bool* can) {
            int answer = 0;
            const char* error =
                Text(cudaDeviceCanAccessPeer(&answer, from, to));
            *can = answer != 0;
            return error;
          },
      .use = [](int device) { return Text(cudaSetDevice(device)); },
      .allocate = [](size_t bytes,
                     void** memory) { return Text(cudaMalloc(memory, bytes)); },
      .release = [](void* memory) { return Text(cudaFree(memory)); },
      .allocate_pinned =
          [](size_t bytes, void** memory) {
            return Text(cudaMallocHost(memory, bytes));
          },
      .release_pinned = [](void* memory) { return Text(cudaFreeHost(memory)); },
      .create_stream =
          [](DeviceStream** stream) {
            return Text(cudaStreamCreateWithFlags(
                reinterpret_cast<cudaStream_t*>(stream),
                cudaStreamNonBlocking));
          },
      .destroy_stream =
          [](DeviceStream* stream) {
            return Text(cudaStreamDestroy(Of(stream)));
          },
      .copy =
          [](DeviceStream* stream, void* to, const void* from, size_t bytes) {
            return Text(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault,
                                        Of(stream)));
          },
      .clear =
          [](DeviceStream* stream, void* memory, size_t bytes) {
            return Text(cudaMemsetAsync(memory, 0, bytes, Of(stream)));
          },
      .create_event =
          [](DeviceEvent** event) {
            return Text(cudaEventCreateWithFlags(
                reinterpret_cast<cudaEvent_t*>(event), cudaEventDisableTiming));
          },
      .destroy_event =
          [](DeviceEvent* event) { return Text(cudaEventDestroy(Of(event))); },
      .record =
          [](DeviceEvent* event, DeviceStream* stream) {
            // A launch that failed is reported here at the latest.
            if (const char* error = Text(cudaPeekAtLastError())) return error;
            return Text(cudaEventRecord(Of(event), Of(stream)));
          },
      .poll =
          [](DeviceEvent* event, bool* done) {
            // Taking the last error below would hide a launch that failed.
            if (const char* error = Text(cudaPeekAtLastError())) return error;
            const cudaError_t state = cudaEventQuery(Of(event));
            *done = state != cudaErrorNotReady;
            // It is an answer, and the next call must not take it for an error.
            if (!*done) cudaGetLastError();
            return *done ? Text(state) : nullptr;
          },
      .synchronize =
          [](DeviceStream* stream) {
            if (const char* error = Text(cudaPeekAtLastError())) return error;
            return Text(cudaStreamSynchronize(Of(stream)));
          },
      .begin_capture =
          [](DeviceStream* stream) {
            // Of this thread alone: others ask for events and take memory
            // meanwhile, which a capture of all threads forbids.
            return Text(cudaStreamBeginCapture(
                Of(stream), cudaStreamCaptureModeThreadLocal));
          },
      .end_capture = EndCapture,
      .launch =
          [](DeviceGraph* graph, DeviceStream* stream) {
            return Text(cudaGraphLaunch(Of(graph), Of(stream)));
          },
      .destroy_graph =
          [](DeviceGraph* graph) {
            return Text(cudaGraphExecDestroy(Of(graph)));
          },
  };
  return table;
}

}  // namespace gossamer
