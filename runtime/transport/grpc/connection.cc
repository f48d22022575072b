#include "runtime/transport/grpc/connection.h"

#include <algorithm>
#include <utility>

#include "runtime/base/steady_time.h"

namespace gossamer {
namespace {

// Bytes a second, 0.25 Mbit/s: below it a run of any model that needs a
// deadline has long given the round up.
constexpr double kLeastRate = 32 << 10;

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
  const absl::Status added = joiner_.Add(lane, std::move(frame), complete);
  if (joiner_.held() == 0) {
    waits_since_ = absl::InfiniteFuture();
  } else if (!complete->empty() || waits_since_ == absl::InfiniteFuture()) {
    waits_since_ = SteadyNow();
  }
  return added;
}

absl::Time Connection::Deadline(absl::Duration slack) const {
  const auto after = [slack](absl::Time begun, size_t bytes) {
    return begun + slack +
           absl::Seconds(static_cast<double>(bytes) / kLeastRate);
  };
  absl::Time first = after(waits_since_, joiner_.held());
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
