// Requests between peers beside training: pings, direct or through a third
// peer; the round that a peer trains; and a link's round-trip time and
// throughput, by small frames there and back and then large ones whose rate the
// receiver reports.
//
// This header knows nothing of connections, channels or of why somebody wants
// to know.

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
  static constexpr absl::Duration kPingRequestTimeout = absl::Seconds(4);
  // More than this many of others at once are not relayed.
  static constexpr size_t kMaxPingRequests = 64;

  // `loop` outlives it.
  LinkProber(EventLoop* loop, Send send);
  ~LinkProber();
  LinkProber(const LinkProber&) = delete;

  // Asks for an answer, which counts as heard wherever frames are.
  void Ping(PeerId peer);
  // Asks `proxy` to ping `target`.  `on_ack` hears of its answer, if one comes
  // within kPingRequestTimeout.
  void RequestPing(PeerId proxy, PeerId target);
  void SetOnIndirectAck(std::function<void(PeerId target)> on_ack) {
    on_indirect_ack_ = std::move(on_ack);
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
    kPingRequest,
    kIndirectAck,
    kAskRound,
    kRound,
  };
  struct Head {
    Kind kind = Kind::kPing;
    // Of kPingRequest and kIndirectAck the target; of kAskRound the view's
    // epoch, with its generation in transit.bytes; of kRound the round.
    uint64_t number = 0;
    Transit transit = {};  // of kLoaded: how the load came in
  };
  // A request to ping `target`, which `other` has sent or is sent.
  struct PingRequest {
    PeerId target;
    PeerId other;
    absl::Time until;
  };
  static SharedBytes Encode(const Head& head);
  static std::optional<Head> Decode(const SharedBytes& bytes);

  // False if there is no connection.
  bool SendHead(PeerId peer, const Head& head);
  void OnPingRequest(PeerId asker, PeerId target);
  void OnIndirectAck(PeerId proxy, PeerId target);
  void SendIndirectAcks(PeerId target);
  // Adds a request, or begins its time anew.
  void AddOrRenew(std::vector<PingRequest>& requests, PeerId target,
                  PeerId other);
  void SendNext();
  void OnAnswer(const Head& head);
  void End();

  EventLoop* const loop_;
  const Send send_;
  std::function<void(PeerId)> on_indirect_ack_ = [](PeerId) {};
  std::function<void(PeerId, uint64_t)> on_round_ = [](PeerId, uint64_t) {};
  std::function<uint64_t(PeerId, uint64_t, uint64_t)> round_of_ =
      [](PeerId, uint64_t, uint64_t) { return uint64_t{0}; };
  std::set<PeerId> asked_rounds_;
  std::vector<PingRequest> requested_;  // of others
  std::vector<PingRequest> relayed_;    // for others
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
