// The memory that torch takes on a CUDA device while a graph is captured: a
// pool of its own, which goes back when the graph does.
//
// As torch's own CUDAGraph has it.  This header knows nothing of what is
// captured.

#ifndef GOSSAMER_GAN_MODELS_GRAPH_MEMORY_H_
#define GOSSAMER_GAN_MODELS_GRAPH_MEMORY_H_

#include <cstdint>

#include "algorithms/kernels/device_calls.h"

namespace gossamer {

class GraphMemory {
 public:
  // Gives the device what torch holds and does not use.
  static void GiveBackUnused();
  // Memory that torch takes from here on for work of `stream` is of the pool.
  // Throws as libtorch does (compute.h).
  GraphMemory(int device, DeviceStream* stream);
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();
  // The work is captured.
  void End();

 private:
  // A build without CUDA has no use for them.
  [[maybe_unused]] const int device_;
  [[maybe_unused]] const uint64_t id_;
  [[maybe_unused]] bool ended_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GRAPH_MEMORY_H_
