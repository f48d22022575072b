#include "runtime/transport/grpc/connection.h"

#include <algorithm>
#include <utility>

#include "runtime/base/steady_time.h"

namespace gossamer {
namespace {

// Bytes a second.  The frames of a slower link are never worth a peer's wait:
// its connection would be cut off and its frames sent again for ever.
constexpr double kMinRate = 4 << 10;

}  // namespace

Connection::Connection(GrpcStreamPtr first, uint64_t attempt, uint32_t version,
                       const GrpcStreamLimits& limits)
    : attempt_(attempt),
      version_(version),
      joiner_(limits.max_body_bytes, limits.all_bytes) {
  // The first lane has shown its hello already, so it is open.
  lanes_.push_back({std::move(first), true});
}

bool Connection::Has(size_t lane) const {
  return lane < lanes_.size() && lanes_[lane].stream != nullptr;
}

void Connection::Add(size_t lane, GrpcStreamPtr stream) {
  lanes_.resize(std::max(lanes_.size(), lane + 1));
  lanes_[lane].stream = std::move(stream);
}

size_t Connection::Parts(const Frame& frame) const {
  if (frame.body.size() < kSmallestSplitBody) return 1;
  // The lanes that are open now take part, from the first one without a gap:
  // the receiver expects part i on lane i.
  size_t open = 1;
  while (IsOpen(open)) ++open;
  return open;
}

size_t Connection::CostOf(const Frame& frame) const {
  return HeldBytes(frame) + (Parts(frame) - 1) * kHeldOverhead;
}

bool Connection::Send(Channel channel, const Frame& frame) {
  had_large_body_ |= frame.body.size() >= kSmallestSplitBody;
  const size_t count = Parts(frame);
  if (count == 1) return lanes_[0].stream->Send(channel, frame);
  const std::vector<Frame> parts = SplitFrame(frame, count);
  for (size_t i = 0; i < count; ++i) {
    // A part that was not taken ends the connection, so that the parts before
    // it are never completed by those of another frame.
    if (!lanes_[i].stream->Send(channel, parts[i], count)) return false;
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
    return begun + slack + absl::Seconds(static_cast<double>(bytes) / kMinRate);
  };
  absl::Time first = after(joiner_.waits_since(), joiner_.held());
  // The lane whose frame has waited longest decides for the connection: all
  // lanes end together.
  for (const Lane& lane : lanes_) {
    if (lane.stream == nullptr) continue;
    first = std::min(
        first, after(lane.stream->frame_begun(), lane.stream->frame_bytes()));
  }
  return first;
}

size_t Connection::queued() const {
  size_t bytes = 0;
  for (const Lane& lane : lanes_) {
    if (lane.stream != nullptr) bytes += lane.stream->queued();
  }
  return bytes;
}

size_t Connection::held() const {
  size_t bytes = joiner_.held();
  for (const Lane& lane : lanes_) {
    if (lane.stream != nullptr) bytes += lane.stream->held();
  }
  return bytes;
}

std::vector<GrpcStreamPtr> Connection::streams() const {
  std::vector<GrpcStreamPtr> streams;
  for (const Lane& lane : lanes_) {
    if (lane.stream != nullptr) streams.push_back(lane.stream);
  }
  return streams;
}

}  // namespace gossamer
