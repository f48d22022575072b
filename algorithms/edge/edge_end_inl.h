// Definitions of edge_end.h; included by it alone.

#ifndef GOSSAMER_ALGORITHMS_EDGE_EDGE_END_INL_H_
#define GOSSAMER_ALGORITHMS_EDGE_EDGE_END_INL_H_

#include <algorithm>
#include <cassert>

#include "algorithms/edge/edge_end.h"

namespace gossamer {

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
template <typename Out>
bool EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::Emit(N id, bool payload,
                                                             Out&& out) {
  assert(id >= s_.decided);
  payload = payload && MaySendPayload(id);
  s_.decided = id + 1;
  if (!payload) {
    s_.ack_due = true;
    return false;
  }
  s_.mine.PushBack({id, s_.last, codec_state_.OnEmit(id)});
  s_.last = id;
  // Without a ready connection the payload waits in `mine`, and the next hello
  // brings it (PROTOCOL.md 4.6).
  if (s_.ready) SendPayload(s_.mine.back(), out);
  return true;
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
void EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::Complete(N limit) {
  // An id is complete only once both ends have decided it (PROTOCOL.md 4.4).
  limit = std::min({limit, s_.decided, s_.received});
  while (s_.done < limit) {
    const Held<N, Token>* mine = s_.mine.FirstFrom(s_.done);
    const Held<N, Token>* theirs = s_.theirs.FirstFrom(s_.done);
    // The next id with a payload of either end: skips of both ends in between
    // have nothing to apply, so they are passed without being counted one by
    // one.
    N id = limit;
    if (mine) id = std::min(id, mine->id);
    if (theirs) id = std::min(id, theirs->id);
    if (id == limit) {
      s_.done = limit;
      break;
    }
    if (mine && mine->id != id) mine = nullptr;
    if (theirs && theirs->id != id) theirs = nullptr;
    codec_state_.OnComplete(id, mine ? &mine->token : nullptr,
                            theirs ? &theirs->token : nullptr);
    if (theirs) {
      s_.theirs.PopFront();
      s_.ack_due = true;
    }
    s_.done = id + 1;
  }
  Release();
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
Verdict EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::OnData(
    const Frame& f) {
  // Checks in the order of PROTOCOL.md 4.3: nothing is stored before the last
  // of them, so a frame is taken whole or dropped whole.
  if (f.epoch != s_.peer_epoch || f.peer_epoch != s_.epoch) {
    return Verdict::kDropped;
  }
  const bool payload = f.kind == FrameKind::kPayload;
  const bool gap =
      f.prev != 0 && f.prev >= s_.received && !Rules::Broken(Rule::kRefuseGap);
  const bool fresh =
      f.to > s_.received || (SeededBug("accept-twice") && f.to == s_.received);
  const bool accepted = fresh && !gap;
  if (f.ack > s_.decided || f.to <= f.prev ||
      (accepted && payload && s_.Waiting() >= 2 * s_.peer_window)) {
    return Verdict::kViolation;
  }
  // A duplicate, too, may bring a newer acknowledgement.
  if (f.ack > s_.peer_done) {
    s_.peer_done = f.ack;
    Release();
  }
  if (!accepted) return Verdict::kDropped;
  if (payload) {
    const N id = f.to - 1;
    s_.theirs.PushBack({id, f.prev, f.token});
    if (id < s_.decided && s_.announced <= id) s_.ack_due = true;
    if (Rules::Broken(Rule::kAckCompleted)) s_.ack_due = true;
  }
  s_.received = f.to;
  return Verdict::kAccepted;
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
template <typename Out>
void EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::OnHello(const Frame& f,
                                                                bool current,
                                                                Out&& out) {
  if (f.epoch < s_.peer_epoch) return;  // an earlier incarnation
  const N epoch = s_.epoch, peer_epoch = s_.peer_epoch;
  if (f.peer_epoch > s_.epoch && !Rules::Broken(Rule::kRise)) {
    // The other end remembers a later incarnation of this one.
    RaiseEpoch(f.peer_epoch);
    s_.peer_epoch = f.epoch;
    Start();
  } else if (f.epoch > s_.peer_epoch) {
    // An epoch with a basis pairs once.
    if (s_.peer_epoch != 0 && s_.basis != 0 &&
        !Rules::Broken(Rule::kBasisOnce)) {
      RaiseEpoch(s_.epoch);
    }
    s_.peer_epoch = f.epoch;
    const bool resumes =
        peer_epoch == 0 && s_.basis != 0 && f.basis == s_.basis;
    if (!resumes) Start();
  } else if (f.peer_epoch == s_.epoch && f.ack > s_.peer_done &&
             f.ack <= s_.decided) {
    s_.peer_done = f.ack;
    Release();
  }
  const bool changed = s_.epoch != epoch || s_.peer_epoch != peer_epoch;
  // Within an incarnation W only grows: payloads that were sent under a larger
  // one may still be under way.
  s_.peer_window = changed ? f.window : std::max(s_.peer_window, f.window);
  if (changed && s_.connected) out(Hello());
  // A hello over an older connection does not make this end ready: what it
  // sends goes over the newest one only (PROTOCOL.md 4.6).
  if (current) Resend(f, out);
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
auto EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::BeginRecord(N cut) const
    -> Record {
  Record r;
  r.cut = cut;
  r.epoch = s_.epoch;
  r.peer_epoch = s_.peer_epoch;
  r.done = s_.done;
  r.window = s_.window;
  r.peer_window = s_.peer_window;
  for (const auto& h : s_.mine) {
    if (SeededBug("record-without-mine")) break;
    if (h.id >= s_.done) r.mine.PushBack(h);
  }
  for (const auto& h : s_.theirs) {
    if (h.id >= cut) break;
    // On a resumed edge the payloads of its record add to those that a hostile
    // end sends anew, which is more than honest ends ever have under way.
    if (r.theirs.full()) {
      r.epoch = 0;
      break;
    }
    r.theirs.PushBack(h);
  }
  return r;
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
bool EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::ExtendRecord(
    Record& r) const {
  if (r.epoch != s_.epoch || r.peer_epoch != s_.peer_epoch ||
      s_.peer_epoch == 0) {
    return false;
  }
  for (const auto& h : s_.theirs) {
    const bool newer = r.theirs.empty() || h.id > r.theirs.back().id;
    if (h.id < r.done || h.id >= r.cut || !newer) continue;
    // The record does not forget what is complete meanwhile, so the other end
    // can send more below the cut than this end ever holds.
    if (r.theirs.full()) {
      r.epoch = 0;
      return false;
    }
    r.theirs.PushBack(h);
  }
  return s_.received >= r.cut || SeededBug("seal-early");
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
void EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::Start() {
  s_.received = s_.done = s_.peer_done = s_.last = s_.announced = s_.resumed =
      0;
  s_.mine.Clear();
  s_.theirs.Clear();
  codec_state_.OnReset();
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
void EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::Release() {
  while (
      !s_.mine.empty() && s_.mine.front().id < s_.peer_done &&
      (s_.mine.front().id < s_.done || Rules::Broken(Rule::kRetainUntilDone))) {
    s_.mine.PopFront();
  }
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
auto EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::Hello() const -> Frame {
  Frame f;
  f.kind = FrameKind::kHello;
  f.epoch = s_.epoch;
  f.peer_epoch = s_.peer_epoch;
  f.to = s_.received;
  f.ack = Ack();
  f.basis = s_.basis;
  f.window = s_.window;
  return f;
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
auto EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::Data(FrameKind kind,
                                                             N prev, N to) const
    -> Frame {
  Frame f;
  f.kind = kind;
  f.epoch = s_.epoch;
  f.peer_epoch = s_.peer_epoch;
  f.prev = prev;
  f.to = to;
  f.ack = Ack();
  return f;
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
template <typename Out>
void EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::SendPayload(
    const Held<N, Token>& held, Out&& out) {
  Frame f = Data(FrameKind::kPayload, held.prev, held.id + 1);
  f.token = held.token;
  s_.announced = f.to;
  // The newest payload says all that a skip would.
  if (f.to == s_.decided) s_.ack_due = false;
  out(f);
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
template <typename Out>
void EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::SendSkip(Out&& out) {
  s_.announced = s_.decided;
  out(Data(FrameKind::kSkip, s_.last, s_.decided));
}

template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules>
template <typename Out>
void EdgeEnd<N, CodecState, kLevel, kMaxWindow, Rules>::Resend(
    const Frame& hello, Out&& out) {
  s_.ready = true;
  if (!Rules::Broken(Rule::kResend)) {
    const N from = hello.peer_epoch == s_.epoch ? hello.to : N{0};
    for (const auto& h : s_.mine) {
      if (h.id >= from) SendPayload(h, out);
    }
  }
  s_.ack_due = false;
  SendSkip(out);
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_EDGE_EDGE_END_INL_H_
