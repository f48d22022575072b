// The point at which a simulated peer dies: after a number of further effects
// that others could see.
//
// The memory of a dead process does not matter, so a crash between any two
// lines is a crash between two of its effects: frames for the network,
// operations on its disk, calls to the service.  A dead process has no effects.
// This header knows nothing of what the effects are.

#ifndef GOSSAMER_RUNTIME_SIM_CRASH_POINT_H_
#define GOSSAMER_RUNTIME_SIM_CRASH_POINT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/transport/transport.h"

namespace gossamer::simulation {

class CrashPoint {
 public:
  // Dies after `effects` more; an earlier death that is due stays.
  void Arm(uint64_t effects) {
    left_ = armed_ ? std::min(left_, effects) : effects;
    armed_ = true;
    dead_ = dead_ || left_ == 0;
  }
  // Removes a death that is due; a dead process stays dead.
  void Disarm() { armed_ = false; }
  // Called before an effect.  Returns false if the process has died before it.
  // The effect that brings the death still happens.
  bool CountEffect() {
    if (dead_) return false;
    if (armed_) dead_ = --left_ == 0;
    return true;
  }
  bool dead() const { return dead_; }

 private:
  bool armed_ = false;
  bool dead_ = false;
  uint64_t left_ = 0;
};

// A transport that a dead process no longer uses.  It remembers the peer that
// it heard last.
class MortalTransport final : public Transport, private TransportListener {
 public:
  MortalTransport(std::unique_ptr<Transport> transport, CrashPoint* crash)
      : transport_(std::move(transport)), crash_(crash) {}

  void SetListener(TransportListener* listener) override {
    listener_ = listener;
    transport_->SetListener(this);
  }
  // Returns the peer of the listener's last event since the last call.
  std::optional<PeerId> TakeHeard() {
    return std::exchange(heard_, std::nullopt);
  }
  void Connect(PeerId peer, const std::string& address) override {
    if (crash_->CountEffect()) transport_->Connect(peer, address);
  }
  void Disconnect(PeerId peer) override {
    if (crash_->CountEffect()) transport_->Disconnect(peer);
  }
  bool Send(PeerId peer, Channel channel, Frame frame) override {
    return crash_->CountEffect() &&
           transport_->Send(peer, channel, std::move(frame));
  }
  void Close(PeerId peer, ConnectionId connection,
             const absl::Status& why) override {
    if (crash_->CountEffect()) transport_->Close(peer, connection, why);
  }
  bool IsWritable(PeerId peer) const override {
    return transport_->IsWritable(peer);
  }
  TransportCounters counters() const override { return transport_->counters(); }

 private:
  void OnUp(PeerId peer, ConnectionId connection) override {
    heard_ = peer;
    listener_->OnUp(peer, connection);
  }
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override {
    heard_ = peer;
    listener_->OnFrame(peer, connection, channel, std::move(frame));
  }
  void OnProgress(PeerId peer) override { listener_->OnProgress(peer); }
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override {
    heard_ = peer;
    listener_->OnDown(peer, connection, why);
  }

  const std::unique_ptr<Transport> transport_;
  CrashPoint* const crash_;
  TransportListener* listener_ = nullptr;
  std::optional<PeerId> heard_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_RUNTIME_SIM_CRASH_POINT_H_
