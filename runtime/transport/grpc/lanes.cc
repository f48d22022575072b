#include "runtime/transport/grpc/lanes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace gossamer {
namespace {

// Parts begin at multiples of this, so that the bytes of every part are aligned
// alike.
constexpr size_t kGrain = 4096;

// The head and the body of a waiting frame have an owner object each.
static_assert(sizeof(ReceivedFrame) + 2 * 64 <= kHeldOverhead);

}  // namespace

std::vector<Frame> SplitFrame(const Frame& frame, size_t lanes) {
  const std::span<const std::byte> body = frame.body.bytes();
  const auto owner = std::make_shared<const SharedBytes>(frame.body);
  const size_t grains = (body.size() + kGrain - 1) / kGrain;
  std::vector<Frame> parts(lanes);
  parts[0].head = frame.head;
  size_t begin = 0;
  for (size_t i = 0; i < lanes; ++i) {
    // The grains are spread evenly; the last part ends with the body.
    const size_t end = std::min(body.size(), grains * (i + 1) / lanes * kGrain);
    parts[i].body = SharedBytes(body.subspan(begin, end - begin), owner);
    begin = end;
  }
  return parts;
}

absl::Status LaneJoiner::Add(size_t lane, ReceivedFrame received,
                             std::vector<ReceivedFrame>* complete) {
  const size_t parts = received.parts;
  const bool whole = parts == 0;
  // These shapes come from no SplitFrame(), so they end the connection before
  // they take a place.
  if (parts > kMaxLanes || parts == 1 || (whole && lane != 0) ||
      (!whole && lane >= parts) ||
      (lane != 0 && !received.frame.head.empty())) {
    return absl::DataLossError(absl::StrFormat(
        "lane %d has a frame of %d parts: no gossamer peer sends that", lane,
        parts));
  }
  // A whole frame may not overtake an earlier one whose parts are still
  // missing.
  if (whole && waiting_[0].empty()) {
    complete->push_back(std::move(received));
    return absl::OkStatus();
  }
  if (!share_.Take(HeldBytes(received.frame))) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%d bytes wait for parts of other lanes, and %d of the %d that all "
        "connections may hold are in use",
        share_.held(), share_.budget().used(), share_.budget().most()));
  }
  waiting_[lane].push_back(std::move(received));
  while (Ready()) {
    if (absl::Status joined = Join(complete); !joined.ok()) return joined;
  }
  return absl::OkStatus();
}

absl::Time LaneJoiner::waits_since() const {
  absl::Time since = absl::InfiniteFuture();
  for (const auto& lane : waiting_) {
    if (!lane.empty()) since = std::min(since, lane.front().came);
  }
  return since;
}

bool LaneJoiner::Ready() const {
  if (waiting_[0].empty()) return false;
  const size_t parts = waiting_[0].front().parts;
  for (size_t lane = 1; lane < parts; ++lane) {
    if (waiting_[lane].empty()) return false;
  }
  return true;
}

absl::Status LaneJoiner::Join(std::vector<ReceivedFrame>* complete) {
  ReceivedFrame whole = std::move(waiting_[0].front());
  waiting_[0].pop_front();
  share_.Give(HeldBytes(whole.frame));
  if (whole.parts == 0) {
    complete->push_back(std::move(whole));
    return absl::OkStatus();
  }
  std::vector<ReceivedFrame> parts;
  parts.push_back(std::move(whole));
  size_t bytes = parts[0].frame.body.size();
  const size_t count = parts[0].parts;
  for (size_t lane = 1; lane < count; ++lane) {
    ReceivedFrame& part = parts.emplace_back(std::move(waiting_[lane].front()));
    waiting_[lane].pop_front();
    share_.Give(HeldBytes(part.frame));
    bytes += part.frame.body.size();
    // Every lane carries parts in the order of the first lane, so the fronts of
    // all lanes must be of one frame.
    if (part.parts != count || part.channel != parts[0].channel) {
      return absl::DataLossError(
          "the lanes of a connection are not of one frame");
    }
  }
  if (bytes > max_body_bytes_) {
    return absl::DataLossError(absl::StrFormat(
        "the parts of a frame have %d bytes, over the limit of %d; if it is "
        "meant, raise max_body_bytes at this end",
        bytes, max_body_bytes_));
  }
  const std::shared_ptr<std::byte[]> body = pool_->TryGet(bytes);
  if (body == nullptr) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a frame of %d bytes, and this machine has no memory for it", bytes));
  }
  Transit transit;
  size_t at = 0;
  for (const ReceivedFrame& part : parts) {
    const auto from = part.frame.body.bytes();
    std::copy(from.begin(), from.end(), body.get() + at);
    at += from.size();
    transit.bytes += part.frame.transit.bytes;
    // The lanes work at the same time, so their bytes add up and their times do
    // not.
    transit.took = std::max(transit.took, part.frame.transit.took);
  }
  complete->push_back(
      {.channel = parts[0].channel,
       .frame = {.head = std::move(parts[0].frame.head),
                 .body = SharedBytes(std::span(body.get(), bytes), body),
                 .transit = transit}});
  return absl::OkStatus();
}

}  // namespace gossamer
