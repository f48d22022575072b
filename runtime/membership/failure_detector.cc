#include "runtime/membership/failure_detector.h"

#include <algorithm>

namespace gossamer {
namespace {

// The suspicion time grows up to eightfold while this peer itself is late.
constexpr int kMaxLateness = 7;
// Ticks in time until the health multiplier falls by one, a suspicion time in
// all: a machine that was late once may be again.
constexpr int kTicksToRecover = 8;
constexpr size_t kProxies = 2;  // asked at a time
// Each suspicion for nothing doubles the time of a peer, so often at most; so
// long after the last one it has the usual time again.
constexpr int kMaxFalseSuspicions = 2;
constexpr absl::Duration kForgetAfter = absl::Minutes(5);

}  // namespace

void FailureDetector::Watch(const std::set<PeerId>& peers, absl::Time now) {
  std::erase_if(watched_,
                [&](const auto& w) { return !peers.contains(w.first); });
  for (const PeerId peer : peers) {
    // A peer that is watched already keeps its silence.
    watched_.try_emplace(peer, Watched{.heard = now});
  }
}

void FailureDetector::Heard(PeerId peer, absl::Time now) {
  const auto it = watched_.find(peer);
  // A frame of the peer also ends the extension by an indirect ack.
  if (it == watched_.end() || it->second.heard >= now) return;
  Watched& watched = it->second;
  if (watched.was_suspected) {
    watched.false_suspicions =
        std::min(watched.false_suspicions + 1, kMaxFalseSuspicions);
    watched.falsely_suspected_at = now;
  } else if (now - watched.falsely_suspected_at > kForgetAfter) {
    watched.false_suspicions = 0;
  }
  watched.heard = now;
  watched.indirect_ack_used = false;
  watched.was_suspected = false;
  watched.asked = absl::InfinitePast();
}

void FailureDetector::OnIndirectAck(PeerId peer, absl::Time now) {
  const auto it = watched_.find(peer);
  // An answer that comes late, when the peer has been heard of, is of the
  // silence before.
  if (it != watched_.end() && now - it->second.heard > suspect_after_ / 2) {
    it->second.indirect_ack_used = true;
  }
}

bool FailureDetector::HasIndirectAck(PeerId peer) const {
  const auto it = watched_.find(peer);
  return it != watched_.end() && it->second.indirect_ack_used;
}

std::vector<PeerId> FailureDetector::ChooseProxies(
    const std::vector<PeerId>& silent) {
  std::vector<PeerId> answering;
  for (const auto& [peer, watched] : watched_) {
    // A silent peer is no proxy: it would probably not answer.
    if (!std::ranges::binary_search(silent, peer)) answering.push_back(peer);
  }
  const size_t some = std::min(kProxies, answering.size());
  if (some < answering.size()) {
    // The proxies take turns, so that one with a broken path of its own does
    // not decide alone.
    const size_t first = next_proxy_++ * some % answering.size();
    // std::rotate, because clang 14 cannot compile std::ranges::rotate here.
    std::rotate(answering.begin(),
                answering.begin() + static_cast<ptrdiff_t>(first),
                answering.end());
  }
  answering.resize(some);
  return answering;
}

FailureDetector::Probes FailureDetector::Tick(absl::Time now) {
  const absl::Duration late = last_tick_ == absl::InfinitePast()
                                  ? absl::ZeroDuration()
                                  : now - last_tick_ - period();
  last_tick_ = now;
  // A tick that comes a whole period late shows that this peer did not run.
  if (late > period()) {
    // Frames that came meanwhile have not been read yet, so the time of the
    // delay does not count as silence.
    for (auto& [peer, watched] : watched_) {
      watched.heard = std::min(watched.heard + late, now);
    }
    lateness_ = std::min(lateness_ + 1, kMaxLateness);
    ticks_in_time_ = 0;
  } else if (++ticks_in_time_ >= kTicksToRecover) {
    lateness_ = std::max(lateness_ - 1, 0);
    ticks_in_time_ = 0;
  }
  Probes probes;
  suspected_.clear();
  for (auto& [peer, watched] : watched_) {
    const absl::Duration silence = now - watched.heard;
    // An edge with traffic is never probed: any frame counts as heard.
    if (silence > suspect_after_ / 4) probes.direct.push_back(peer);
    const int times =
        (health_multiplier() + (watched.indirect_ack_used ? 1 : 0))
        << watched.false_suspicions;
    if (silence > times * suspect_after_) {
      watched.was_suspected = true;
      suspected_.push_back(peer);
    }
  }
  for (const PeerId peer : probes.direct) {
    Watched& silent = watched_.at(peer);
    // Others are asked once the direct probe has had time, and again only after
    // as long.
    if (silent.indirect_ack_used || now - silent.heard <= suspect_after_ / 2 ||
        now - silent.asked < suspect_after_ / 4) {
      continue;
    }
    silent.asked = now;
    for (const PeerId proxy : ChooseProxies(probes.direct)) {
      probes.indirect.push_back({.proxy = proxy, .target = peer});
    }
  }
  return probes;
}

}  // namespace gossamer
