// gossamer-topology as a process: its output and its exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/descriptor_limit.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/service/sqlite_store.h"
#include "runtime/service/topology_service.h"
#include "tests/runtime/transport/raw_socket.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace program_test {

using ::testing::HasSubstr;

// The end of a run of the program.
struct Outcome {
  int code = -1;
  std::string output;  // both streams
};

Outcome Execute(const std::string& arguments) {
  const std::string command =
      std::string(GOSSAMER_TOPOLOGY) + " " + arguments + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    outcome.output.append(buffer, n);
  }
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

TEST(ProgramTest, HelpShowsExamples) {
  const Outcome help = Execute("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("--exit-when-finished"));
  EXPECT_THAT(help.output, HasSubstr("--set mixing.graph=torus"));
}

TEST(ProgramTest, WrongFlagsAreUsageErrors) {
  const Outcome wrong = Execute("--peeers 3");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("--peeers"));
}

TEST(ProgramTest, AScheduleThatCannotBeIsAnError) {
  TemporaryFolder folder;
  const Outcome refused = Execute(
      "--set peers=6 --set mixing.graph=hypercube --state " + folder.path());
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.output, HasSubstr("power of two"));
}

TEST(ProgramTest, APortInUseIsAClearError) {
  TemporaryFolder folder;
  auto store = SqliteStore::Open(folder.path() + "/own.sqlite");
  ASSERT_TRUE(store.ok());
  auto service = TopologyService::Create(
      {}, *std::move(store), [] { return absl::FromUnixSeconds(1); },
      [](const std::string&) {});
  ASSERT_TRUE(service.ok()) << service.status();
  auto server = StartTopologyServer("127.0.0.1:0", service->get());
  ASSERT_TRUE(server.ok()) << server.status();
  const Outcome refused =
      Execute("--listen 127.0.0.1:" + std::to_string(server->port) +
              " --state " + folder.path() + "/state");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("the port is in use"));
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A listener that once had no descriptor would never listen again.
TEST(ProgramTest, SilentSocketsOfManyHostsDoNotStopTheListener) {
  RaiseDescriptorLimit();
  SignalWaiter signals;
  TemporaryFolder folder;
  const std::string port_file = folder.path() + "/port";
  const std::string log = folder.path() + "/log";
  ProcessGroup group;
  ASSERT_TRUE(group
                  .Start({"topology",
                          {"/bin/sh", "-c",
                           absl::StrCat("ulimit -Sn 64; ulimit -Hn 200; exec ",
                                        GOSSAMER_TOPOLOGY,
                                        " --max-peers 100 --listen "
                                        "127.0.0.1:0 --port-file ",
                                        port_file, " --state ", folder.path(),
                                        "/state")},
                          log})
                  .ok());
  const absl::Time limit = absl::Now() + absl::Minutes(1);
  while (TextOf(port_file).empty() && absl::Now() < limit) {
    signals.Wait(absl::Milliseconds(20));
  }
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(TextOf(port_file), &port)) << TextOf(log);
  EXPECT_THAT(TextOf(log), HasSubstr("200 files may be open here, which leaves "
                                     "room for 75 of 100 peers"));
  {
    std::vector<std::unique_ptr<RawSocket>> silent;
    for (uint32_t i = 0; i < 400; ++i) {
      silent.push_back(std::make_unique<RawSocket>(port, 2 + i % 4));
    }
    EXPECT_TRUE(silent.back()->EndsWithin(absl::Minutes(1)));
  }
  const auto stub = wire::Topology::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(gpr_time_from_millis(60'000, GPR_TIMESPAN));
  wire::FleetStatus status;
  const grpc::Status answered = stub->GetStatus(&context, {}, &status);
  EXPECT_TRUE(answered.ok()) << answered.error_message();
  EXPECT_EQ(status.expected(), 4u);
  group.End(signals, absl::Seconds(20));
}

}  // namespace program_test
}  // namespace gossamer
