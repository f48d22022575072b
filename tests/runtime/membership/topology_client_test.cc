// The client against a real service on a loopback port.

#include "runtime/membership/topology_client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "algorithms/base/mutex.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/real_loop.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/membership/call_limit.h"
#include "runtime/membership/grpc_topology_client.h"
#include "runtime/service/sqlite_store.h"
#include "runtime/service/topology_service.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/runtime/transport/hostile_server.h"
#include "tests/testing/peak_memory.h"
#include "tests/testing/temporary_folder.h"
#include "topology/fleet/overlap_chooser.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/sketch.h"
#include "topology/fleet/view_message.h"
#include "topology/graph.h"

namespace gossamer {
namespace topology_client_test {

using ::testing::HasSubstr;

// The longest wait of a test for an event that will come.
constexpr absl::Duration kTimeout = absl::Seconds(30);

// A topology service on a loopback port, which keeps its fleet in `state`.
class Service {
 public:
  Service(const std::string& state, int peers, int port = 0) {
    FleetOptions options;
    options.run_id = "run";
    options.expected = peers;
    options.heartbeat = absl::Milliseconds(20);
    auto store = SqliteStore::Open(state);
    EXPECT_TRUE(store.ok()) << store.status();
    auto service = TopologyService::Create(
        options, *std::move(store), [this] { return clock_.Now(); },
        [](const std::string&) {});
    EXPECT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    auto server = StartTopologyServer("127.0.0.1:" + std::to_string(port),
                                      service_.get());
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~Service() { server_.server->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return server_.port; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  TopologyService& service() { return *service_; }

 private:
  SteadyWallClock clock_;
  std::unique_ptr<TopologyService> service_;
  TopologyServer server_;
};

// A client on its own loop, driven from the test's thread.
class Peer {
 public:
  Peer(const std::string& service, uint64_t id, uint64_t incarnation,
       uint64_t layout = 1,
       std::function<absl::Status(const wire::ViewMessage&)> check_view = {},
       std::vector<uint64_t> checkpoint_rounds = {}) {
    TopologyClientOptions options;
    options.check_view = std::move(check_view);
    options.service = service;
    options.run_id = "run";
    options.peer_id = {id};
    options.incarnation_id = incarnation;
    options.address = "127.0.0.1:" + std::to_string(incarnation);
    options.layout_fingerprint = layout;
    options.configuration_hash = 1;
    options.events = &events_;
    options.checkpoint_rounds = std::move(checkpoint_rounds);
    client_ = std::make_unique<TopologyClient>(
        options, &loop_, MakeGrpcTopologyCalls(service, &loop_));
    client_->Observe(this, [this] { Copy(); });
    client_->SetOnRefused([this](const absl::Status& s) {
      MutexLock lock(&mu_);
      refused_ = s;
      changed_.SignalAll();
    });
    client_->SetOnViewRefused([this](const absl::Status&) {
      MutexLock lock(&mu_);
      ++views_refused_;
    });
    client_->SetOnService([this](const absl::Status& s) {
      MutexLock lock(&mu_);
      service_changes_.push_back(s);
      changed_.SignalAll();
    });
    loop_.Start();
    Do([](TopologyClient& c) { c.Start(); });
  }
  ~Peer() {
    loop_.PostAndWait([this] { client_.reset(); }, kTimeout);
  }

  void Do(std::function<void(TopologyClient&)> action) {
    EXPECT_TRUE(
        loop_.PostAndWait([this, action] { action(*client_); }, kTimeout));
  }
  void CountEvent(EventKind kind, uint64_t times) {
    Do([=, this](TopologyClient&) { events_.Add(kind, times); });
  }
  // Returns true once `condition` holds of the client's last report.
  bool Wait(std::function<bool(const Peer&)> condition) {
    MutexLock lock(&mu_);
    return changed_.AwaitFor(&mu_, kTimeout, [&] { return condition(*this); });
  }
  bool WaitForView(uint64_t epoch) {
    return Wait([epoch](const Peer& p) { return p.view_.epoch >= epoch; });
  }

  // Used under mu_, in Wait().
  View view_;
  StopState stop_;
  std::optional<uint64_t> fleet_round_;
  uint32_t registered_ = 0;
  absl::Status refused_;
  std::vector<absl::Status> service_changes_;
  size_t donors_ = 0;
  int views_refused_ = 0;

 private:
  void Copy() {
    MutexLock lock(&mu_);
    view_ = client_->view();
    stop_ = client_->stop();
    fleet_round_ = client_->fleet_round();
    registered_ = client_->registered();
    donors_ = client_->donors().size();
    changed_.SignalAll();
  }

  Mutex mu_;
  CondVar changed_;
  EventTally events_;  // used on the loop
  std::unique_ptr<TopologyClient> client_;
  RealLoop loop_;
};

wire::FleetStatus StatusOf(const Service& service) {
  auto stub = wire::Topology::NewStub(grpc::CreateChannel(
      service.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_millis(10'000, GPR_TIMESPAN));
  wire::FleetStatus status;
  EXPECT_TRUE(stub->GetStatus(&context, {}, &status).ok());
  return status;
}

TEST(TopologyClientTest, PeersGetTheirViewAndTheFleetsRound) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 2);
  Peer one(service.address(), 0, 11);
  EXPECT_TRUE(one.Wait([](const Peer& p) { return p.registered_ == 1; }));
  Peer two(service.address(), 0, 12);
  ASSERT_TRUE(one.WaitForView(1));
  ASSERT_TRUE(two.WaitForView(1));
  two.Do([](TopologyClient& c) {
    EXPECT_EQ(c.view().RankOf(c.peer_id()), 1);
    PeerReport report;
    report.round = 42;
    c.Report(report);
  });
  EXPECT_TRUE(one.Wait([](const Peer& p) { return p.fleet_round_ == 42; }));
}

// The proxy that the environment names does not exist.
TEST(TopologyClientTest, AWebProxyIsNotUsedToReachTheService) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 1);
  ASSERT_EQ(setenv("http_proxy", "http://127.0.0.1:1", /*overwrite=*/1), 0);
  Peer one(service.address(), 0, 11);
  EXPECT_TRUE(one.WaitForView(1));
  ASSERT_EQ(unsetenv("http_proxy"), 0);
}

// The member loses its state as in a crash that lost the disk, but in one
// process; status reports it.
TEST(TopologyClientTest, AMemberThatLostItsStateGetsDonorsAndAView) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 2);
  Peer unknown("127.0.0.1:1", 1, 10);  // no service answers there
  unknown.Do([](TopologyClient& c) { EXPECT_FALSE(c.RenewIncarnation()); });
  Peer one(service.address(), 1, 11), two(service.address(), 2, 12);
  ASSERT_TRUE(one.WaitForView(1));
  ASSERT_TRUE(two.WaitForView(1));
  PeerReport report;
  report.round = 42;
  for (Peer* peer : {&one, &two}) {
    peer->Do([&](TopologyClient& c) { c.Report(report); });
  }
  EXPECT_TRUE(one.Wait([](const Peer& p) { return p.fleet_round_ == 42; }));
  report.spoilt = 1;
  one.Do([&](TopologyClient& c) {
    c.Report(report);
    EXPECT_TRUE(c.RenewIncarnation());
    EXPECT_EQ(c.view().epoch, 0u);
  });
  ASSERT_TRUE(one.Wait([](const Peer& p) { return p.donors_ == 1; }));
  one.Do([](TopologyClient& c) { c.SetReady(); });
  ASSERT_TRUE(one.WaitForView(1));
  EXPECT_EQ(StatusOf(service).peers(0).spoilt(), 1u);
}

TEST(TopologyClientTest, TheServiceCountsTheEventsThatAPeerReports) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 2);
  Peer one(service.address(), 1, 11);
  Peer two(service.address(), 2, 12);
  ASSERT_TRUE(one.WaitForView(1));
  two.CountEvent("checkpoint_failed", 1);
  two.CountEvent("checkpoint_failed", 10);
  two.CountEvent("checkpoint", 5);  // asks for no action, so it does not travel
  wire::FleetStatus status = StatusOf(service);
  const auto failed = [&status] {
    const auto& events = status.peers(1).events();
    const auto it = events.find("checkpoint_failed");
    return it == events.end() ? 0 : it->second;
  };
  for (int i = 0; i < 10000 && failed() < 11; ++i) status = StatusOf(service);
  EXPECT_EQ(status.peers(1).events_size(), 1);
  EXPECT_EQ(failed(), 11u);
  EXPECT_TRUE(status.peers(0).events().empty());
}

TEST(TopologyClientTest, AViewThatFailsItsCheckIsNotTaken) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 1);
  std::atomic<int> checked = 0;
  Peer doubter(service.address(), 1, 11, 1, [&checked](const auto& view) {
    // The client takes the first few for forged.
    return ++checked < 3 ? absl::UnauthenticatedError("forged")
                         : absl::OkStatus();
  });
  ASSERT_TRUE(doubter.WaitForView(1));
  doubter.Wait([](const Peer& p) {
    EXPECT_EQ(p.views_refused_, 2);
    EXPECT_TRUE(p.refused_.ok());
    return true;
  });
}

// Registers, and returns how that was answered.
absl::Status Register(EventLoop& loop, TopologyCalls& calls) {
  absl::Notification heard;
  absl::Status answered;
  loop.Post([&] {
    calls.Register({}, [&](const absl::Status& s, const auto&) {
      answered = s;
      heard.Notify();
    });
  });
  heard.WaitForNotification();
  return answered;
}

// A client of a fleet of eight takes no more than 64 KiB, whatever else the
// service sends; one of a larger fleet takes more.
TEST(TopologyClientTest, AnswersAreBoundedByTheFleetsSize) {
  static_assert(MaxAnswerBytes(8 * kMaxGrowth) == 64 << 10);
  static_assert(MaxAnswerBytes(kMaxPeers) == kMaxAnswerBytes);
  wire::FleetStatus status;  // a registration knows no field of it
  status.set_run_id(std::string((64 << 10) + 1, 'x'));
  const HostileServer talkative(status.SerializeAsString());
  const auto answer = [&](int peers) {
    RealLoop loop;
    auto calls =
        MakeGrpcTopologyCalls(talkative.address(), &loop, nullptr, kTimeout,
                              MaxAnswerBytes(kMaxGrowth * peers));
    loop.Start();
    const absl::Status answered = Register(loop, *calls);
    loop.PostAndWait([&] { calls.reset(); }, kTimeout);
    return answered;
  };
  EXPECT_TRUE(absl::IsResourceExhausted(answer(8))) << answer(8);
  EXPECT_TRUE(answer(64).ok()) << answer(64);
  FleetClient small(talkative.address(), nullptr, MaxAnswerBytes(8));
  EXPECT_TRUE(
      absl::IsResourceExhausted(small.GetStatus("run", kTimeout).status()));
  EXPECT_TRUE(FleetClient(talkative.address()).GetStatus("run", kTimeout).ok());
}

// Answers in time only calls that may take so long.
class SlowServer final : public wire::Topology::Service {
 public:
  explicit SlowServer(absl::Duration takes) : takes_(takes) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status Register(grpc::ServerContext* context,
                        const wire::RegisterRequest*,
                        wire::RegisterResponse*) override {
    if (absl::FromChrono(context->deadline()) - absl::Now() >= takes_) {
      return grpc::Status::OK;
    }
    return {grpc::StatusCode::DEADLINE_EXCEEDED, ""};
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const absl::Duration takes_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(TopologyClientTest, AServiceOverASlowLinkIsHeardOnceCallsMayTakeAsLong) {
  constexpr absl::Duration kFirst = absl::Seconds(2);
  SlowServer slow(1.2 * kFirst);
  RealLoop loop;
  auto calls = MakeGrpcTopologyCalls(slow.address(), &loop, nullptr, kFirst);
  loop.Start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Register(loop, *calls)));
  const absl::Status second = Register(loop, *calls);
  EXPECT_TRUE(second.ok()) << second;
  loop.PostAndWait([&] { calls.reset(); }, kTimeout);
}

TEST(CallLimitTest, FollowsAnswersBetweenItsBounds) {
  CallLimit limit(absl::Seconds(2));
  EXPECT_EQ(limit.limit(), absl::Seconds(2));
  limit.TimedOut();
  limit.TimedOut();
  EXPECT_EQ(limit.limit(), absl::Seconds(4));
  limit.Answered(absl::Milliseconds(1500));
  EXPECT_EQ(limit.limit(), absl::Seconds(3));
  limit.Answered(absl::Milliseconds(1));
  EXPECT_EQ(limit.limit(), absl::Seconds(2));
}

TEST(TopologyClientTest, AGzipBombFromAServiceIsRefused) {
  const HostileServer hostile;
  RealLoop loop;
  auto calls =
      MakeGrpcTopologyCalls(hostile.address(), &loop, nullptr, kTimeout);
  loop.Start();
  ResetPeakMemory();
  const int64_t before = PeakMemory();
  const absl::Status answer = Register(loop, *calls);
  EXPECT_TRUE(absl::IsUnimplemented(answer)) << answer;
  loop.PostAndWait([&] { calls.reset(); }, kTimeout);
  // A command of a person is bounded too.
  FleetClient client(hostile.address());
  const auto status = client.GetStatus("run", kTimeout);
  EXPECT_TRUE(absl::IsUnimplemented(status.status())) << status.status();
  EXPECT_LT(PeakMemory() - before, kBombRefusal);
}

TEST(TopologyClientTest, WaitsForAServiceThatIsNotThereYet) {
  TemporaryFolder folder;
  int port = 0;
  { port = Service(folder.path() + "/a.sqlite", 1).port(); }
  Peer peer("127.0.0.1:" + std::to_string(port), 1, 11);
  ASSERT_TRUE(
      peer.Wait([](const Peer& p) { return !p.service_changes_.empty(); }));
  Service service(folder.path() + "/b.sqlite", 1, port);
  ASSERT_TRUE(peer.WaitForView(1));
  EXPECT_TRUE(peer.Wait([](const Peer& p) {
    return p.service_changes_.size() == 2 && p.service_changes_[1].ok();
  }));
  peer.Wait([](const Peer& p) {
    EXPECT_THAT(std::string(p.service_changes_[0].message()),
                HasSubstr("waiting for it"));
    return true;
  });
}

TEST(TopologyClientTest, KeepsItsViewOverARestartOfTheService) {
  TemporaryFolder folder;
  const std::string state = folder.path() + "/fleet.sqlite";
  auto service = std::make_unique<Service>(state, 2);
  const int port = service->port();
  Peer one(service->address(), 1, 11);
  Peer two(service->address(), 2, 12);
  ASSERT_TRUE(one.WaitForView(1));
  ASSERT_TRUE(two.WaitForView(1));
  uint64_t generation = 0;
  one.Wait([&](const Peer& p) {
    generation = p.view_.generation;
    return true;
  });
  service.reset();
  ASSERT_TRUE(
      one.Wait([](const Peer& p) { return p.service_changes_.size() == 1; }));
  ASSERT_TRUE(
      two.Wait([](const Peer& p) { return p.service_changes_.size() == 1; }));
  service = std::make_unique<Service>(state, 2, port);
  ASSERT_TRUE(
      one.Wait([](const Peer& p) { return p.service_changes_.size() == 2; }));
  ASSERT_TRUE(
      two.Wait([](const Peer& p) { return p.service_changes_.size() == 2; }));
  two.Do([](TopologyClient& c) {
    PeerReport report;
    report.round = 77;
    c.Report(report);
  });
  ASSERT_TRUE(one.Wait([](const Peer& p) { return p.fleet_round_ == 77; }));
  one.Wait([&](const Peer& p) {
    EXPECT_EQ(p.view_.epoch, 1);
    EXPECT_EQ(p.view_.generation, generation);
    return true;
  });
}

TEST(TopologyClientTest, TheFleetAgreesOnItsEnd) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 2);
  Peer one(service.address(), 1, 11);
  Peer two(service.address(), 2, 12);
  ASSERT_TRUE(one.WaitForView(1));
  ASSERT_TRUE(two.WaitForView(1));
  one.Do([](TopologyClient& c) { c.RequestStop(); });
  for (Peer* peer : {&one, &two}) {
    ASSERT_TRUE(peer->Wait([](const Peer& p) { return p.stop_.round != 0; }));
    peer->Do([](TopologyClient& c) { c.AcknowledgeStop(c.stop().round); });
  }
  for (Peer* peer : {&one, &two}) {
    ASSERT_TRUE(peer->Wait([](const Peer& p) { return p.stop_.committed; }));
  }
  for (Peer* peer : {&one, &two}) {
    absl::Notification finished;
    peer->Do([&finished](TopologyClient& c) {
      c.Finish(kTimeout, [&finished] { finished.Notify(); });
    });
    ASSERT_TRUE(finished.WaitForNotificationWithTimeout(kTimeout));
  }
  EXPECT_TRUE(service.service().Tick()->finished);
}

TEST(TopologyClientTest, FinishDoesNotWaitForAServiceThatIsGone) {
  TemporaryFolder folder;
  auto service = std::make_unique<Service>(folder.path() + "/fleet.sqlite", 1);
  Peer one(service->address(), 1, 11);
  ASSERT_TRUE(one.WaitForView(1));
  service.reset();
  absl::Notification finished;
  one.Do([&finished](TopologyClient& c) {
    c.Finish(absl::Milliseconds(50), [&finished] { finished.Notify(); });
  });
  EXPECT_TRUE(finished.WaitForNotificationWithTimeout(kTimeout));
}

// The fleet has ended, and its service is that of another one by now.
TEST(TopologyClientTest, APeerThatTrainedToTheEndIsNotRefused) {
  TemporaryFolder folder;
  std::optional<Service> service(std::in_place, folder.path() + "/a.sqlite", 1);
  const int port = service->port();
  Peer one(service->address(), 1, 11);
  ASSERT_TRUE(one.WaitForView(1));
  service.reset();
  service.emplace(folder.path() + "/b.sqlite", 1, port);
  absl::Notification finished;
  one.Do([&finished](TopologyClient& c) {
    c.Finish(kTimeout, [&finished] { finished.Notify(); });
  });
  EXPECT_TRUE(finished.WaitForNotificationWithTimeout(kTimeout / 2));
  EXPECT_TRUE(one.Wait([](const Peer& p) { return p.refused_.ok(); }));
}

TEST(TopologyClientTest, ARefusedPeerLearnsWhy) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 2);
  Peer one(service.address(), 1, 11, 0xaaaa);
  ASSERT_TRUE(one.Wait([](const Peer& p) { return p.registered_ == 1; }));
  Peer two(service.address(), 2, 12, 0xbbbb);
  ASSERT_TRUE(two.Wait([](const Peer& p) { return !p.refused_.ok(); }));
  two.Wait([](const Peer& p) {
    EXPECT_THAT(
        std::string(p.refused_.message()),
        testing::AllOf(HasSubstr("00000000bbbb"), HasSubstr("00000000aaaa")));
    return true;
  });
}

TEST(TopologyClientTest, AReplacedProcessIsRefused) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 1);
  Peer old_incarnation(service.address(), 1, 11);
  ASSERT_TRUE(old_incarnation.WaitForView(1));
  Peer new_incarnation(service.address(), 1, 12);
  ASSERT_TRUE(old_incarnation.Wait([](const Peer& p) {
    return p.refused_.code() == absl::StatusCode::kAborted;
  }));
  EXPECT_TRUE(new_incarnation.WaitForView(2));
}

// The copy of the state is from before the peer restarted: the peer goes on
// with the view of that service.
TEST(TopologyClientTest, AServiceThatForgotARestartTakesThePeerBack) {
  TemporaryFolder folder;
  const std::string state = folder.path() + "/fleet.sqlite";
  const std::string copy = folder.path() + "/copy.sqlite";
  std::optional<Service> service(std::in_place, state, 2);
  const int port = service->port();
  const std::string address = service->address();
  Peer other(address, 2, 12);
  {
    Peer first(address, 1, 11);
    ASSERT_TRUE(first.WaitForView(1));
    ASSERT_TRUE(other.WaitForView(1));
    service.reset();
    std::filesystem::copy_file(state, copy);
    service.emplace(state, 2, port);
  }
  Peer second(address, 1, 21);
  ASSERT_TRUE(second.Wait([](const Peer& p) { return p.donors_ > 0; }));
  second.Do([](TopologyClient& c) { c.SetReady(); });
  ASSERT_TRUE(second.WaitForView(1));
  second.Do([](TopologyClient& c) { c.ViewAdopted(); });
  service.reset();
  uint64_t epoch = 0;
  second.Wait([&](const Peer& p) {
    epoch = p.view_.epoch;
    return true;
  });
  service.emplace(copy, 2, port);
  EXPECT_TRUE(second.Wait([](const Peer& p) {
    return (p.service_changes_.size() >= 2 && p.service_changes_.back().ok()) ||
           !p.refused_.ok();
  }));
  EXPECT_TRUE(second.Wait([](const Peer& p) { return p.refused_.ok(); }));
  EXPECT_EQ(StatusOf(*service).view_epoch(), epoch) << "not the copy's";
}

TEST(TopologyClientTest, AServiceThatHasLostItsStateIsHandedTheView) {
  TemporaryFolder folder;
  std::optional<Service> service(std::in_place, folder.path() + "/a.sqlite", 2);
  const int port = service->port();
  Peer first(service->address(), 1, 11);
  Peer second(service->address(), 2, 12);
  ASSERT_TRUE(first.WaitForView(1));
  ASSERT_TRUE(second.WaitForView(1));
  for (Peer* p : {&first, &second}) {
    p->Do([](TopologyClient& c) { c.ViewAdopted(); });
  }
  service.reset();
  service.emplace(folder.path() + "/b.sqlite", 2, port);
  for (Peer* p : {&first, &second}) {
    EXPECT_TRUE(p->Wait([](const Peer& p) {
      return (p.service_changes_.size() >= 2 &&
              p.service_changes_.back().ok()) ||
             !p.refused_.ok();
    }));
    EXPECT_TRUE(p->Wait([](const Peer& p) { return p.refused_.ok(); }));
  }
  const wire::FleetStatus status = StatusOf(*service);
  EXPECT_EQ(status.view_epoch(), 1u);
  ASSERT_EQ(status.peers_size(), 2);
  // No peer was sent back to its beginning.
  Peer third(service->address(), 2, 13);
  EXPECT_TRUE(third.Wait([](const Peer& p) { return p.donors_ > 0; }));
}

TEST(TopologyClientTest, AServiceTakesBackAViewOfTenThousandMembers) {
  constexpr int kMany = 10'000;
  TemporaryFolder folder;
  Service service(folder.path() + "/empty.sqlite", kMany);
  View view;
  view.run_id = "run";
  view.generation = 7;
  view.epoch = 3;
  view.from_round = 20;
  view.configuration_hash = 1;
  view.schedule = FleetOptions().schedule;
  view.seed = FleetOptions().seed;
  for (uint64_t id = 1; id <= kMany; ++id) {
    view.members.push_back(
        {.id = {id},
         .address = absl::StrFormat("node-%06d.train.example:7070", id)});
  }
  wire::RegisterRequest request;
  request.set_protocol_version(kControlVersions.newest);
  request.set_oldest_protocol_version(kControlVersions.oldest);
  request.set_run_id("run");
  request.set_peer_id(2);
  request.set_incarnation_id(12);
  request.set_address(view.members[1].address);
  request.set_has_parameters(true);
  request.set_trains(true);
  request.set_layout_fingerprint(1);
  request.set_configuration_hash(1);
  *request.mutable_view() = ToMessage(view);
  ASSERT_GT(request.ByteSizeLong(), 300'000u);
  auto stub = wire::Topology::NewStub(grpc::CreateChannel(
      service.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  wire::RegisterResponse response;
  const grpc::Status registered = stub->Register(&context, request, &response);
  ASSERT_TRUE(registered.ok()) << registered.error_message();
  EXPECT_EQ(response.registered(), static_cast<uint32_t>(kMany));
}

// If it counted as a training peer, its first random parameters would enter the
// mean: no view would send it to its checkpoint again.
TEST(TopologyClientTest, APeerStillReadingItsCheckpointIsSentToItAgain) {
  for (const bool other_trains : {false, true}) {
    SCOPED_TRACE(other_trains);
    TemporaryFolder folder;
    std::optional<Service> service(std::in_place, folder.path() + "/a.sqlite",
                                   2);
    const int port = service->port();
    Peer first(service->address(), 1, 11, 1, {}, {5});
    Peer second(service->address(), 2, 12, 1, {}, {5});
    ASSERT_TRUE(first.WaitForView(1));
    ASSERT_TRUE(second.WaitForView(1));
    uint64_t generation = 0;
    ASSERT_TRUE(second.Wait([&](const Peer& p) {
      generation = p.view_.generation;
      return p.view_.resume_round == 5;
    }));
    if (other_trains) {
      first.Do([](TopologyClient& c) {
        c.ViewAdopted();
        c.BeginRound(6);
        PeerReport report;
        report.round = 6;
        c.Report(report);
      });
    }
    service.reset();
    service.emplace(folder.path() + "/b.sqlite", 2, port);
    ASSERT_TRUE(second.Wait([&](const Peer& p) {
      return p.view_.generation > generation && p.view_.RankOf({2});
    }));
    EXPECT_TRUE(
        second.Wait([](const Peer& p) { return p.view_.resume_round == 5; }));
    EXPECT_TRUE(second.Wait([](const Peer& p) { return p.refused_.ok(); }));
  }
}

// Calls that fail until the test answers one, and keep the last request.
class LateCalls final : public TopologyCalls {
 public:
  explicit LateCalls(EventLoop* loop) : loop_(loop) {}
  void Register(wire::RegisterRequest request,
                Done<wire::RegisterResponse> done) override {
    registered = std::move(request);
    loop_->Post([this, done = std::move(done)] {
      wire::RegisterResponse response;
      response.set_peer_id(2);
      response.set_registered(2);
      response.set_expected(2);
      response.set_heartbeat_seconds(1);
      done(up ? absl::OkStatus() : absl::UnavailableError("away"), response);
    });
  }
  void Heartbeat(wire::HeartbeatRequest,
                 Done<wire::HeartbeatResponse> done) override {
    ++heartbeats;
    loop_->Post([this, done = std::move(done)] {
      done(up ? absl::OkStatus() : absl::UnavailableError("away"), answer);
    });
  }

  bool up = false;
  wire::HeartbeatResponse answer;
  int heartbeats = 0;
  wire::RegisterRequest registered;

 private:
  EventLoop* const loop_;
};

class LastViewTest : public ::testing::Test {
 protected:
  void Begin(std::vector<uint64_t> checkpoints) {
    auto last = std::make_shared<ReceivedView>();
    last->view.run_id = "run";
    last->view.generation = 7;
    last->view.epoch = 3;
    last->view.from_round = 20;
    last->view.members = {{.id = {1}, .address = "a"},
                          {.id = {2}, .address = "b"}};
    last->message = ToMessage(last->view);
    TopologyClientOptions options;
    options.run_id = "run";
    options.peer_id = {2};
    options.incarnation_id = 12;
    options.checkpoint_rounds = std::move(checkpoints);
    options.last_view = std::move(last);
    options.answer_timeout = absl::Seconds(10);
    options.auto_overlap = true;
    auto calls = std::make_unique<LateCalls>(&loop_);
    calls_ = calls.get();
    client_ = std::make_unique<TopologyClient>(std::move(options), &loop_,
                                               std::move(calls));
    client_->Observe(this, [this] { ++notices_; });
    client_->Start();
  }

  VirtualLoop shared_;
  VirtualPeerLoop loop_{&shared_};
  LateCalls* calls_ = nullptr;
  std::unique_ptr<TopologyClient> client_;
  int notices_ = 0;
};

TEST_F(LastViewTest, IsOfferedOnceTheServiceHasBeenSilentForLong) {
  Begin({30, 40});
  shared_.RunFor(absl::Seconds(9));
  EXPECT_EQ(client_->last_view(), nullptr);
  client_->ResumeFromLastView();
  EXPECT_EQ(client_->view().epoch, 0u) << "it is not time yet";
  EXPECT_EQ(notices_, 0);
  shared_.RunFor(absl::Seconds(5));
  ASSERT_NE(client_->last_view(), nullptr);
  EXPECT_GT(notices_, 0) << "whoever waits must look again";
  client_->ResumeFromLastView();
  EXPECT_EQ(client_->view().epoch, 3u);
  EXPECT_EQ(client_->view().resume_round, 40u);
  EXPECT_TRUE(client_->resumed_from_last_view());
  EXPECT_EQ(client_->last_view(), nullptr) << "once";
  // The service hears that the peer trains, and by which view.
  calls_->up = true;
  shared_.RunFor(absl::Seconds(5));
  EXPECT_TRUE(calls_->registered.trains());
  EXPECT_TRUE(calls_->registered.has_parameters());
  EXPECT_EQ(calls_->registered.view().epoch(), 3u);
  EXPECT_EQ(calls_->registered.checkpoint_rounds_size(), 0);
}

TEST_F(LastViewTest, IsNotOfferedIfTheServiceAnswers) {
  Begin({40});
  shared_.RunFor(absl::Seconds(5));
  calls_->up = true;
  shared_.RunFor(absl::Seconds(30));
  EXPECT_EQ(client_->last_view(), nullptr);
  EXPECT_FALSE(calls_->registered.trains());
}

TEST_F(LastViewTest, IsOfNoUseWithoutACheckpoint) {
  Begin({});
  shared_.RunFor(absl::Minutes(1));
  EXPECT_EQ(client_->last_view(), nullptr);
}

// The service waits for what it chooses the overlap by.  A round without an
// exchange repeats the number of those that have been measured.
TEST_F(LastViewTest, EnoughExchangesToChooseTheOverlapHastenOneHeartbeat) {
  Begin({40});
  shared_.RunFor(absl::Seconds(14));
  client_->ResumeFromLastView();
  calls_->up = true;
  shared_.RunFor(absl::Seconds(5));
  const auto heartbeats_after = [this](uint64_t exchanges) {
    PeerReport report;
    report.round = 41;
    report.timing = {.rounds = exchanges};
    calls_->heartbeats = 0;
    client_->Report(report);
    shared_.RunFor(absl::Milliseconds(1));
    return calls_->heartbeats;
  };
  for (int times : {1, 2}) {
    SCOPED_TRACE(times);
    EXPECT_EQ(heartbeats_after(kExchangesToChoose - 1), 0);
    EXPECT_EQ(heartbeats_after(kExchangesToChoose), 1);
    EXPECT_EQ(heartbeats_after(kExchangesToChoose), 0);
    EXPECT_EQ(heartbeats_after(kExchangesToChoose + 1), 0);
  }
}

// Another overlap may follow soon, and all members should hear of it soon.
TEST_F(LastViewTest, HeartbeatsAreEagerInTheFirstRoundsOfAnOverlap) {
  Begin({40});
  shared_.RunFor(absl::Seconds(14));
  client_->ResumeFromLastView();
  calls_->up = true;
  shared_.RunFor(absl::Seconds(5));
  const auto heartbeats_from = [this](uint64_t round) {
    client_->BeginRound(round);
    shared_.RunFor(absl::Seconds(2));
    calls_->heartbeats = 0;
    shared_.RunFor(absl::Seconds(10));
    return calls_->heartbeats;
  };
  EXPECT_NEAR(heartbeats_from(45), 10, 1);
  View next = client_->view();
  next.epoch = 4;
  next.from_round = 50;
  next.overlap_steps = 3;
  *calls_->answer.mutable_view() = ToMessage(next);
  EXPECT_NEAR(heartbeats_from(46), 50, 1);
  EXPECT_NEAR(heartbeats_from(50 + kEagerRounds - 1), 50, 1);
  PeerReport report;
  report.rounds_per_second = 0.5;
  client_->Report(report);
  EXPECT_NEAR(heartbeats_from(50 + kEagerRounds - 1), 10, 1) << "long rounds";
  report.rounds_per_second = 5;
  client_->Report(report);
  EXPECT_NEAR(heartbeats_from(50 + kEagerRounds - 1), 50, 5);
  EXPECT_NEAR(heartbeats_from(50 + kEagerRounds), 10, 1);
  // A view with the same overlap, after a member has left, say.
  next.epoch = 5;
  next.from_round = 80;
  *calls_->answer.mutable_view() = ToMessage(next);
  EXPECT_NEAR(heartbeats_from(80), 10, 1);
}

TEST_F(LastViewTest, TheServiceIsBelievedAboutSuspectedPeersAlone) {
  Begin({40});
  calls_->up = true;
  shared_.RunFor(absl::Seconds(5));
  client_->Suspect({{1}, {3}});
  for (const uint64_t peer : {3, 3, 4}) calls_->answer.add_heard(peer);
  shared_.RunFor(absl::Seconds(2));
  EXPECT_THAT(client_->heard_by_service(), ::testing::ElementsAre(PeerId{3}));
  // Another suspicion, and a service that does not answer, leave nothing of it.
  client_->Suspect({{1}});
  EXPECT_TRUE(client_->heard_by_service().empty());
  shared_.RunFor(absl::Seconds(2));
  EXPECT_TRUE(client_->heard_by_service().empty());
  client_->Suspect({{3}});
  shared_.RunFor(absl::Seconds(2));
  EXPECT_THAT(client_->heard_by_service(), ::testing::ElementsAre(PeerId{3}));
  calls_->up = false;
  shared_.RunFor(absl::Seconds(5));
  EXPECT_TRUE(client_->heard_by_service().empty());
}

TEST(TopologyClientTest, HeartbeatsAtDifferentMomentsShareSketchedRounds) {
  TemporaryFolder folder;
  Service service(folder.path() + "/fleet.sqlite", 2);
  Peer one(service.address(), 1, 11);
  Peer two(service.address(), 2, 12);
  ASSERT_TRUE(one.WaitForView(1));
  ASSERT_TRUE(two.WaitForView(1));
  // Between two heartbeats one peer sketches rounds 5 to 9, the other 7 to 11.
  uint64_t first = 5;
  for (Peer* peer : {&one, &two}) {
    peer->Do([first](TopologyClient& c) {
      for (uint64_t round = first; round < first + 5; ++round) {
        PeerReport report;
        report.round = round;
        report.sketch.assign(kSketchBuckets, first == 5 ? 1.0 : 3.0);
        report.sketch_round = round;
        c.Report(report);
      }
    });
    first += 2;
  }
  wire::FleetStatus status = StatusOf(service);
  for (int i = 0; i < 10000 && status.consensus_round() == 0; ++i) {
    status = StatusOf(service);
  }
  EXPECT_EQ(status.consensus_round(), 8);
  EXPECT_EQ(status.consensus_distance(), kSketchBuckets);
  EXPECT_EQ(status.peers_size(), 2);
}

}  // namespace topology_client_test
}  // namespace gossamer
