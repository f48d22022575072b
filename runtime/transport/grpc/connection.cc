#include "runtime/transport/grpc/connection.h"

#include <algorithm>
#include <utility>

#include "runtime/base/steady_time.h"

namespace gossamer {
namespace {

// Bytes a second: what a slower link carries is never worth a peer's wait, and
// what it begins would be cut off and sent again for ever.
constexpr double kLeastRate = 4 << 10;

}  // namespace

Connection::Connection(GrpcStreamPtr first, uint64_t attempt, uint32_t version,
                       const GrpcStreamLimits& limits)
    : attempt_(attempt),
      version_(version),
      joiner_(limits.max_body_bytes, limits.all_bytes) {
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

absl::Status Connection::Receive(size_t lane, ReceivedFrame frame,
                                 std::vector<ReceivedFrame>* complete) {
  frame.came = SteadyNow();
  return joiner_.Add(lane, std::move(frame), complete);
}

absl::Time Connection::Deadline(absl::Duration slack) const {
  const auto after = [slack](absl::Time begun, size_t bytes) {
    return begun + slack +
           absl::Seconds(static_cast<double>(bytes) / kLeastRate);
  };
  absl::Time first = after(joiner_.waits_since(), joiner_.held());
  for (const Lane& lane : lanes_) {
    if (lane.stream == nullptr) continue;
    first = std::min(
        first, after(lane.stream->frame_begun(), lane.stream->frame_bytes()));
  }
  return first;
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
