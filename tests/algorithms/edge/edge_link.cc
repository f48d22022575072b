#include "tests/algorithms/edge/edge_link.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

std::vector<float> OrZeros(std::vector<float> v, size_t n) {
  if (v.empty()) v.resize(n);
  return v;
}

}  // namespace

void CorrectionLog::OnCorrection(const Correction& correction) {
  const std::span<const float> difference = HostSpan(correction.difference);
  const float c = correction.c;
  std::vector<float> increment(correction.part.extent.size);
  if (difference.empty()) {
    correction.part.codec->Complete(&correction.mine, &correction.theirs, c, {},
                                    increment);
  } else {
    for (size_t i = 0; i < increment.size(); ++i) {
      increment[i] = c * difference[i];
    }
  }
  uint64_t hash = 0;
  for (const float v : increment) {
    const float same_sign = (negate_ ? -v : v) + 0.0f;
    hash = (hash ^ std::bit_cast<uint32_t>(same_sign)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  Entry& entry = entries_[{correction.id, correction.part.extent.offset}];
  entry.hash = hash;
  ++entry.times;
}

EdgeLink::EdgeLink(std::array<Edge*, 2> ends, const Codec& codec, size_t size,
                   RngKey key, double repeat, double swap)
    : ends_(ends),
      logs_{CorrectionLog(false), CorrectionLog(true)},
      draws_(key),
      repeat_(repeat),
      swap_(swap) {
  for (int e : {0, 1}) ends_[e]->add_observer(&logs_[e]);
}

void EdgeLink::Fail(std::string what) {
  if (failure_.empty()) {
    failure_ = absl::StrCat("edge ", ends_[1]->other().value, "-",
                            ends_[0]->other().value, ": ", what);
  }
}

void EdgeLink::CheckBounds() {
  for (const Edge* edge : ends_) {
    const auto& s = edge->state();
    const auto& other = ends_[edge == ends_[0]]->state();
    if (s.mine.size() > 2 * s.window) Fail("more than 2W payloads retained");
    if (s.Waiting() > 2 * other.window) Fail("more than 2W payloads held");
  }
}

void EdgeLink::Collect(int e, int64_t now) {
  CheckBounds();
  Connection* newest = nullptr;
  for (Connection& c : connections_) {
    if (c.up[e] && (!newest || c.id[e] > newest->id[e])) newest = &c;
  }
  for (Edge::OutFrame& frame : ends_[e]->TakeFrames()) {
    if (!newest) return Fail("frames without a connection");
    if (!newest->alive) continue;  // which the end does not know yet
    std::deque<Flight>& queue = newest->queue[e];
    int64_t due = now + 1 + static_cast<int64_t>(draws_.Below(2));
    if (!queue.empty()) due = std::max(due, queue.back().due);
    if (repeat_ > 0 && draws_.Chance(repeat_)) queue.push_back({due, frame});
    queue.push_back({due, std::move(frame)});
    if (swap_ > 0 && queue.size() > 1 && draws_.Chance(swap_)) {
      std::swap(queue.back().frame, queue[queue.size() - 2].frame);
    }
  }
}

void EdgeLink::Dial(int64_t now) {
  Connection& c = connections_.emplace_back();
  for (int e : {0, 1}) {
    c.up_at[e] = now + static_cast<int64_t>(draws_.Below(3));
  }
}

void EdgeLink::Kill(Connection& c, int64_t now) {
  c.alive = false;
  for (int s : {0, 1}) {
    const size_t survive = c.up[1 - s] ? c.queue[s].size() + 1 : 1;
    c.queue[s].resize(draws_.Below(survive));
    const auto late =
        static_cast<int64_t>(draws_.Chance(0.5) ? 0 : draws_.Below(40));
    for (Flight& f : c.queue[s]) f.due += late;
    c.down_at[s] = now + static_cast<int64_t>(draws_.Below(8));
  }
}

void EdgeLink::Break(int64_t now, int64_t closed) {
  for (Connection& c : connections_) {
    if (c.alive) Kill(c, now);
  }
  closed_until_ = std::max(closed_until_, closed);
}

void EdgeLink::BreakOne(int64_t now) {
  if (Alive() < 2) return;
  auto left = draws_.Below(static_cast<uint64_t>(Alive()));
  for (Connection& c : connections_) {
    if (c.alive && left-- == 0) Kill(c, now);
  }
}

void EdgeLink::Stall(int e, int64_t until) { stalled_until_[e] = until; }

void EdgeLink::Heal(int64_t now) {
  if (swap_ > 0) Break(now, now);
  repeat_ = swap_ = 0;
  closed_until_ = 0;
  stalled_until_ = {};
}

int EdgeLink::Alive() const {
  return static_cast<int>(
      std::ranges::count_if(connections_, &Connection::alive));
}

void EdgeLink::Tick(int64_t now, std::array<bool, 2> awake) {
  if (Alive() == 0 && now >= closed_until_) Dial(now);
  ReportUps(now, awake);
  for (Connection& c : connections_) {
    const int first = static_cast<int>(draws_.Below(2));
    for (int s : {first, 1 - first}) {
      const bool known = c.up[1 - s] || !c.alive;
      if (awake[1 - s] && known && now >= stalled_until_[s]) Deliver(c, s, now);
    }
  }
  ReportDowns(now, awake);
  connections_.remove_if([](const Connection& c) {
    return !c.alive && !c.up[0] && !c.up[1] && c.queue[0].empty() &&
           c.queue[1].empty();
  });
}

void EdgeLink::ReportUps(int64_t now, std::array<bool, 2> awake) {
  for (Connection& c : connections_) {
    for (int e : {0, 1}) {
      if (!c.alive || c.up[e] || !awake[e] || now < c.up_at[e]) continue;
      c.up[e] = true;
      c.id[e] = ++last_id_[e];
      ends_[e]->ConnectionUp(c.id[e]);
      Collect(e, now);
    }
  }
}

void EdgeLink::ReportDowns(int64_t now, std::array<bool, 2> awake) {
  for (Connection& c : connections_) {
    for (int e : {0, 1}) {
      if (!c.up[e] || !awake[e] || now < c.down_at[e]) continue;
      c.up[e] = false;
      ends_[e]->ConnectionDown(c.id[e]);
      Collect(e, now);
    }
  }
}

void EdgeLink::Deliver(Connection& c, int sender, int64_t now) {
  const int e = 1 - sender;
  std::deque<Flight>& queue = c.queue[sender];
  while (!queue.empty() && queue.front().due <= now) {
    const Edge::OutFrame frame = std::move(queue.front().frame);
    queue.pop_front();
    const absl::Status status =
        ends_[e]->OnFrame(c.id[e], frame.head, frame.body);
    if (!status.ok()) Fail(status.ToString());
    ends_[e]->Flush();
    Collect(e, now);
  }
}

void EdgeLink::CheckDifferences() {
  const Edge &a = *ends_[0], &b = *ends_[1];
  if (!a.codec_state().codec().needs_replica() || a.done() != b.done()) return;
  const std::vector<float> here = a.codec_state().Save().difference;
  const std::vector<float> there = b.codec_state().Save().difference;
  const size_t n = std::max(here.size(), there.size());
  const auto opposite = [](float u, float v) { return u == -v; };
  if (!std::ranges::equal(OrZeros(here, n), OrZeros(there, n), opposite)) {
    Fail(absl::StrCat("D is not opposite at done = ", a.done()));
  }
}

bool EdgeLink::Settled(ExchangeId end) const {
  return std::ranges::all_of(ends_, [&](const Edge* edge) {
    return edge->settled() && edge->done() == end;
  });
}

void EdgeLink::CheckSettled(ExchangeId end) {
  for (const Edge* edge : ends_) {
    if (!edge->settled() || edge->done() != end) {
      Fail(absl::StrCat("not complete: done ", edge->done(), " of ", end,
                        ", decided ", edge->decided(), ", heard ",
                        edge->received(), ", ready ", edge->state().ready));
    }
  }
  CheckDifferences();
  if (logs_[0].entries() != logs_[1].entries()) {
    Fail("the two ends applied different corrections");
  }
  for (const auto& [key, entry] : logs_[0].entries()) {
    if (entry.times != 1) {
      Fail(absl::StrCat("correction ", key.first, " was applied ", entry.times,
                        " times"));
    }
  }
}

}  // namespace gossamer
