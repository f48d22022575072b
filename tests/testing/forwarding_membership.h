// A membership that forwards all calls to another one; a test overrides some of
// them.

#ifndef GOSSAMER_TESTS_TESTING_FORWARDING_MEMBERSHIP_H_
#define GOSSAMER_TESTS_TESTING_FORWARDING_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "topology/fleet/membership.h"

namespace gossamer {

class ForwardingMembership : public Membership {
 public:
  explicit ForwardingMembership(std::unique_ptr<Membership> fleet)
      : fleet_(std::move(fleet)) {}

  const View& view() const override { return fleet_->view(); }
  std::optional<uint64_t> fleet_round() const override {
    return fleet_->fleet_round();
  }
  std::optional<uint64_t> second_round() const override {
    return fleet_->second_round();
  }
  std::optional<double> fleet_busy() const override {
    return fleet_->fleet_busy();
  }
  StopState stop() const override { return fleet_->stop(); }
  void ViewAdopted() override { fleet_->ViewAdopted(); }
  void BeginRound(uint64_t round) override { fleet_->BeginRound(round); }
  void AcknowledgeStop(uint64_t round) override {
    fleet_->AcknowledgeStop(round);
  }
  void RequestStop() override { fleet_->RequestStop(); }
  void Report(const PeerReport& report) override { fleet_->Report(report); }
  void Observe(const void* owner, std::function<void()> f) override {
    fleet_->Observe(owner, std::move(f));
  }
  void RemoveObserver(const void* owner) override {
    fleet_->RemoveObserver(owner);
  }

 private:
  const std::unique_ptr<Membership> fleet_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_FORWARDING_MEMBERSHIP_H_
