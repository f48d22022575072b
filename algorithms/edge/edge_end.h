// One end of an edge: the protocol that makes a correction land exactly once,
// with exactly opposite signs, at both ends (PROTOCOL.md, cited by section).
//
// Pure: events in, frames out.  This header knows nothing of vectors, codecs,
// sockets or clocks.  A CodecState (below) makes payloads and applies them; ids
// and epochs are any unsigned type, so that the exhaustive search in
// tests/algorithms runs on this very source with small ones.

#ifndef GOSSAMER_ALGORITHMS_EDGE_EDGE_END_H_
#define GOSSAMER_ALGORITHMS_EDGE_EDGE_END_H_

#include <cstdint>
#include <utility>

#include "algorithms/edge/edge_state.h"

namespace gossamer {

// One end's half of the protocol: it decides which exchanges are payloads and
// which are skips, and completes each exchange once and in order.
//
// CodecState makes payloads and applies them:
//   Token                     one encoded snapshot, copyable, {} is none
//   void OnReset()            an incarnation starts: x̂ = D = 0, first = true
//   Token OnEmit(N id)        encodes x for exchange `id`
//   void OnComplete(N id, const Token* mine, const Token* theirs)
//                             exchange `id` is decided at both ends; null is a
//                             skip, never both; called in order of ids
// N counts ids and epochs; an epoch is level · kLevel + nonce (PROTOCOL.md 5).
template <typename N, typename CodecState, N kLevel, int kMaxWindow,
          typename Rules = SoundRules>
class EdgeEnd {
 public:
  using Token = typename CodecState::Token;
  using State = EdgeState<N, Token, kMaxWindow>;
  using Frame = EdgeFrame<N, Token>;
  using Record = EdgeRecord<N, Token, kMaxWindow>;

  EdgeEnd() = default;
  // A new incarnation: `epoch` differs from those of all others of this end;
  // ids from `frontier` on will be decided; W = `window` in [1, kMaxWindow].
  EdgeEnd(CodecState codec_state, N epoch, N frontier, int window)
      : codec_state_(std::move(codec_state)), nonce_(epoch % kLevel) {
    s_.epoch = epoch;
    s_.decided = frontier;
    s_.window = s_.peer_window = s_.effective_window =
        static_cast<uint8_t>(window);
  }
  // A new incarnation of this end that goes on from a sealed record;
  // `codec_state` is as the record left it.  The record counts only if the
  // other end restores the same cut (PROTOCOL.md 6).
  EdgeEnd(CodecState codec_state, N epoch, const Record& record, N basis)
      : EdgeEnd(std::move(codec_state), epoch, record.cut, record.window) {
    s_.basis = basis;
    s_.received = s_.peer_done = record.cut;
    s_.done = record.done;
    s_.peer_window = record.peer_window;
    for (const auto& held : record.mine) s_.mine.PushBack(held);
    s_.resumed = record.cut;
    for (const auto& held : record.theirs) s_.theirs.PushBack(held);
  }

  const State& state() const { return s_; }
  const CodecState& codec_state() const { return codec_state_; }
  CodecState& codec_state() { return codec_state_; }

  // At most `window` own payloads incomplete here, in [1, W]: the part in use
  // of a window that may be needed later (PROTOCOL.md 2).  The bound on
  // unacknowledged ones stays 2W, so that a smaller window makes no skip.
  void set_effective_window(int window) {
    s_.effective_window = static_cast<uint8_t>(window);
  }

  // Sends a payload although the other end is known to have skipped: at a
  // replay the other end may be further ahead than it was.
  void set_force_payload(bool force) { force_payload_ = force; }

  // Whether the windows have room for a payload.
  bool HasRoom() const {
    return s_.peer_epoch != 0 &&
           (s_.Incomplete() < s_.effective_window || SeededBug("no-window")) &&
           (s_.Unacknowledged() < 2 * s_.window || SeededBug("no-window"));
  }
  // Whether Emit(id) may send a payload (PROTOCOL.md 4.1).
  bool MaySendPayload(N id) const {
    return HasRoom() &&
           (force_payload_ || !(s_.received > id && !s_.theirs.Has(id)));
  }
  // Decides exchange `id` >= decided: a payload if `payload` and
  // MaySendPayload(id), else a skip; everything between is skipped.  True if it
  // is a payload.
  template <typename Out>
  bool Emit(N id, bool payload, Out&& out);
  // Decides that all undecided ids below `id` are skips (PROTOCOL.md 4.2).
  void SkipTo(N id) {
    if (id <= s_.decided) return;
    s_.decided = id;
    if (!s_.theirs.empty() && s_.theirs.front().id < id) s_.ack_due = true;
  }

  // Completes, in order, every exchange below `limit` that both ends have
  // decided.
  void Complete(N limit);

  // A connection is open and is now the one to send on (PROTOCOL.md 4.6).
  template <typename Out>
  void ConnectionUp(Out&& out) {
    s_.connected = true;
    s_.ready = false;
    out(Hello());
  }
  // The connection to send on is gone.
  void ConnectionDown() { s_.connected = s_.ready = false; }

  // A payload or a skip of the other end, from any connection (PROTOCOL.md
  // 4.3).
  Verdict OnData(const Frame& f);

  // A hello, `current` if it came over the connection that this end sends on
  // (PROTOCOL.md 4.7).
  template <typename Out>
  void OnHello(const Frame& f, bool current, Out&& out);

  // Sends the skip that is due, if the connection is ready for it; what is due
  // without one goes out after the next hello anyway.
  template <typename Out>
  void Flush(Out&& out) {
    if (!s_.ack_due) return;
    s_.ack_due = false;
    if (s_.ready) SendSkip(out);
  }

  // Makes a skip due even if nothing has changed: the other end is to know F
  // (it seals a record by it).
  void Announce() { s_.ack_due = true; }

  // True if giving up this incarnation loses no correction (PROTOCOL.md 4.8).
  bool MayReset() const {
    return s_.peer_epoch != 0 &&
           (s_.mine.empty() || Rules::Broken(Rule::kResetWhenEmpty));
  }
  // Only if MayReset().
  template <typename Out>
  void LosslessReset(Out&& out) {
    RaiseEpoch(s_.epoch);
    Start();
    if (s_.connected) out(Hello());
  }

  // Begins a record of the boundary before `cut`: all ids below it are decided
  // here.  The caller saves the CodecState as it is now.
  Record BeginRecord(N cut) const;
  // Adds what this end has received for ids below the cut since; true if the
  // record is sealed: it then holds both payloads of every exchange below the
  // cut.  A record that more payloads belong to than fit in is void and never
  // sealed.  Call after every received frame, before Complete.
  bool ExtendRecord(Record& record) const;

 private:
  // An epoch above `epoch` that no other incarnation of this end uses.
  void RaiseEpoch(N epoch) {
    const N nonce = Rules::Broken(Rule::kNonce) ? N{0} : nonce_;
    s_.epoch = static_cast<N>((epoch / kLevel + 1) * kLevel + nonce);
    s_.basis = 0;
  }
  // Starts an incarnation at zero; F stays: what was decided is decided.
  void Start();
  // A payload leaves when it is complete here and there (PROTOCOL.md 4.5).
  void Release();
  N Ack() const {
    return Rules::Broken(Rule::kAckCompleted) ? s_.received : s_.done;
  }
  Frame Hello() const;
  Frame Data(FrameKind kind, N prev, N to) const;
  template <typename Out>
  void SendPayload(const Held<N, Token>& held, Out&& out);
  template <typename Out>
  void SendSkip(Out&& out);
  template <typename Out>
  void Resend(const Frame& hello, Out&& out);

  State s_;
  CodecState codec_state_;
  N nonce_ = 0;
  bool force_payload_ = false;
};

}  // namespace gossamer

#include "algorithms/edge/edge_end_inl.h"  // IWYU pragma: export

#endif  // GOSSAMER_ALGORITHMS_EDGE_EDGE_END_H_
