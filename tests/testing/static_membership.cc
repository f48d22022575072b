#include "tests/testing/static_membership.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace gossamer {
namespace {

View WithEpoch(View view) {
  view.epoch = std::max<uint64_t>(view.epoch, 1);
  return view;
}

}  // namespace

// A member's membership; its answers come from the shared fleet.
class StaticFleet::Peer final : public Membership {
 public:
  Peer(StaticFleet* fleet, PeerId id) : fleet_(fleet), id_(id) {}
  ~Peer() override {
    MutexLock lock(&fleet_->mu_);
    fleet_->hosts_[id_].loop = nullptr;
    fleet_->Advance();
  }

  const View& view() const override { return fleet_->view_; }

  std::optional<uint64_t> fleet_round() const override {
    MutexLock lock(&fleet_->mu_);
    const uint64_t round = fleet_->MaxRound();
    if (round == 0) return std::nullopt;
    return round;
  }

  std::optional<uint64_t> second_round() const override {
    MutexLock lock(&fleet_->mu_);
    const std::vector<uint64_t> rounds = fleet_->Rounds();
    if (rounds.size() < 2 || rounds[1] == 0) return std::nullopt;
    return rounds[1];
  }

  std::optional<double> fleet_busy() const override {
    MutexLock lock(&fleet_->mu_);
    double busy = 0;
    for (const auto& [id, host] : fleet_->hosts_) {
      busy = std::max(busy, host.report.timing.busy_seconds);
    }
    return busy;
  }

  StopState stop() const override {
    MutexLock lock(&fleet_->mu_);
    return fleet_->stop_;
  }

  void BeginRound(uint64_t round) override {
    MutexLock lock(&fleet_->mu_);
    fleet_->hosts_[id_].begun = round;
    fleet_->Advance();
  }

  void AcknowledgeStop(uint64_t round) override {
    MutexLock lock(&fleet_->mu_);
    fleet_->hosts_[id_].acknowledged = round;
    fleet_->Advance();
  }

  void RequestStop() override { fleet_->RequestStop(); }

  void Report(const PeerReport& report) override {
    MutexLock lock(&fleet_->mu_);
    Host& host = fleet_->hosts_[id_];
    host.report = report;
    host.reported = true;
    fleet_->Advance();
  }

  void Observe(const void* owner, std::function<void()> on_change) override {
    observers_->Set(owner, std::move(on_change));
    MutexLock lock(&fleet_->mu_);
    fleet_->hosts_[id_].observers = observers_;
  }
  void RemoveObserver(const void* owner) override { observers_->Remove(owner); }

 private:
  StaticFleet* const fleet_;
  const PeerId id_;
  // The pointer is shared with posted notifications, which must not outlive
  // this member.
  const std::shared_ptr<ChangeObservers> observers_ =
      std::make_shared<ChangeObservers>();
};

StaticFleet::StaticFleet(View view, uint64_t stop_slack)
    : view_(WithEpoch(std::move(view))), stop_slack_(stop_slack) {}

StaticFleet::~StaticFleet() = default;

std::unique_ptr<Membership> StaticFleet::Join(PeerId id, EventLoop* loop) {
  {
    MutexLock lock(&mu_);
    hosts_[id] = {};
    hosts_[id].loop = loop;
  }
  return std::make_unique<Peer>(this, id);
}

void StaticFleet::RequestStop() {
  MutexLock lock(&mu_);
  if (stop_.round != 0) return;
  stop_.round = std::max(MaxRound(), view_.from_round) + stop_slack_;
  NotifyAll();
  Advance();
}

std::map<PeerId, PeerReport> StaticFleet::reports() const {
  MutexLock lock(&mu_);
  std::map<PeerId, PeerReport> reports;
  for (const auto& [id, host] : hosts_) {
    if (host.reported) reports[id] = host.report;
  }
  return reports;
}

std::vector<uint64_t> StaticFleet::Rounds() const {
  std::vector<uint64_t> rounds;
  for (const auto& [id, host] : hosts_) {
    rounds.push_back(std::max(host.begun, host.report.round));
  }
  std::ranges::sort(rounds, std::greater());
  return rounds;
}

uint64_t StaticFleet::MaxRound() const {
  const std::vector<uint64_t> rounds = Rounds();
  return rounds.empty() ? 0 : rounds[0];
}

void StaticFleet::Advance() {
  if (stop_.round == 0 || stop_.committed) return;
  bool all = true;
  for (const auto& [id, host] : hosts_) {
    if (host.loop == nullptr) continue;
    if (host.begun >= stop_.round) {
      stop_.round = MaxRound() + stop_slack_;
      NotifyAll();
      return;
    }
    all = all && host.acknowledged == stop_.round;
  }
  if (!all) return;
  stop_.committed = true;
  NotifyAll();
}

void StaticFleet::NotifyAll() {
  for (const auto& [id, host] : hosts_) {
    if (host.loop == nullptr) continue;
    host.loop->Post([weak = host.observers] {
      if (const auto observers = weak.lock()) observers->Notify();
    });
  }
}

}  // namespace gossamer
