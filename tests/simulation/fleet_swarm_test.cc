// The program `fleet_swarm` from outside: options, JSON, exit codes, and the
// line that a dying seed leaves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SimulateCommand : public Cli {};

TEST_F(SimulateCommand, JsonHasTheKeysOfItsHelp) {
  const Result r = Run("--seeds 4 --from 7 --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  EXPECT_EQ(json["seeds"], 4);
  EXPECT_EQ(json["from"], 7);
  EXPECT_TRUE(json["violations"].empty());
  EXPECT_GT(json["peer_rounds"], 0);
  EXPECT_GT(json["events"], json["peer_rounds"]);
  EXPECT_GT(json["core_seconds"], 0);
  EXPECT_NEAR(json["core_seconds_per_seed"].get<double>(),
              json["core_seconds"].get<double>() / 4, 1e-9);
  EXPECT_GT(json["faults"]["breaks"], 0);
  double seeds = 0;
  for (const auto& [mixing, left] : json["distance_left"].items()) {
    seeds += left["seeds"].get<double>();
    EXPECT_LE(left["median"], left["p90"]) << mixing;
  }
  EXPECT_LE(seeds, 4);
  EXPECT_GT(seeds, 0);
  const std::string help = Run("--help").out;
  for (const auto& [key, value] : json.items()) {
    EXPECT_THAT(help, HasSubstr(key));
  }
  for (const auto& [mixing, left] : json["distance_left"].items()) {
    EXPECT_THAT(help, HasSubstr(mixing));
  }
}

TEST_F(SimulateCommand, OneSeedIsTheSameTwiceWhateverIsBesideIt) {
  const auto hash = [this](const std::string& args) {
    return ordered_json::parse(Run("--json " + args).out)["trace_hash"]
        .get<std::string>();
  };
  EXPECT_EQ(hash("--from 3 --seeds 6 --jobs 1"),
            hash("--from 3 --seeds 6 --jobs 2"));
  EXPECT_NE(hash("--from 3 --seeds 1"), hash("--from 4 --seeds 1"));
}

TEST_F(SimulateCommand, TracesTellWhatHappens) {
  const Result r = Run("--from 12 --seeds 1 --trace");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("fleet: seed 12: "), HasSubstr("view 1: "),
                           HasSubstr("\nseed 12: trace "),
                           HasSubstr(" core-seconds a seed; trace ")));
}

// The signal comes from outside, so that no seed needs to fail; an assertion's
// signal takes the same way.
TEST_F(SimulateCommand, ASignalThatEndsItSaysWhatReplaysTheSeed) {
  Write("abort.sh", R"(ulimit -c 0
"$@" --from 12 --seeds 1000000 --trace > trace &
for try in $(seq 1000); do
  grep -q "fleet: seed 12: " trace && break
  sleep 0.02
done
kill -ABRT $!
wait $!
)");
  program_ = absl::StrCat("bash abort.sh ", GOSSAMER_PROGRAM);
  const Result r = Run("");
  EXPECT_EQ(r.code, 128 + SIGABRT) << r.err;
  const std::string_view marker = "SIGABRT in seed ";
  const size_t at = r.err.find(marker);
  ASSERT_NE(at, std::string::npos) << r.err;
  const size_t from = at + marker.size();
  const std::string seed =
      r.err.substr(from, r.err.find_first_not_of("0123456789", from) - from);
  EXPECT_FALSE(seed.empty());
  EXPECT_THAT(r.err, HasSubstr(absl::StrCat("SIGABRT in seed ", seed,
                                            "\n  replay: fleet_swarm --from ",
                                            seed, " --seeds 1 --trace\n")));
}

TEST_F(SimulateCommand, NonsenseIsRefused) {
  for (const char* const args : {"--seeds 0", "--seeds many", "--jobs 0"}) {
    EXPECT_NE(Run(args).code, 0) << args;
  }
}

}  // namespace
}  // namespace gossamer
