// `gossamer status` against a service whose peers report trouble.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "proto/topology.grpc.pb.h"
#include "runtime/service/sqlite_store.h"
#include "runtime/service/topology_service.h"
#include "tests/testing/cli_program.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace status_command_test {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class StatusCommandTest : public Cli {
 protected:
  StatusCommandTest() {
    FleetOptions options;
    options.run_id = "run";
    options.expected = 3;
    service_ = *TopologyService::Create(
        options, *SqliteStore::Open(folder_.path() + "/fleet.sqlite"),
        [] { return absl::Now(); }, [](const std::string&) {});
    server_ = *StartTopologyServer("127.0.0.1:0", service_.get());
    stub_ = wire::Topology::NewStub(
        grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
    for (const uint64_t id : {1, 2}) {
      wire::RegisterRequest request;
      request.set_protocol_version(kControlVersions.newest);
      request.set_run_id("run");
      request.set_peer_id(id);
      request.set_incarnation_id(id);
      request.set_address(absl::StrCat("127.0.0.1:", id));
      if (id == 2) request.set_device("machine/0000:3b:00.0/22809");
      grpc::ClientContext context;
      wire::RegisterResponse response;
      EXPECT_TRUE(stub_->Register(&context, request, &response).ok());
    }
  }
  ~StatusCommandTest() override {
    server_.server->Shutdown(std::chrono::system_clock::now());
  }
  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_.port);
  }

  std::unique_ptr<TopologyService> service_;
  TopologyServer server_;
  std::unique_ptr<wire::Topology::Stub> stub_;
};

TEST_F(StatusCommandTest, SaysWhichPeersAreOnGpus) {
  const Result text = Run("status --topology " + address());
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              HasSubstr("peer 2: on a GPU, machine/0000:3b:00.0/22809\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("peer 1: on a GPU")));
  const Result result = Run("status --json --topology " + address());
  ASSERT_EQ(result.code, 0) << result.err;
  const Json peers = Json::parse(result.out)["peers"];
  EXPECT_EQ(peers[0]["device"], Json());
  EXPECT_EQ(peers[1]["device"], "machine/0000:3b:00.0/22809");
}

TEST_F(StatusCommandTest, SaysWhatPeersHaveReported) {
  wire::HeartbeatRequest request;
  request.set_run_id("run");
  request.set_peer_id(2);
  request.set_incarnation_id(2);
  (*request.mutable_events())["edge_refused"] = 3;
  (*request.mutable_events())["checkpoint_failed"] = 12;
  (*request.mutable_events())["of_a_later_release"] = 1;
  grpc::ClientContext context;
  wire::HeartbeatResponse response;
  ASSERT_TRUE(stub_->Heartbeat(&context, request, &response).ok());

  const Result text = Run("status --topology " + address());
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(
      text.out,
      HasSubstr("peer 2 has reported checkpoint_failed 12, edge_refused 3\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("peer 1 has reported")));
  const Result result = Run("status --json --topology " + address());
  ASSERT_EQ(result.code, 0) << result.err;
  const Json peers = Json::parse(result.out)["peers"];
  EXPECT_EQ(peers[0]["events"], Json::object());
  EXPECT_EQ(peers[1]["events"],
            Json({{"checkpoint_failed", 12}, {"edge_refused", 3}}));
}

TEST_F(StatusCommandTest, SaysTheLossesOfEveryPlayer) {
  wire::HeartbeatRequest request;
  request.set_run_id("run");
  request.set_peer_id(2);
  request.set_incarnation_id(2);
  for (const char* player : {"student", "critic", "\x1b[2J"}) {
    request.add_loss_player(player);
    request.add_loss(player[0] == 'c' ? std::nan("") : 0.25);
  }
  grpc::ClientContext context;
  wire::HeartbeatResponse response;
  ASSERT_TRUE(stub_->Heartbeat(&context, request, &response).ok());

  const Result text = Run("status --topology " + address());
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("rounds/s    student     critic "));
  EXPECT_THAT(text.out, HasSubstr(" 0.2500          - "));
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  const Result result = Run("status --json --topology " + address());
  ASSERT_EQ(result.code, 0) << result.err;
  const Json peers = Json::parse(result.out)["peers"];
  EXPECT_FALSE(peers[0].contains("student_loss"));
  EXPECT_EQ(peers[1]["student_loss"], 0.25);
  EXPECT_TRUE(peers[1].at("critic_loss").is_null());
  EXPECT_FALSE(peers[1].contains("generator_loss"));
}

}  // namespace status_command_test
}  // namespace gossamer
