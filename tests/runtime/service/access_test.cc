// The rights of callers of the service, over gRPC with certificates and without
// a network.

#include "runtime/service/access.h"

#include <atomic>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/descriptor_limit.h"
#include "runtime/base/real_loop.h"
#include "runtime/identity/authority.h"
#include "runtime/membership/grpc_topology_client.h"
#include "runtime/membership/view_signature.h"
#include "runtime/service/sqlite_store.h"
#include "runtime/service/topology_service.h"
#include "runtime/transport/grpc/tls.h"
#include "tests/runtime/identity/test_run.h"
#include "tests/runtime/transport/hostile_server.h"
#include "tests/runtime/transport/raw_client.h"
#include "tests/runtime/transport/raw_socket.h"
#include "tests/testing/peak_memory.h"
#include "tests/testing/temporary_folder.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace access_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Identity PeerOf(uint64_t id) { return {.run = "run", .peer = {id}}; }
Identity Operator() {
  return {.run = "run", .role = Role::kOperator, .peer = {}};
}

TEST(AccessPolicyTest, APeerSpeaksForItselfOnly) {
  AccessPolicy policy;
  const absl::Time now = absl::UnixEpoch();
  for (const Call call : {Call::kRegister, Call::kHeartbeat}) {
    AccessRequest request{.call = call, .claimed = {3}, .run_id = "run"};
    EXPECT_TRUE(policy.Check(PeerOf(3), request, now).ok());
    EXPECT_TRUE(
        absl::IsPermissionDenied(policy.Check(PeerOf(4), request, now)));
    EXPECT_TRUE(
        absl::IsPermissionDenied(policy.Check(Operator(), request, now)));
    request.run_id = "other";
    EXPECT_FALSE(policy.Check(PeerOf(3), request, now).ok());
    // An id that the service assigns is only for fleets without certificates.
    request = {.call = call, .claimed = {}, .run_id = "run"};
    EXPECT_FALSE(policy.Check(PeerOf(3), request, now).ok());
  }
}

TEST(AccessPolicyTest, OperatorsAndMembersStopAFleet) {
  AccessPolicy policy;
  const absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(policy.Check(Operator(), {.call = Call::kStop}, now).ok());
  EXPECT_TRUE(
      policy.Check(PeerOf(3), {.call = Call::kStop, .member = true}, now).ok());
  EXPECT_FALSE(policy.Check(PeerOf(3), {.call = Call::kStop}, now).ok());
}

// A survey uses others' links and time, so only their fleet may ask for it.
TEST(AccessPolicyTest, OperatorsAndMembersMeasureAFleet) {
  AccessPolicy policy;
  const absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(policy.Check(Operator(), {.call = Call::kMeasure}, now).ok());
  EXPECT_TRUE(
      policy.Check(PeerOf(3), {.call = Call::kMeasure, .member = true}, now)
          .ok());
  EXPECT_TRUE(absl::IsPermissionDenied(
      policy.Check(PeerOf(3), {.call = Call::kMeasure}, now)));
}

TEST(AccessPolicyTest, APeersFloodOfCallsIsBoundedAndHurtsNoOther) {
  AccessPolicy policy;
  absl::Time now = absl::UnixEpoch();
  const AccessRequest three{
      .call = Call::kRegister, .claimed = {3}, .run_id = "run"};
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) {
    admitted += policy.Check(PeerOf(3), three, now).ok();
  }
  EXPECT_EQ(admitted, 10);
  EXPECT_TRUE(absl::IsResourceExhausted(policy.Check(PeerOf(3), three, now)));
  EXPECT_TRUE(
      policy
          .Check(PeerOf(4),
                 {.call = Call::kRegister, .claimed = {4}, .run_id = "run"},
                 now)
          .ok());
  now += absl::Seconds(1);
  EXPECT_TRUE(policy.Check(PeerOf(3), three, now).ok());
}

// A service behind certificates, and stubs with any credentials.
class LockedServiceTest : public ::testing::Test {
 protected:
  LockedServiceTest() {
    RaiseDescriptorLimit();  // both ends are in this process
    Begin("fleet.sqlite");
  }
  ~LockedServiceTest() override { End(); }

  void Begin(const std::string& state, int expected = 1) {
    FleetOptions options;
    options.run_id = "run";
    options.expected = expected;
    options.heartbeat = absl::Milliseconds(10);
    auto store = SqliteStore::Open(folder_.path() + "/" + state);
    const auto certificates = run_.Certificates(
        run_.Other(Role::kTopology), [this] { return absl::Now() + later_; });
    auto service = TopologyService::Create(
        options, *std::move(store), [this] { return clock_.Now() + passed_; },
        [this](const std::string& line) {
          if (line.find("_refused: ") != std::string::npos ||
              line.find(" is removed: ") != std::string::npos ||
              line.find("trust_unread: ") != std::string::npos ||
              line.find("certificate_expires: ") != std::string::npos) {
            MutexLock lock(&log_mu_);
            log_.push_back(line);
          }
        },
        certificates);
    EXPECT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    auto server =
        StartTopologyServer("127.0.0.1:0", service_.get(), certificates);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void End() { server_.server->Shutdown(std::chrono::system_clock::now()); }

  std::unique_ptr<wire::Topology::Stub> StubWith(
      std::shared_ptr<grpc::ChannelCredentials> credentials,
      grpc::ChannelArguments arguments = {}) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return wire::Topology::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(server_.port), credentials, arguments));
  }
  std::unique_ptr<wire::Topology::Stub> StubOf(const Identity& who) {
    return StubWith(
        TlsCredentials(run_.Certificates(who)).Channel(Role::kTopology));
  }
  // The stub keeps the certificate that it has, and gets no other one.
  std::unique_ptr<wire::Topology::Stub> StubOfOld(const Identity& who) {
    return StubWith(TlsCredentials(*CertificateFolder::Open(run_.PathOf(who)))
                        .Channel(Role::kTopology));
  }
  static wire::RegisterRequest RequestOf(uint64_t id) {
    wire::RegisterRequest request;
    request.set_protocol_version(kControlVersions.newest);
    request.set_run_id("run");
    request.set_peer_id(id);
    request.set_incarnation_id(5);
    request.set_address("127.0.0.1:7000");
    return request;
  }
  template <typename Request, typename Response>
  static grpc::Status Ask(wire::Topology::Stub& stub,
                          grpc::Status (wire::Topology::Stub::*call)(
                              grpc::ClientContext*, const Request&, Response*),
                          const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_millis(20'000, GPR_TIMESPAN));
    return (stub.*call)(&context, request, response);
  }
  static grpc::Status Register(wire::Topology::Stub& stub, uint64_t id) {
    wire::RegisterResponse response;
    return Ask(stub, &wire::Topology::Stub::Register, RequestOf(id), &response);
  }
  static grpc::Status Stop(wire::Topology::Stub& stub) {
    wire::StopResponse response;
    return Ask(stub, &wire::Topology::Stub::Stop, wire::StopRequest(),
               &response);
  }

  grpc::StatusCode Measure(const Identity& who) {
    wire::MeasureLinksRequest request;
    request.set_run_id("run");
    wire::LinkSurveyStatus response;
    return Ask(*StubOf(who), &wire::Topology::Stub::MeasureLinks, request,
               &response)
        .error_code();
  }
  // Sends the heartbeat of a training peer in a fleet under way, with `change`.
  template <typename Change>
  wire::HeartbeatResponse Beat(uint64_t id, Change change) {
    wire::HeartbeatRequest request;
    request.set_run_id("run");
    request.set_peer_id(id);
    request.set_incarnation_id(5 + 100 * id);
    request.set_round(100);
    request.set_round_begun(100);
    change(request);
    wire::HeartbeatResponse response;
    const grpc::Status status =
        Ask(*StubOf(run_.Peer(id)), &wire::Topology::Stub::Heartbeat, request,
            &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  std::vector<uint64_t> MembersSentTo(uint64_t id) {
    const auto answer = Beat(id, [](wire::HeartbeatRequest&) {});
    const auto& ids = answer.view().member_id();
    return {ids.begin(), ids.end()};
  }
  // Assembles peers 1 .. n.
  void BeginWith(int n) {
    End();
    Begin("larger.sqlite", n);
    for (int id = 1; id <= n; ++id) {
      wire::RegisterRequest request = RequestOf(id);
      request.set_incarnation_id(5 + 100 * id);
      wire::RegisterResponse response;
      ASSERT_TRUE(Ask(*StubOf(run_.Peer(id)), &wire::Topology::Stub::Register,
                      request, &response)
                      .ok());
    }
  }

  std::vector<std::string> Log() {
    MutexLock lock(&log_mu_);
    return log_;
  }

  const TestRun run_;
  const TemporaryFolder folder_;
  std::atomic<absl::Duration> later_ = absl::ZeroDuration();
  // The time that has passed by the service's own clock.
  std::atomic<absl::Duration> passed_ = absl::ZeroDuration();
  SteadyWallClock clock_;
  Mutex log_mu_;
  std::vector<std::string> log_;  // lines from the service's threads
  std::unique_ptr<TopologyService> service_;
  TopologyServer server_;
};

TEST_F(LockedServiceTest, APeerRegistersAsItselfOnly) {
  const auto stub = StubOf(run_.Peer(1));
  const grpc::Status other = Register(*stub, 2);
  EXPECT_EQ(other.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(other.error_message(), HasSubstr("peer 1 may not speak for"));
  EXPECT_TRUE(Register(*stub, 1).ok());
}

TEST_F(LockedServiceTest, ARefusedCallIsLoggedAndCountedByKind) {
  const auto stub = StubOf(run_.Peer(1));
  for (int times = 0; times < 3; ++times) EXPECT_FALSE(Register(*stub, 2).ok());
  wire::RegisterRequest stale = RequestOf(1);
  stale.set_protocol_version(kControlVersions.newest + 1);
  wire::RegisterResponse refused;
  EXPECT_FALSE(
      Ask(*stub, &wire::Topology::Stub::Register, stale, &refused).ok());
  wire::FleetStatus status;
  wire::GetStatusRequest request;
  request.set_run_id("run");
  ASSERT_TRUE(
      Ask(*stub, &wire::Topology::Stub::GetStatus, request, &status).ok());
  const auto& events = status.service_events();
  EXPECT_EQ(events.at("call_refused"), 3u);
  EXPECT_EQ(events.at("peer_refused"), 1u);
  EXPECT_EQ(events.at("strangers_refused"), 0u);
  EXPECT_EQ(events.at("save_failed"), 0u);
  // There is one line in ten seconds for each.
  EXPECT_THAT(Log(), ElementsAre(HasSubstr("call_refused: from ipv4:127.0.0.1"),
                                 HasSubstr("peer_refused: at 127.0.0.1:7000")));
}

TEST_F(LockedServiceTest, AClientWithoutACertificateOfTheRunCannotRegister) {
  EXPECT_FALSE(Register(*StubWith(grpc::InsecureChannelCredentials()), 1).ok());
  const TestRun impostor;
  EXPECT_FALSE(
      Register(*StubWith(TlsCredentials(impostor.Certificates(impostor.Peer(1)))
                             .Channel(Role::kTopology)),
               1)
          .ok());
  EXPECT_EQ(service_->Tick()->unfinished, 0);
}

TEST_F(LockedServiceTest, RevocationHoldsOnOpenConnections) {
  const auto stub = StubOf(run_.Peer(1));
  ASSERT_TRUE(Register(*stub, 1).ok());
  run_.Revoke(run_.Peer(1), {run_.Other(Role::kTopology)});
  const grpc::Status revoked = Register(*stub, 1);
  EXPECT_EQ(revoked.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(revoked.error_message(), HasSubstr("revoked"));
}

TEST_F(LockedServiceTest, ARevocationListThatCannotBeReadIsReportedOnce) {
  const auto own = run_.Certificates(run_.Other(Role::kTopology));
  std::ofstream(own->crl_path()) << "half a lis";
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_THAT(Log(), ElementsAre(testing::AllOf(HasSubstr("trust_unread: "),
                                                HasSubstr("stays in force"))));
}

TEST_F(LockedServiceTest, ACertificateThatEndsSoonIsReportedOnceADay) {
  const auto own = run_.Certificates(run_.Other(Role::kTopology));
  run_.Issue(run_.Other(Role::kTopology), absl::Now() - absl::Minutes(55),
             absl::Hours(1));
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_THAT(Log(),
              ElementsAre(testing::AllOf(HasSubstr("certificate_expires: "),
                                         HasSubstr(own->certificate_path()))));
}

// A peer's own calls, on a loop of their own.
class PeerCalls {
 public:
  PeerCalls(const std::string& address, std::shared_ptr<CertificateFolder> own)
      : thread_([this] { loop_.Run(); }),
        calls_(MakeGrpcTopologyCalls(address, &loop_, std::move(own),
                                     absl::Seconds(20))) {}
  ~PeerCalls() {
    loop_.Post([this] {
      calls_.reset();
      loop_.Stop();
    });
    thread_.join();
  }
  absl::Status Register(const wire::RegisterRequest& request) {
    std::promise<absl::Status> result;
    loop_.Post([&] {
      calls_->Register(request, [&](const absl::Status& status, const auto&) {
        result.set_value(status);
      });
    });
    return result.get_future().get();
  }

 private:
  RealLoop loop_;
  std::thread thread_;
  std::unique_ptr<TopologyCalls> calls_;
};

TEST_F(LockedServiceTest, ACertificateMayBeRenewedUnderAnOpenConnection) {
  PeerCalls peer(absl::StrCat("127.0.0.1:", server_.port),
                 run_.Certificates(run_.Peer(1)));  // valid for an hour
  ASSERT_TRUE(peer.Register(RequestOf(1)).ok());
  later_ = absl::Hours(2);
  run_.Issue(run_.Peer(1), absl::Now(), absl::Hours(20));
  // The connection has the old certificate: it is made again, and the client
  // does not end.
  const absl::Status expired = peer.Register(RequestOf(1));
  EXPECT_TRUE(absl::IsUnavailable(expired)) << expired;
  EXPECT_THAT(std::string(expired.message()), HasSubstr("expired"));
  const absl::Status renewed = peer.Register(RequestOf(1));
  EXPECT_TRUE(renewed.ok()) << renewed;
  // A refusal on a new connection is final for the client.
  later_ = absl::Hours(22);
  EXPECT_TRUE(absl::IsUnavailable(peer.Register(RequestOf(1))));
  EXPECT_TRUE(absl::IsUnauthenticated(peer.Register(RequestOf(1))));
}

TEST_F(LockedServiceTest, OnlyAViewThatAServiceHasSignedIsTakenBack) {
  ASSERT_TRUE(Register(*StubOf(run_.Peer(1)), 1).ok());
  wire::HeartbeatRequest heartbeat;
  heartbeat.set_run_id("run");
  heartbeat.set_peer_id(1);
  heartbeat.set_incarnation_id(5);
  wire::HeartbeatResponse answer;
  ASSERT_TRUE(Ask(*StubOf(run_.Peer(1)), &wire::Topology::Stub::Heartbeat,
                  heartbeat, &answer)
                  .ok());
  ASSERT_TRUE(answer.has_view());
  End();
  Begin("empty.sqlite");
  wire::RegisterRequest request = RequestOf(1);
  request.set_has_parameters(true);
  request.set_trains(true);
  *request.mutable_view() = answer.view();
  request.mutable_view()->set_epoch(9);
  wire::RegisterResponse response;
  const auto stub = StubOf(run_.Peer(1));
  const auto hand_back = [&] {
    return Ask(*stub, &wire::Topology::Stub::Register, request, &response)
        .error_code();
  };
  EXPECT_EQ(hand_back(), grpc::StatusCode::UNAVAILABLE);
  *request.mutable_view() = answer.view();
  EXPECT_EQ(hand_back(), grpc::StatusCode::OK);
}

TEST_F(LockedServiceTest, OnlyOperatorsAndMembersMayStopTheFleet) {
  const auto one = StubOf(run_.Peer(1));
  const auto two = StubOf(run_.Peer(2));
  ASSERT_TRUE(Register(*one, 1).ok());
  EXPECT_EQ(Stop(*two).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  // A peer that waits to be admitted may not either.
  ASSERT_TRUE(Register(*two, 2).ok());
  EXPECT_EQ(Stop(*two).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(Stop(*one).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(Stop(*StubOf(run_.Other(Role::kOperator))).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(LockedServiceTest, OnlyOperatorsAndMembersMayMeasureTheFleet) {
  const auto measure = [&](const Identity& who) { return Measure(who); };
  ASSERT_TRUE(Register(*StubOf(run_.Peer(1)), 1).ok());
  EXPECT_EQ(measure(run_.Peer(2)), grpc::StatusCode::PERMISSION_DENIED);
  // A peer that waits to be admitted may not either.
  ASSERT_TRUE(Register(*StubOf(run_.Peer(2)), 2).ok());
  EXPECT_EQ(measure(run_.Peer(2)), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(measure(run_.Peer(1)), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(measure(run_.Other(Role::kOperator)),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(LockedServiceTest, AFormerMemberMayNoLongerMeasureOrStopTheFleet) {
  BeginWith(5);
  const auto plain = [](wire::HeartbeatRequest&) {};
  for (const int id : {2, 3}) {
    EXPECT_NE(Measure(run_.Peer(id)), grpc::StatusCode::PERMISSION_DENIED);
  }
  const auto leave = [](wire::HeartbeatRequest& h) { h.set_leaving(true); };
  for (int id = 1; id <= 5; ++id) Beat(id, plain);
  Beat(2, leave);
  passed_ = absl::Milliseconds(500);
  Beat(2, leave);
  EXPECT_NE(Measure(run_.Peer(2)), grpc::StatusCode::PERMISSION_DENIED)
      << "it trains up to its departure";
  Beat(2, [](wire::HeartbeatRequest& h) { h.set_finished(true); });
  passed_ = absl::Seconds(6);
  const auto suspect = [](wire::HeartbeatRequest& h) { h.add_suspected(3); };
  for (const int id : {1, 4, 5}) Beat(id, suspect);
  Beat(1, suspect);
  for (const int id : {2, 3}) {
    EXPECT_EQ(Measure(run_.Peer(id)), grpc::StatusCode::PERMISSION_DENIED)
        << id;
    EXPECT_EQ(Stop(*StubOf(run_.Peer(id))).error_code(),
              grpc::StatusCode::PERMISSION_DENIED)
        << id;
  }
  EXPECT_TRUE(Stop(*StubOf(run_.Peer(1))).ok());
}

// The others have the old list: they hear the peer as long as their view has
// it.
TEST_F(LockedServiceTest, ARevokedMemberIsOutOfTheNextView) {
  BeginWith(5);
  for (int id = 1; id <= 5; ++id) Beat(id, [](wire::HeartbeatRequest&) {});
  const auto three = StubOf(run_.Peer(3));
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_THAT(MembersSentTo(1), ElementsAre(1, 2, 3, 4, 5));
  run_.Revoke(run_.Peer(2), {});
  run_.Revoke(run_.Peer(3), {run_.Other(Role::kTopology)});
  // The peer has another certificate by now.
  Beat(2, [](wire::HeartbeatRequest&) {});
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_THAT(MembersSentTo(1), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(
      Log(),
      ElementsAre(HasSubstr("peer 3 is removed: its certificate is revoked")));
  EXPECT_EQ(Register(*three, 3).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

// A restarted service does not know which certificate the peer had.
TEST_F(LockedServiceTest, AMemberRevokedDuringAnOutageIsOutAfterALease) {
  BeginWith(5);
  const auto all_but_three = [this] {
    for (const int id : {1, 2, 4, 5}) Beat(id, [](wire::HeartbeatRequest&) {});
  };
  all_but_three();
  End();
  server_.server.reset();
  service_.reset();  // releases its file
  run_.Revoke(run_.Peer(3), {});
  Begin("larger.sqlite", 5);
  all_but_three();
  EXPECT_EQ(Register(*StubOfOld(run_.Peer(3)), 3).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_THAT(MembersSentTo(1), ElementsAre(1, 2, 3, 4, 5));
  for (int second = 1; second <= 5; ++second) {
    passed_ = absl::Seconds(second);
    all_but_three();
    EXPECT_TRUE(service_->Tick().ok());
  }
  EXPECT_THAT(MembersSentTo(1), ElementsAre(1, 2, 4, 5));
}

TEST_F(LockedServiceTest, APeerCannotPassForTheService) {
  const auto own = run_.Certificates(run_.Peer(1));
  // A service with a peer's certificate, as a thief would run it.
  const auto thief = StartTopologyServer("127.0.0.1:0", service_.get(),
                                         run_.Certificates(run_.Peer(2)));
  ASSERT_TRUE(thief.ok()) << thief.status();
  const auto stub = wire::Topology::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(thief->port),
                          TlsCredentials(own).Channel(Role::kTopology)));
  EXPECT_FALSE(Register(*stub, 1).ok());
  thief->server->Shutdown();
  FleetOptions options;
  options.run_id = "run";
  EXPECT_TRUE(absl::IsInvalidArgument(
      TopologyService::Create(
          options, *SqliteStore::Open(folder_.path() + "/other.sqlite"),
          [] { return absl::UnixEpoch(); }, [](const std::string&) {}, own)
          .status()));
}

TEST_F(LockedServiceTest, GiantAndCompressedRequestsAreRefused) {
  wire::RegisterRequest giant = RequestOf(1);
  giant.set_address(std::string(service_->max_request_bytes() + 1, 'x'));
  wire::RegisterResponse response;
  const auto stub = StubOf(run_.Peer(1));
  EXPECT_EQ(Ask(*stub, &wire::Topology::Stub::Register, giant, &response)
                .error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  RawClient packed(
      absl::StrCat("127.0.0.1:", server_.port),
      "/gossamer.wire.Topology/Register",
      TlsCredentials(run_.Certificates(run_.Peer(1))).Channel(Role::kTopology),
      arguments);
  const grpc::ByteBuffer bomb = Bomb(256);
  ResetPeakMemory();
  const int64_t before = PeakMemory();
  packed.Write(bomb);
  const grpc::Status refused = packed.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("gzip"));
  EXPECT_LT(PeakMemory() - before, kBombRefusal);
  EXPECT_TRUE(Register(*stub, 1).ok());
}

// The clients send a byte at a time, half a handshake, or a member calls
// nothing.
TEST_F(LockedServiceTest, ASlowOrSilentClientIsCutOff) {
  const auto idle = grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", server_.port),
      TlsCredentials(run_.Certificates(run_.Peer(1))).Channel(Role::kTopology));
  ASSERT_TRUE(
      idle->WaitForConnected(gpr_time_from_millis(20'000, GPR_TIMESPAN)));
  RawSocket half(server_.port), slow(server_.port);
  ASSERT_TRUE(half.Send(kHalfHandshake));
  const std::string endless = kHalfHandshake + std::string(500, '\0');
  EXPECT_LT(slow.Drip(endless, absl::Milliseconds(200)), endless.size());
  EXPECT_TRUE(half.EndsWithin(absl::Seconds(60)));
  EXPECT_TRUE(idle->WaitForStateChange(
      GRPC_CHANNEL_READY, gpr_time_from_millis(60'000, GPR_TIMESPAN)));
}

// One host has half of all places.  A client that has called no longer counts,
// and a silent one is cut off.
TEST_F(LockedServiceTest, UnauthenticatedConnectionsAreBounded) {
  const auto stub = StubOf(run_.Peer(1));
  ASSERT_TRUE(Register(*stub, 1).ok());
  std::vector<std::unique_ptr<RawSocket>> silent;
  const size_t of_one_host = (service_->limiter()->most() + 1) / 2;
  for (size_t i = 0; i < of_one_host; ++i) {
    silent.push_back(std::make_unique<RawSocket>(server_.port));
  }
  RawSocket one_too_many(server_.port);
  EXPECT_TRUE(one_too_many.EndsWithin(absl::Seconds(60)));
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_TRUE(service_->Tick().ok());
  EXPECT_THAT(
      Log(), ElementsAre(HasSubstr("strangers_refused: 1 connections so far")));
  EXPECT_TRUE(Register(*stub, 1).ok());
  for (auto& socket : silent) {
    EXPECT_TRUE(socket->EndsWithin(absl::Seconds(60)));
  }
  // The server counts them until it has noticed their end itself.
  bool let_in = false;
  for (const absl::Time limit = absl::Now() + absl::Minutes(1);
       !let_in && absl::Now() < limit;) {
    let_in = Register(*StubOf(run_.Peer(1)), 1).ok();
  }
  EXPECT_TRUE(let_in);
}

// A member of the run is limited too.
TEST_F(LockedServiceTest, ConnectionsOfOneMemberAreBounded) {
  const auto connect = [&](const Identity& who) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto channel = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", server_.port),
        TlsCredentials(run_.Certificates(who)).Channel(Role::kTopology),
        arguments);
    wire::GetStatusRequest request;
    request.set_run_id("run");
    wire::FleetStatus status;
    EXPECT_TRUE(Ask(*wire::Topology::NewStub(channel),
                    &wire::Topology::Stub::GetStatus, request, &status)
                    .ok());
    return channel;
  };
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  const auto other = connect(run_.Peer(2));
  for (size_t i = 0; i <= ConnectionLimiter::kMaxPerIdentity; ++i) {
    channels.push_back(connect(run_.Peer(1)));
  }
  EXPECT_TRUE(channels[0]->WaitForStateChange(
      GRPC_CHANNEL_READY, gpr_time_from_millis(20'000, GPR_TIMESPAN)));
  for (size_t i = 1; i < channels.size(); ++i) {
    EXPECT_EQ(channels[i]->GetState(false), GRPC_CHANNEL_READY) << i;
  }
  EXPECT_EQ(other->GetState(false), GRPC_CHANNEL_READY);
}

// 64 KiB of the smallest fields: known ones, which are counted before any of
// them is kept, and unknown ones, which are passed over.
TEST_F(LockedServiceTest, ManySmallFieldsCostLittleAndAreRefused) {
  constexpr int kFields = 60'000;
  const auto stub = StubOf(run_.Peer(1));
  ASSERT_TRUE(Register(*stub, 1).ok());
  wire::HeartbeatRequest suspects;
  suspects.set_run_id("run");
  suspects.set_peer_id(1);
  suspects.set_incarnation_id(5);
  wire::RegisterRequest rounds = RequestOf(1);
  for (int i = 0; i < kFields; ++i) {
    suspects.add_suspected(1);
    rounds.add_checkpoint_rounds(1);
  }
  wire::RegisterRequest unknown = RequestOf(1);
  for (int i = 0; i < kFields / 3; ++i) {
    unknown.GetReflection()->MutableUnknownFields(&unknown)->AddVarint(1000, 1);
  }
  ASSERT_LE(unknown.ByteSizeLong(), static_cast<size_t>(kRequestBytes));
  wire::HeartbeatResponse beaten;
  wire::RegisterResponse registered;
  ResetPeakMemory();
  const int64_t before = PeakMemory();
  for (int times = 0; times < 20; ++times) {
    EXPECT_EQ(Ask(*stub, &wire::Topology::Stub::Heartbeat, suspects, &beaten)
                  .error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(Ask(*stub, &wire::Topology::Stub::Register, rounds, &registered)
                .error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(
      Ask(*stub, &wire::Topology::Stub::Register, unknown, &registered).ok());
  EXPECT_LT(PeakMemory() - before, kPeakFactor * (16 << 10));
}

TEST_F(LockedServiceTest, OnlyViewsSignedByTheServiceAreAccepted) {
  const auto stub = StubOf(run_.Peer(1));
  ASSERT_TRUE(Register(*stub, 1).ok());
  wire::HeartbeatRequest heartbeat;
  heartbeat.set_run_id("run");
  heartbeat.set_peer_id(1);
  heartbeat.set_incarnation_id(5);
  wire::HeartbeatResponse answer;
  const grpc::Status status =
      Ask(*stub, &wire::Topology::Stub::Heartbeat, heartbeat, &answer);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_TRUE(answer.has_view());
  const auto own = run_.Certificates(run_.Peer(1));
  EXPECT_TRUE(CheckView(*own, answer.view()).ok());

  const auto refusal = [&](auto change) {
    wire::ViewMessage view = answer.view();
    change(view);
    const absl::Status refused = CheckView(*own, view);
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
    return std::string(refused.message());
  };
  EXPECT_THAT(refusal([](auto& v) { v.set_epoch(v.epoch() + 1); }),
              HasSubstr("changed"));
  EXPECT_THAT(refusal([](auto& v) { v.set_gamma(0.1); }), HasSubstr("changed"));
  EXPECT_THAT(refusal([](auto& v) { v.clear_signature(); }),
              HasSubstr("nobody has signed"));
  EXPECT_THAT(refusal([](auto& v) { v.clear_certificate(); }),
              HasSubstr("PEM"));
  EXPECT_THAT(refusal([&](auto& v) {
                v.set_certificate(*ReadPemFile(
                    run_.PathOf(run_.Other(Role::kTopology)) + "/cert.pem"));
              }),
              HasSubstr("for connections"));
  // Peers have no signing key; one that was issued to a peer would be of no
  // use.
  wire::ViewMessage copy = answer.view();
  EXPECT_TRUE(absl::IsNotFound(Sign(*own, copy)));
  const KeyPair authority{
      .certificate = *ReadPemFile(run_.authority_path() + "/ca.pem"),
      .key = *ReadPemFile(run_.authority_path() + "/ca-key.pem")};
  const KeyPair signer =
      *IssueSigner(authority, run_.Peer(1), absl::Now(), absl::Hours(1));
  EXPECT_THAT(refusal([&](auto& v) { v.set_certificate(signer.certificate); }),
              HasSubstr("signed by peer 1"));
  const TestRun impostor;
  EXPECT_THAT(
      refusal([&](auto& v) {
        EXPECT_TRUE(
            Sign(*impostor.Certificates(impostor.Other(Role::kTopology)), v)
                .ok());
      }),
      HasSubstr("another authority"));
}

}  // namespace access_test
}  // namespace gossamer
