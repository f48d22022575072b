// Asks for a sign of life of another peer, straight or through a third one, or
// for the round that it trains, and measures how far and how wide the way to it
// is, measured while both train: small frames there and back, then large ones
// whose receiver says how fast they came.
//
// Knows nothing of connections, channels or of why somebody wants to know.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_LINK_PROBER_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_LINK_PROBER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/membership.h"

namespace gossamer {

// Loop only.
class LinkProber {
 public:
  // Hands a frame to the network; false: there is no connection.
  using Send = std::function<bool(PeerId, Frame)>;
  using Done = std::function<void(std::optional<LinkMeasurement>)>;

  // A measurement takes no longer.
  static constexpr absl::Duration kLimit = absl::Seconds(20);
  // Of a load: several chunks, as the first one's time is not counted.
  static constexpr size_t kLoadBytes = size_t{2} << 20;
  static constexpr absl::Duration kErrandLimit = absl::Seconds(4);
  // More than this many of others at once are not begun.
  static constexpr size_t kMostErrands = 64;

  // `loop` outlives it.
  LinkProber(EventLoop* loop, Send send);
  ~LinkProber();
  LinkProber(const LinkProber&) = delete;

  // Asks for an answer, which counts as heard wherever frames are.
  void Ping(PeerId peer);
  // Asks `witness` to ping `target`.  `on_answer` hears of its answer, if one
  // comes within kErrandLimit.
  void Ask(PeerId witness, PeerId target);
  void SetOnAnswer(std::function<void(PeerId target)> on_answer) {
    on_answer_ = std::move(on_answer);
  }
  // Asks `peer` for the round that it trains.  It answers only if it trains by
  // the view (generation, epoch), and that view has this peer.
  void AskRound(PeerId peer, uint64_t generation, uint64_t epoch);
  // Hears the answers of those that were asked, and of nobody else.
  void SetOnRound(std::function<void(PeerId peer, uint64_t round)> on_round) {
    on_round_ = std::move(on_round);
  }
  // Others are answered with what `round_of` returns: the round that is trained
  // by that view with `asker` in it, or 0 for no answer.
  void SetRoundOf(
      std::function<uint64_t(PeerId asker, uint64_t generation, uint64_t epoch)>
          round_of) {
    round_of_ = std::move(round_of);
  }
  // Calls `done` once, with nullopt if the other did not answer enough within
  // kLimit.  One at a time: another one ends the one before.
  void Measure(PeerId peer, Done done);
  // Frames of others' measurements are answered, those of this one counted;
  // what is neither is dropped.
  void OnFrame(PeerId peer, const Frame& frame);

 private:
  // A peer of an earlier release drops the kinds that it does not know.
  enum class Kind : uint32_t {
    kPing,
    kPong,
    kLoad,
    kLoaded,
    kAsk,
    kAnswer,
    kAskRound,
    kRound,
  };
  struct Head {
    Kind kind = Kind::kPing;
    // Of kAsk and kAnswer the target; of kAskRound the view's epoch, with its
    // generation in transit.bytes; of kRound the round.
    uint64_t number = 0;
    Transit transit = {};  // of kLoaded: how the load came in
  };
  // A question whether `target` answers, asked by `other` or of `other`.
  struct Errand {
    PeerId target;
    PeerId other;
    absl::Time until;
  };
  static Payload Encode(const Head& head);
  static std::optional<Head> Decode(const Payload& bytes);

  // False if there is no connection.
  bool SendHead(PeerId peer, const Head& head);
  void OnAsk(PeerId asker, PeerId target);
  void OnAnswer(PeerId witness, PeerId target);
  void AnswerAskers(PeerId target);
  // Adds an errand, or begins its time anew.
  void Remember(std::vector<Errand>& errands, PeerId target, PeerId other);
  void SendNext();
  void OnAnswer(const Head& head);
  void End();

  EventLoop* const loop_;
  const Send send_;
  std::function<void(PeerId)> on_answer_ = [](PeerId) {};
  std::function<void(PeerId, uint64_t)> on_round_ = [](PeerId, uint64_t) {};
  std::function<uint64_t(PeerId, uint64_t, uint64_t)> round_of_ =
      [](PeerId, uint64_t, uint64_t) { return uint64_t{0}; };
  std::set<PeerId> asked_rounds_;
  std::vector<Errand> asked_;     // of others
  std::vector<Errand> promised_;  // to others
  // The measurement under way.
  PeerId peer_{0};
  Done done_;
  uint64_t number_ = 0;  // of the frame that is to be answered
  int answered_ = 0;
  absl::Time sent_;
  std::optional<double> rtt_;
  double rate_ = 0;
  EventLoop::TimerId again_{0};
  EventLoop::TimerId limit_{0};
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_LINK_PROBER_H_
