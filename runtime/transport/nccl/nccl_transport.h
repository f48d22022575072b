// A transport whose frames travel over another one, the carrier, but for bodies
// of edges between peers that NCCL can join: these go from device to device.
//
// It ties its parts together (README.md): each peer's bodies, the queue of
// pairs, the runner of the pair under way, and the communicators.  If anything
// goes wrong with NCCL a body goes out by the carrier, so the contract of
// transport.h holds.  This header knows nothing of what frames say.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_TRANSPORT_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/nccl/launch_queue.h"
#include "runtime/transport/nccl/nccl_api.h"
#include "runtime/transport/nccl/nccl_groups.h"
#include "runtime/transport/nccl/nccl_plan.h"
#include "runtime/transport/nccl/nccl_state.h"
#include "runtime/transport/nccl/pair_runner.h"
#include "runtime/transport/nccl/peer_bodies.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {

struct NcclOptions {
  PeerId self;
  // The watchdog: no pair takes longer, and no end waits longer for the other's
  // answer.  The deadline of edges, or less.
  absl::Duration deadline = absl::Seconds(1);
  // The time for which an offer waits for the other end's; then both bodies
  // travel by the carrier.
  absl::Duration offer_timeout = absl::Milliseconds(50);
  // All members make a communicator and meet in it within this time, or give it
  // up.
  absl::Duration making = absl::Seconds(30);
  // Between two polls of what is under way.
  absl::Duration poll = absl::Microseconds(50);
  size_t min_bytes = size_t{64} << 10;  // smaller bodies go with their heads
  size_t max_body_bytes = size_t{1} << 30;
  // Of the frames that wait on one connection for bodies, with these.
  size_t max_held_bytes = size_t{1} << 30;
  std::function<void(EventKind kind, const std::string& detail)> report = {};
};

struct NcclCounters {
  uint64_t bodies = 0;     // that NCCL has brought to this end
  uint64_t declined = 0;   // offers that both ends took back in good order
  uint64_t fallbacks = 0;  // bodies sent again because of a communicator
  uint64_t broken = 0;     // communicators
};

class NcclTransport final : public Transport, private TransportListener {
 public:
  // All but `carrier` outlive it.
  NcclTransport(std::unique_ptr<Transport> carrier, EventLoop* loop,
                NcclApi* api, NcclDevice* device, NcclOptions options);
  ~NcclTransport() override;

  // A view is known: its communicator is made while others are in use, and
  // bodies of its rounds use it once it is ready.  A view that is known
  // already changes nothing.
  void Prepare(const View& view);
  NcclCounters nccl_counters() const;
  // Whether the operation of that name with `peer` is to take place or under
  // way at this end.
  bool Expects(PeerId peer, uint64_t name) const {
    return queue_.Expects(peer, name);
  }

  void SetListener(TransportListener* listener) override;
  void Connect(PeerId peer, const std::string& address) override;
  void Disconnect(PeerId peer) override;
  bool Send(PeerId peer, Channel channel, Frame frame) override;
  void Close(PeerId peer, ConnectionId connection,
             const absl::Status& why) override;
  bool IsWritable(PeerId peer) const override {
    return carrier_->IsWritable(peer);
  }
  TransportCounters counters() const override;

 private:
  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnProgress(PeerId peer) override { listener_->OnProgress(peer); }
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override;
  absl::Status OnBodyFrame(PeerId from, ConnectionId connection, Frame frame);

  // The pair by which this body of an edge may go; nullopt if it goes with its
  // head.  `exchange` is 0 for other frames.
  std::optional<NcclPair> PairFor(PeerId to, const PeerBodies& peer,
                                  uint64_t exchange, const Frame& frame);
  void SendId(PeerId to, uint64_t key, SharedBytes id);
  // The communicator of a group has ended.
  void OnEnd(const NcclPlan& plan, NcclEvent why);
  void Drop(PeerId peer, ConnectionId connection);
  // Hands the connection's frames that are whole to the listener, which may
  // destroy this object.
  void Deliver(PeerId peer, ConnectionId connection);

  void Tick();
  void CheckForLate(absl::Time now);
  // Sees to it that Tick() runs when something is due.
  void Arm();

  const std::unique_ptr<Transport> carrier_;
  EventLoop* const loop_;
  const NcclOptions options_;
  TransportListener* listener_ = nullptr;
  NcclGroups groups_;
  LaunchQueue queue_;
  PairRunner runner_;
  const PeerBodiesOptions of_peers_;
  std::map<PeerId, PeerBodies> peers_;
  absl::Time armed_ = absl::InfiniteFuture();
  EventLoop::TimerId timer_{};
  TransportCounters counters_;
  NcclCounters seen_;
  // Callbacks on the loop hold it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_TRANSPORT_H_
