// One peer's end of a SimNetwork, and the items that travel between two ends.
//
// Internal to runtime/sim.  This header knows nothing of faults: SimNetwork
// makes them.

#ifndef GOSSAMER_RUNTIME_SIM_SIM_ENDPOINT_H_
#define GOSSAMER_RUNTIME_SIM_SIM_ENDPOINT_H_

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/transport.h"

namespace gossamer::sim_internal {

struct Item {
  enum class Kind { kUp, kFrame, kDown };
  Kind kind = Kind::kFrame;
  Channel channel = Channel::kEdge;
  Frame frame;
  absl::Status why;
  absl::Time arrival;
};

struct Connection {
  // The state of one end; index 0 is the end with the smaller id.
  struct End {
    PeerId peer;
    // Null once this end has ended the connection.
    Endpoint* endpoint = nullptr;
    ConnectionId id = 0;        // 0 before OnUp
    std::deque<Item> incoming;  // under way to this end
    absl::Time last_arrival = absl::InfinitePast();
    bool pumping = false;
  };
  std::array<End, 2> ends;
  bool broken = false;
};

class Endpoint final : public Transport {
 public:
  Endpoint(SimNetwork* network, PeerId self, VirtualPeerLoop* loop,
           std::string address);
  ~Endpoint() override;

  void SetListener(TransportListener* listener) override;
  void Connect(PeerId peer, const std::string& address) override;
  void Disconnect(PeerId peer) override;
  bool Send(PeerId peer, Channel channel, Frame frame) override;
  void Close(PeerId peer, ConnectionId connection,
             const absl::Status& why) override;
  bool IsWritable(PeerId peer) const override;
  TransportCounters counters() const override { return counters_; }

  // Hands an item to the peer's loop.
  void Deliver(std::shared_ptr<Connection> c, int end, Item item);
  bool Wants(PeerId peer) const { return wanted_.contains(peer); }
  // The address at which this end looks for a peer, and its own address.
  const std::string& AddressOf(PeerId peer) const { return wanted_.at(peer); }
  const std::string& address() const { return address_; }
  VirtualPeerLoop* loop() { return loop_; }

 private:
  using ConnectionPtr = std::shared_ptr<Connection>;
  void Handle(const ConnectionPtr& c, int end, Item item);
  void EndHere(const ConnectionPtr& c, const absl::Status& why);
  int EndOf(const Connection& c) const {
    return c.ends[0].peer == self_ ? 0 : 1;
  }

  SimNetwork* const network_;
  const PeerId self_;
  VirtualPeerLoop* const loop_;
  TransportListener* listener_ = nullptr;
  const std::string address_;
  std::map<PeerId, std::string> wanted_;
  std::map<PeerId, std::map<ConnectionId, ConnectionPtr>> up_;
  ConnectionId last_id_ = 0;
  TransportCounters counters_;
  // Callbacks on the loop hold it weakly.
  std::shared_ptr<Endpoint*> alive_;
};

}  // namespace gossamer::sim_internal

#endif  // GOSSAMER_RUNTIME_SIM_SIM_ENDPOINT_H_
