// The memory of graphs in a build without CUDA, which opens no GPU.

#include <stdexcept>

#include "gan_models/graph_memory.h"

namespace gossamer {

GraphMemory::GraphMemory(int device, DeviceStream*) : device_(device), id_(0) {
  throw std::runtime_error(
      "this build has no CUDA: build preset cuda, after deploy/setup.sh --for "
      "cuda");
}

void GraphMemory::GiveBackUnused() {}

void GraphMemory::End() {}

GraphMemory::~GraphMemory() = default;

}  // namespace gossamer
