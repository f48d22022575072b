// A transport whose frames travel over another one, but for bodies of edges
// between peers that NCCL can join: these go from device to device.
//
// A body is offered by its head.  Once both ends have offered a body of one
// exchange, the end with the smaller id says so, and both launch the pair as
// the view's plan orders it.  If anything goes wrong the body goes out by the
// other transport, so the contract of transport.h holds (README.md).  Knows
// nothing of what frames say.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_TRANSPORT_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_TRANSPORT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/nccl/body_frame.h"
#include "runtime/transport/nccl/nccl_api.h"
#include "runtime/transport/nccl/nccl_groups.h"
#include "runtime/transport/nccl/nccl_plan.h"
#include "runtime/transport/nccl/nccl_state.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {

struct NcclOptions {
  PeerId self;
  // The watchdog: no operation takes longer, and no end waits longer for the
  // other's word.  The deadline of edges, or less.
  absl::Duration deadline = absl::Seconds(1);
  // The time for which an offer waits for the other end's; then both bodies
  // travel by the other transport.
  absl::Duration patience = absl::Milliseconds(50);
  // All members make a communicator within this time, or give it up.
  absl::Duration making = absl::Seconds(30);
  // Between two looks at what is under way.
  absl::Duration poll = absl::Microseconds(50);
  size_t least_bytes = size_t{64} << 10;  // smaller bodies go with their heads
  size_t max_body_bytes = size_t{1} << 30;
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
  bool Expects(PeerId peer, uint64_t name) const;

  void SetListener(TransportListener* listener) override;
  void Connect(PeerId peer, const std::string& address) override;
  void Disconnect(PeerId peer) override;
  bool Send(PeerId peer, Channel channel, Frame frame) override;
  void Close(PeerId peer, ConnectionId connection,
             const absl::Status& why) override;
  bool Idle(PeerId peer) const override { return carrier_->Idle(peer); }
  void Flush() override { carrier_->Flush(); }
  TransportCounters counters() const override;

 private:
  // A body of this end that the other end may lack.
  struct Offer {
    ConnectionId connection = 0;
    uint64_t key = 0;
    Payload body = {};
    absl::Time since = {};
    bool agreed = false;
    bool done = false;  // here; the other end has not said so yet
  };
  // A frame that came, and waits for its body or behind one that does.
  struct Held {
    Channel channel = Channel::kEdge;
    Frame frame = {};
    bool whole = true;
    uint64_t exchange = 0;  // of an offer, and so the rest
    uint64_t key = 0;
    uint32_t size = 0;
    absl::Time since = {};
    bool declined = false;
    bool agreed = false;
  };
  struct Connection {
    std::deque<Held> held;
    uint64_t heard = 0;  // the last exchange that was offered over it
  };
  struct Peer {
    std::map<ConnectionId, Connection> open;
    std::map<uint64_t, Offer> offers;  // by exchange
    uint64_t offered = 0;     // the last exchange that this end has offered
    uint64_t undecided = 0;   // no lower exchange will be offered
    uint64_t got = 0;         // BodyFrame::got, to be said
    uint32_t agreements = 0;  // with the other end, if this one leads
  };
  // The place of a pair in the order of all pairs.
  struct Turn {
    uint64_t exchange = 0;
    int colour = 0;
    PeerId peer;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  // A pair that waits for its turn, or is under way.  Once it is agreed on it
  // takes place whatever becomes of the connection: the other end waits for it.
  struct Pair {
    uint64_t key = 0;
    bool agreed = false;
    Payload body = {};
    ConnectionId connection = 0;  // over which the other end's offer came
    uint32_t size = 0;            // of the other end's body
    uint64_t name = 0;            // of the operation, the same at both ends
  };

  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override;

  NcclGroups::Group* UsableFor(PeerId to, const Peer& peer, Channel channel,
                               const Frame& frame);
  bool MayTakeTurn(uint64_t exchange, int colour) const;
  bool Leads(PeerId peer) const { return options_.self < peer; }
  void Tell(PeerId to, BodyKind kind, uint64_t key, uint64_t exchange,
            Payload rest = {}, uint32_t size = 0);

  absl::Status OnBodyFrame(PeerId from, ConnectionId connection, Frame frame);
  absl::Status OnOffer(PeerId from, ConnectionId connection, BodyFrame offer);
  absl::Status OnBody(PeerId from, const BodyFrame& frame, Payload body);
  void HearGot(Peer& peer, uint64_t got);
  // The offer of the other end that still waits for its body.
  std::pair<Held*, ConnectionId> FindHeld(Peer& peer, uint64_t exchange);

  // Of the leading end: both go ahead, or neither does.
  void Settle(PeerId with, Peer& peer, uint64_t exchange);
  void DeclineDecided(PeerId to, Peer& peer);
  void Decline(PeerId to, Peer& peer, uint64_t exchange);
  void SendBody(PeerId to, Peer& peer, uint64_t exchange);
  void EraseTurn(PeerId peer, uint64_t exchange);
  void Agree(PeerId with, Peer& peer, uint64_t exchange, uint32_t number);
  void Drop(PeerId peer, ConnectionId connection);

  void Launch();
  void PollPair(absl::Time now);
  void Finish(Payload body);
  // The communicator of a group has ended.
  void OnEnd(const NcclPlan& plan, NcclEvent why);
  void Deliver(PeerId peer, ConnectionId connection);

  void Tick();
  void LookForLate(absl::Time now);
  absl::Time NextTick(absl::Time now) const;
  void Arm();
  bool Late(absl::Time since, absl::Duration limit) const;

  const std::unique_ptr<Transport> carrier_;
  EventLoop* const loop_;
  const NcclOptions options_;
  TransportListener* listener_ = nullptr;
  NcclGroups groups_;
  std::map<PeerId, Peer> peers_;
  std::map<Turn, Pair> turns_;
  std::optional<Turn> flying_;  // the pair under way, which is in turns_
  absl::Time flying_since_;
  absl::Time armed_ = absl::InfiniteFuture();
  EventLoop::TimerId timer_{};
  TransportCounters counters_;
  NcclCounters seen_;
  // Callbacks on the loop hold it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_TRANSPORT_H_
