#include "runtime/lab/link_model.h"

#include <algorithm>
#include <utility>

namespace gossamer {

LinkModel::LinkModel(LinkSpec spec, RngKey key)
    : spec_(std::move(spec)),
      loss_key_(key.Fold("loss")),
      jitter_key_(key.Fold("jitter")),
      reorder_key_(key.Fold("reorder")) {}

uint64_t LinkModel::Backlog(Nanos now) const {
  if (now >= free_at_) return 0;
  // Nanoseconds times bytes a second exceed 64 bits.
  const auto waiting = static_cast<unsigned __int128>(free_at_ - now);
  return static_cast<uint64_t>(waiting * spec_.bytes_per_second /
                               kNanosPerSecond);
}

// Returns when the last bit of the packet is on the wire.  The remainder of the
// division carries over to the next packet, so that rounding never changes the
// rate.
Nanos LinkModel::Serialize(Nanos now, uint64_t bytes) {
  if (spec_.bytes_per_second == 0) return now;
  // The wire has been idle, so the remainder of earlier packets means nothing.
  if (now > free_at_) {
    free_at_ = now;
    remainder_ = 0;
  }
  const unsigned __int128 work =
      static_cast<unsigned __int128>(bytes) * kNanosPerSecond + remainder_;
  free_at_ += static_cast<Nanos>(work / spec_.bytes_per_second);
  remainder_ = static_cast<uint64_t>(work % spec_.bytes_per_second);
  // The time is rounded up, so that no packet is ever early.
  return free_at_ + (remainder_ > 0 ? 1 : 0);
}

bool LinkModel::DownAt(Nanos when) const {
  return std::any_of(
      spec_.outages.begin(), spec_.outages.end(), [when](const Outage& o) {
        if (when < o.from) return false;
        const Nanos since = when - o.from;
        return (o.every > 0 ? since % o.every : since) < o.to - o.from;
      });
}

// Draws are by index, not by time: a run whose packets are late by chance still
// loses the same ones.
bool LinkModel::Loses(uint64_t index) {
  const double u = loss_key_.Uniform(index);
  if (spec_.loss_burst <= 1 || spec_.loss >= 1) return u < spec_.loss;
  // A run ends after `loss_burst` packets in the mean, and begins as often as
  // the share of lost packets asks for.
  const double ends = 1 / spec_.loss_burst;
  const double begins = ends * spec_.loss / (1 - spec_.loss);
  losing_ = losing_ ? u >= ends : u < begins;
  return losing_;
}

LinkModel::Decision LinkModel::Send(Nanos now, uint64_t bytes) {
  now_ = std::max(now_, now);
  const uint64_t backlog = Backlog(now_);
  // An idle wire takes any packet, so that a small queue cannot stop a link.
  if (backlog > 0 && backlog + bytes > spec_.queue_bytes) {
    return {Fate::kQueueFull, 0};
  }
  // A packet occupies the wire even if an outage or a loss then drops it.
  const Nanos departure = Serialize(now_, bytes);
  // The outage counts at the moment at which the packet would enter the wire,
  // not at its sending.
  if (DownAt(departure)) return {Fate::kOutage, 0};
  const uint64_t index = sent_++;
  if (spec_.loss > 0 && Loses(index)) return {Fate::kLost, 0};
  Nanos jitter = 0;
  if (spec_.jitter > 0) {
    jitter = static_cast<Nanos>(jitter_key_.Uniform(index) *
                                static_cast<double>(spec_.jitter));
  }
  if (spec_.reorder > 0 && reorder_key_.Uniform(index) < spec_.reorder) {
    // Those behind it do not wait for it.
    return {Fate::kDelivered,
            std::max(last_delivery_, departure + spec_.delay + jitter) +
                spec_.reorder_delay};
  }
  // Jitter never makes a packet overtake the one before it.
  last_delivery_ = std::max(last_delivery_, departure + spec_.delay + jitter);
  return {Fate::kDelivered, last_delivery_};
}

}  // namespace gossamer
