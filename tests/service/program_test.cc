// gossamer-topology as a process: what it prints and how it ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "tests/cli/temporary_folder.h"
#include "topology/service/sqlite_store.h"
#include "topology/service/topology_service.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_THAT(help.output, HasSubstr("gossamer-topology --peers 8"));
}

TEST(ProgramTest, WrongFlagsAreUsageErrors) {
  const Outcome wrong = Execute("--peeers 3");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("--peeers"));
}

TEST(ProgramTest, AScheduleThatCannotBeIsAnError) {
  TemporaryFolder folder;
  const Outcome refused =
      Execute("--peers 6 --graph hypercube --state " + folder.path());
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

}  // namespace
}  // namespace gossamer
