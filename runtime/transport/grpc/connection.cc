#include "runtime/transport/grpc/connection.h"

#include <algorithm>
#include <utility>

namespace gossamer {

Connection::Connection(GrpcStreamPtr first, uint64_t attempt,
                       const GrpcStreamLimits& limits)
    : attempt_(attempt), joiner_(limits.max_body_bytes, limits.all_bytes) {
  lanes_.push_back({std::move(first), true});
}

bool Connection::Has(size_t lane) const {
  return lane < lanes_.size() && lanes_[lane].stream != nullptr;
}

void Connection::Add(size_t lane, GrpcStreamPtr stream) {
  lanes_.resize(std::max(lanes_.size(), lane + 1));
  lanes_[lane].stream = std::move(stream);
}

bool Connection::Send(Channel channel, const Frame& frame) {
  size_t open = 1;
  while (IsOpen(open)) ++open;
  if (open == 1 || frame.body.size() < kSmallestSplitBody) {
    return lanes_[0].stream->Send(channel, frame);
  }
  const std::vector<Frame> parts = SplitFrame(frame, open);
  for (size_t i = 0; i < open; ++i) {
    if (!lanes_[i].stream->Send(channel, parts[i], open)) return false;
  }
  return true;
}

bool Connection::Drained() const {
  return std::ranges::all_of(lanes_, [](const Lane& lane) {
    return lane.stream == nullptr || lane.stream->Drained();
  });
}

std::vector<GrpcStreamPtr> Connection::streams() const {
  std::vector<GrpcStreamPtr> streams;
  for (const Lane& lane : lanes_) {
    if (lane.stream != nullptr) streams.push_back(lane.stream);
  }
  return streams;
}

}  // namespace gossamer
