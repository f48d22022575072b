// The calls of a device that a peer needs besides its kernels: memory, copies,
// streams and events.
//
// A table of functions, so that programs are built without CUDA's headers and
// that tests can put another device in its place.  No call blocks but the one
// that says so.  This header knows nothing of what lies in the memory.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_DEVICE_CALLS_H_
#define GOSSAMER_ALGORITHMS_KERNELS_DEVICE_CALLS_H_

#include <cstddef>
#include <cstdint>

namespace gossamer {

// A device's queue of work, done in order: CUDA's cudaStream_t.
struct DeviceStream;
// An event in a stream: CUDA's cudaEvent_t.
struct DeviceEvent;
// Work that is kept, to be done again and again: CUDA's cudaGraphExec_t.
struct DeviceGraph;

struct DeviceFacts {
  char name[128] = "";
  char address[32] = "";          // on the bus, "0000:3b:00.0"
  int major = 0, minor = 0;       // compute capability
  uint64_t memory = 0, free = 0;  // bytes
};

// Each returns null, or the reason why it failed, a text that is valid until
// the thread's next call.
struct DeviceCalls {
  // The newest CUDA that the driver can run and the one of the build, as
  // 1000 · major + 10 · minor; 0: there is no driver.
  const char* (*versions)(int* driver, int* build) = nullptr;
  const char* (*count)(int* devices) = nullptr;
  const char* (*describe)(int device, DeviceFacts* facts) = nullptr;
  // *can: device `from` can read the memory of device `to` by itself.
  const char* (*can_reach)(int from, int to, bool* can) = nullptr;
  // The device of the calling thread's next calls.
  const char* (*use)(int device) = nullptr;

  const char* (*allocate)(size_t bytes, void** memory) = nullptr;
  const char* (*release)(void* memory) = nullptr;
  // Memory of the host that a device reads and writes at its full speed.
  const char* (*allocate_pinned)(size_t bytes, void** memory) = nullptr;
  const char* (*release_pinned)(void* memory) = nullptr;

  const char* (*create_stream)(DeviceStream** stream) = nullptr;
  const char* (*destroy_stream)(DeviceStream* stream) = nullptr;
  // From and to any memory: the host's has to be pinned, or the call blocks.
  const char* (*copy)(DeviceStream* stream, void* to, const void* from,
                      size_t bytes) = nullptr;
  // Sets bytes to 0.
  const char* (*clear)(DeviceStream* stream, void* memory,
                       size_t bytes) = nullptr;

  const char* (*create_event)(DeviceEvent** event) = nullptr;
  const char* (*destroy_event)(DeviceEvent* event) = nullptr;
  const char* (*record)(DeviceEvent* event, DeviceStream* stream) = nullptr;
  // *done: all work before the event is done; the error is that of this work.
  const char* (*poll)(DeviceEvent* event, bool* done) = nullptr;
  // Blocks until the stream is empty: never on a peer's loop.
  const char* (*synchronize)(DeviceStream* stream) = nullptr;

  // Work that is enqueued on the stream from here on is kept instead of done,
  // until the end; other streams and threads go on as ever.
  const char* (*begin_capture)(DeviceStream* stream) = nullptr;
  // An error of what was enqueued in between is reported here, too, and no
  // graph is made.
  const char* (*end_capture)(DeviceStream* stream,
                             DeviceGraph** graph) = nullptr;
  // Enqueues what the graph has kept.
  const char* (*launch)(DeviceGraph* graph, DeviceStream* stream) = nullptr;
  const char* (*destroy_graph)(DeviceGraph* graph) = nullptr;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_DEVICE_CALLS_H_
