// A peer as a process, and a neighbour that declares more than the model can
// need.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/transport/grpc/chunking.h"
#include "tests/runtime/identity/test_run.h"
#include "tests/runtime/transport/grpc_node.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

constexpr char kConfig[] = R"(
  name: "it" peers: 2 rounds: 1000000 mixing { codec: "innov-int4" }
  game { quadratic { dimension: 3000 } } evaluation { every: 50 })";

template <typename F>
bool WaitFor(F condition) {
  for (const absl::Time end = absl::Now() + kLimit; absl::Now() < end;) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return false;
}

TEST(ProcessLimitsTest, FramesBeyondTheModelAreRefusedAtOnce) {
  SignalWaiter signals;
  const TemporaryFolder folder;
  const std::string path = folder.path();
  std::ofstream(path + "/config") << kConfig;
  ProcessGroup group;
  const auto start = [&](const std::string& name,
                         std::vector<std::string> argv) {
    argv.insert(argv.end(), {"--config", path + "/config"});
    return group.Start({name, std::move(argv), path + "/" + name + ".log"});
  };
  ASSERT_TRUE(start("service", {GOSSAMER_TOPOLOGY, "--listen", "127.0.0.1:0",
                                "--port-file", path + "/port", "--state",
                                path + "/state", "--heartbeat", "0.1"})
                  .ok());
  int port = 0;
  ASSERT_TRUE(WaitFor([&] {
    return static_cast<bool>(std::ifstream(path + "/port") >> port);
  }));
  const std::string service = absl::StrCat("127.0.0.1:", port);
  for (const char* id : {"1", "2"}) {
    ASSERT_TRUE(start(absl::StrCat("peer-", id),
                      {GOSSAMER_PEER, "--topology", service, "--id", id,
                       "--run-dir", path + "/run"})
                    .ok());
  }
  FleetClient client(service);
  std::string address;
  ASSERT_TRUE(WaitFor([&] {
    const auto status = client.GetStatus("it");
    if (!status.ok() || status->peers_size() < 2) return false;
    address = status->peers(0).address();
    return status->peers(0).round() > 20;
  }));
  RawClient neighbour(address);
  ASSERT_TRUE(neighbour.Write(EncodeHello({.self = {2},
                                           .target = {1},
                                           .attempt = 1000,
                                           .lane = 0,
                                           .run_id = "it"})));
  ASSERT_TRUE(neighbour.Read());
  FrameChunker chunker(
      Channel::kEdge,
      {SharedBytes(), SharedBytes::FromVector(ByteVector(16 << 20))},
      512 << 10);
  ByteVector first;
  const Chunk chunk = chunker.Next();
  for (const auto part : {chunk.header(), chunk.head, chunk.body}) {
    first.insert(first.end(), part.begin(), part.end());
  }
  neighbour.Write(first);
  const grpc::Status refused = neighbour.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(refused.error_message(), ::testing::HasSubstr("over the limit"));
}

// A process that resumes begins a file, and a run may resume for days.  The
// run's first file stays.
TEST(ProcessLimitsTest, DecisionsOfEarlierProcessesStayUnderTheLimit) {
  SignalWaiter signals;
  const TemporaryFolder folder;
  const std::string path = folder.path();
  std::ofstream(path + "/config") << kConfig;
  const std::filesystem::path files = path + "/run/peer-1";
  std::filesystem::create_directories(files);
  for (const char* name : {"decisions.log", "decisions-100.log",
                           "decisions-200.log", "decisions-1000.log"}) {
    std::ofstream(files / name) << std::string(400'000, 'x');
  }
  ProcessGroup group;
  ASSERT_TRUE(group
                  .Start({"service",
                          {GOSSAMER_TOPOLOGY, "--listen", "127.0.0.1:0",
                           "--port-file", path + "/port", "--state",
                           path + "/state", "--config", path + "/config"},
                          path + "/service.log"})
                  .ok());
  int port = 0;
  ASSERT_TRUE(WaitFor([&] {
    return static_cast<bool>(std::ifstream(path + "/port") >> port);
  }));
  ASSERT_TRUE(group
                  .Start({"peer",
                          {GOSSAMER_PEER, "--topology",
                           absl::StrCat("127.0.0.1:", port), "--id", "1",
                           "--run-dir", path + "/run", "--resume",
                           "--log-limit", "1", "--config", path + "/config"},
                          path + "/peer.log"})
                  .ok());
  EXPECT_TRUE(WaitFor([&] {
    std::ifstream file(path + "/peer.log");
    return std::string(std::istreambuf_iterator<char>(file), {})
               .find("decisions-100.log of an earlier process is removed") !=
           std::string::npos;
  }));
  EXPECT_FALSE(std::filesystem::exists(files / "decisions-100.log"));
  for (const char* name :
       {"decisions.log", "decisions-200.log", "decisions-1000.log"}) {
    EXPECT_TRUE(std::filesystem::exists(files / name)) << name;
  }
}

TEST(ProcessLimitsTest, ACertificateThatEndsSoonIsReported) {
  SignalWaiter signals;
  const TestRun run("it");
  const TemporaryFolder folder;
  const std::string path = folder.path();
  std::ofstream(path + "/config") << kConfig;
  ProcessGroup group;
  const absl::Time now = absl::Now();
  ASSERT_TRUE(group
                  .Start({"service",
                          {GOSSAMER_TOPOLOGY, "--listen", "127.0.0.1:0",
                           "--port-file", path + "/port", "--state",
                           path + "/state", "--config", path + "/config",
                           "--certs", run.Issue(run.Other(Role::kTopology))},
                          path + "/service.log"})
                  .ok());
  int port = 0;
  ASSERT_TRUE(WaitFor([&] {
    return static_cast<bool>(std::ifstream(path + "/port") >> port);
  }));
  ASSERT_TRUE(
      group
          .Start({"peer",
                  {GOSSAMER_PEER, "--topology",
                   absl::StrCat("127.0.0.1:", port), "--run-dir", path + "/run",
                   "--config", path + "/config", "--certs",
                   run.Issue(run.Peer(1), now - absl::Minutes(55),
                             absl::Hours(1))},
                  path + "/peer.log"})
          .ok());
  const auto Told = [&](const std::string& kind) {
    std::ifstream file(path + "/run/peer-1/events.jsonl");
    return std::string(std::istreambuf_iterator<char>(file), {}).find(kind) !=
           std::string::npos;
  };
  EXPECT_TRUE(WaitFor([&] { return Told("certificate_expires"); }));
}

TEST(ProcessLimitsTest, FewerFilesThanNeighboursAreAWarning) {
  SignalWaiter signals;
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  std::ofstream(folder.path() + "/config") << kConfig;
  ProcessGroup group;
  ASSERT_TRUE(
      group
          .Start({"peer",
                  {"/bin/sh", "-c",
                   absl::StrCat("ulimit -Sn 64; ulimit -Hn 100; exec ",
                                GOSSAMER_PEER,
                                " --topology 127.0.0.1:1 --id 1 --set peers=60 "
                                "--config ",
                                folder.path(), "/config --run-dir ",
                                folder.path(), "/run")},
                  log})
          .ok());
  const auto text = [&] {
    std::ifstream file(log);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ASSERT_TRUE(WaitFor([&] { return text().find('\n') != std::string::npos; }));
  // An edge may come to have four.
  EXPECT_THAT(text(), ::testing::HasSubstr(
                          "100 files may be open here, which leaves room for "
                          "38 of 236 connections of peers"));
  group.End(signals, absl::Seconds(20));
}

}  // namespace
}  // namespace gossamer
