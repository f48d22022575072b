// Several topology services on one etcd: one serves, the others stand by.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/real_loop.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/service/etcd/etcd_store.h"
#include "runtime/service/topology_service.h"
#include "tests/runtime/service/etcd/etcd_server.h"

namespace gossamer {
namespace topology_replicas_test {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(30);

// One replica; its main thread is the test's.
class Replica {
 public:
  Replica(const std::string& etcd, const std::string& name,
          absl::Duration lease = absl::Seconds(60), int peers = 1) {
    auto store = EtcdStore::Open({.endpoints = etcd,
                                  .certificates = "",
                                  .run_id = "run",
                                  .self = name,
                                  .lease = lease});
    EXPECT_TRUE(store.ok()) << store.status();
    FleetOptions options;
    options.run_id = "run";
    options.expected = peers;
    auto service = TopologyService::Create(
        options, *std::move(store), [this] { return clock_.Now(); },
        [this](const std::string& line) { log_.push_back(line); });
    created_ = service.status();
    if (!service.ok()) return;
    service_ = *std::move(service);
    auto server = StartTopologyServer("127.0.0.1:0", service_.get());
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~Replica() {
    if (server_.server) {
      server_.server->Shutdown(std::chrono::system_clock::now());
    }
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_.port);
  }
  absl::StatusOr<wire::FleetStatus> Ask() const {
    return FleetClient(address()).GetStatus("run");
  }
  bool TickUntil(std::function<bool()> condition) {
    const absl::Time end = absl::Now() + kTimeout;
    while (!condition()) {
      if (absl::Now() > end) return false;
      EXPECT_TRUE(service_->Tick().ok());
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }
  TopologyService& service() { return *service_; }
  const absl::Status& created() const { return created_; }
  const std::vector<std::string>& log() const { return log_; }

 private:
  SteadyWallClock clock_;
  std::vector<std::string> log_;
  absl::Status created_;
  std::unique_ptr<TopologyService> service_;
  TopologyServer server_;
};

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(TopologyReplicasTest, OneInstanceServesAndTheOtherNamesIt) {
  EtcdServer etcd;
  auto first = std::make_unique<Replica>(etcd.address(), "first");
  Replica second(etcd.address(), "second");
  EXPECT_TRUE(first->Ask().ok());
  EXPECT_TRUE(absl::IsUnavailable(second.Ask().status()));
  EXPECT_THAT(MessageOf(second.Ask().status()), HasSubstr("first"));
  ASSERT_TRUE(second.service().Tick().ok());
  ASSERT_TRUE(second.service().Tick().ok());
  EXPECT_EQ(second.log().size(), 1) << "it says so once";
  FleetClient both(absl::StrCat(second.address(), ",", first->address()));
  EXPECT_TRUE(both.GetStatus("run").ok());
  first.reset();
  EXPECT_TRUE(second.TickUntil([&] { return second.Ask().ok(); }));
  EXPECT_TRUE(both.GetStatus("run").ok());
  EXPECT_THAT(second.log(), Contains("active: this instance serves now"));
}

// Held until the test says otherwise; keeps nothing.
class ScriptedStore final : public Store {
 public:
  absl::Status Acquire() override { return Held(); }
  absl::Status Held() const override {
    MutexLock lock(&mu_);
    return held_;
  }
  absl::StatusOr<std::optional<FleetRecord>> Load() override {
    return std::nullopt;
  }
  absl::Status Save(const FleetRecord&) override { return absl::OkStatus(); }
  void Report(const absl::Status& held) {
    MutexLock lock(&mu_);
    held_ = held;
  }

 private:
  mutable Mutex mu_;
  absl::Status held_ ABSL_GUARDED_BY(mu_);
};

// The store is lost before a tick notices it.  The service's knowledge, and so
// its refusals, may be out of date.
TEST(TopologyReplicasTest, AnInstanceThatHasLostItsLeaseRefusesEveryCall) {
  auto owned = std::make_unique<ScriptedStore>();
  ScriptedStore& store = *owned;
  FleetOptions options;
  options.run_id = "run";
  auto service = TopologyService::Create(
      options, std::move(owned), [] { return absl::UnixEpoch(); },
      [](const std::string&) {});
  ASSERT_TRUE(service.ok()) << service.status();
  const auto server = StartTopologyServer("127.0.0.1:0", service->get());
  ASSERT_TRUE(server.ok()) << server.status();
  FleetClient client(absl::StrCat("127.0.0.1:", server->port));
  EXPECT_TRUE(client.GetStatus("run").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client.Stop("run").status()));
  store.Report(absl::AbortedError("too late"));
  for (const absl::Status& answer :
       {client.GetStatus("run").status(), client.Stop("run").status()}) {
    EXPECT_TRUE(absl::IsUnavailable(answer)) << answer;
    EXPECT_THAT(MessageOf(answer), HasSubstr("stands by: too late"));
  }
  server->server->Shutdown(std::chrono::system_clock::now());
}

TEST(TopologyReplicasTest, AnUnreadableRecordInEtcdEndsAnInstance) {
  EtcdServer etcd;
  etcd.Put("gossamer/run/fleet", "garbage");
  Replica first(etcd.address(), "first");
  EXPECT_TRUE(absl::IsDataLoss(first.created()));
  etcd.PutForALease("gossamer/run/active", "somebody");
  Replica second(etcd.address(), "second");
  ASSERT_EQ(second.created(), absl::OkStatus());
  etcd.EndLeaseOf("gossamer/run/active");
  const absl::Status ended = second.service().Tick().status();
  EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
  EXPECT_THAT(MessageOf(ended), HasSubstr("gossamer/run/fleet"));
}

TEST(TopologyReplicasTest, AStandbyWithWrongOptionsIsRefusedAtOnce) {
  EtcdServer etcd;
  etcd.Put("gossamer/run/active", "somebody");
  Replica impossible(etcd.address(), "second", absl::Seconds(60), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(impossible.created()))
      << impossible.created();
}

}  // namespace topology_replicas_test
}  // namespace gossamer
