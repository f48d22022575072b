// A sign of life of another peer, and how far and how wide the way to it is,
// measured while both train: small frames there and back, then large ones whose
// receiver says how fast they came.
//
// Knows nothing of connections, channels or of why somebody wants to know.

#ifndef GOSSAMER_RUNTIME_PEER_LINK_PROBER_H_
#define GOSSAMER_RUNTIME_PEER_LINK_PROBER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/ids.h"
#include "runtime/membership/membership.h"
#include "runtime/transport/transport.h"

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

  // `loop` outlives it.
  LinkProber(EventLoop* loop, Send send);
  ~LinkProber();
  LinkProber(const LinkProber&) = delete;

  // Asks for an answer, which counts as heard wherever frames are.
  void Ping(PeerId peer);
  // Tells `done` once; nullopt if the other did not answer enough within
  // kLimit.  One at a time: another one ends the one before.
  void Measure(PeerId peer, Done done);
  // Frames of others' measurements are answered, those of this one counted;
  // what is neither is dropped.
  void OnFrame(PeerId peer, const Frame& frame);

 private:
  enum class Kind : uint32_t { kPing, kPong, kLoad, kLoaded };
  struct Head {
    Kind kind = Kind::kPing;
    uint64_t number = 0;
    Transit transit = {};  // of kLoaded: how the load came in
  };
  static Payload Encode(const Head& head);
  static std::optional<Head> Decode(const Payload& bytes);

  void SendNext();
  void OnAnswer(const Head& head);
  void End();

  EventLoop* const loop_;
  const Send send_;
  // Of the measurement under way.
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

#endif  // GOSSAMER_RUNTIME_PEER_LINK_PROBER_H_
