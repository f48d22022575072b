// A centralized fleet whose means NCCL makes: one x at all peers whatever NCCL
// does, what a hang costs, and the same bits again at a replay.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/transport/nccl/nccl_plan.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/fake_nccl.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace nccl_sum_fleet_test {

constexpr int kPeers = 4;
constexpr absl::Duration kDeadline = absl::Milliseconds(500);

SimFleetOptions Centralized(uint64_t rounds = 40) {
  SimFleetOptions o = QuadraticFleet(kPeers, rounds);
  o.peer.averaging = Averaging::kGradients;
  o.peer.overlap_steps = 0;
  o.schedule.graph = "complete";
  return o;
}

// Peers on a GPU each of one host.
class NcclSumFleet {
 public:
  NcclSumFleet(SimFleetOptions options, FakeNcclOptions faults) {
    faults.making = absl::Milliseconds(1);
    if (!options.device) {
      options.device = [](int r) {
        return NcclPlace{"host", absl::StrCat("gpu", r), 22809}.Text();
      };
    }
    options.nccl_sum = [this, faults](int rank, EventLoop* loop,
                                      Transport* transport,
                                      const DeviceQueue& queue) {
      if (nccl_ == nullptr) nccl_ = std::make_unique<FakeNccl>(loop, faults);
      gpus_.push_back(nccl_->NewRank(absl::StrCat("gpu", rank)));
      NcclSumOptions o{.self = SimFleet::IdOf(rank),
                       .deadline = kDeadline,
                       .making = absl::Seconds(5)};
      o.report = [this](EventKind kind, const std::string& detail) {
        reports_.push_back(
            absl::StrCat(std::string(kind.name()), ": ", detail));
      };
      return std::make_unique<NcclSum>(loop, transport, gpus_.back().get(),
                                       gpus_.back().get(), queue, std::move(o));
    };
    fleet_ = std::make_unique<SimFleet>(std::move(options));
  }

  SimFleet& fleet() { return *fleet_; }
  const FakeNccl& nccl() const { return *nccl_; }
  const std::vector<std::string>& reports() const { return reports_; }
  bool OneX() {
    for (int r = 1; r < kPeers; ++r) {
      if (!std::ranges::equal(fleet_->game(r).parameters(),
                              fleet_->game(0).parameters())) {
        return false;
      }
    }
    return true;
  }
  absl::Duration LongestRound() {
    absl::Duration longest;
    for (int r = 0; r < kPeers; ++r) {
      const auto& rounds = fleet_->recorder(r).rounds;
      for (size_t i = 1; i < rounds.size(); ++i) {
        longest =
            std::max(longest, rounds[i].finished - rounds[i - 1].finished);
      }
    }
    return longest;
  }

 private:
  std::vector<std::string> reports_;
  std::unique_ptr<FakeNccl> nccl_;
  std::vector<std::unique_ptr<FakeNccl::Rank>> gpus_;
  std::unique_ptr<SimFleet> fleet_;
};

TEST(NcclSumFleetTest, TrainsAsOverTheTransport) {
  for (const Averaging averaging :
       {Averaging::kGradients, Averaging::kParameters}) {
    SimFleetOptions o = Centralized();
    o.peer.averaging = averaging;
    SimFleet carrier(o);
    ASSERT_TRUE(carrier.Run());
    NcclSumFleet nccl(o, {});
    ASSERT_TRUE(nccl.fleet().Run()) << nccl.fleet().StatusOf(0);
    EXPECT_TRUE(nccl.OneX());
    EXPECT_EQ(nccl.nccl().operations(), 40u);
    EXPECT_THAT(nccl.reports(),
                testing::Each(testing::StartsWith("nccl_ready")));
    // Sums of another order round otherwise.
    const auto x = nccl.fleet().game(0).parameters();
    const auto y = carrier.game(0).parameters();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5);
  }
}

TEST(NcclSumFleetTest, OneXAtAllPeersWhateverNcclDoes) {
  uint64_t partial = 0, hangs = 0, errors = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    FakeNcclOptions faults{.seed = seed};
    if (seed % 4 == 0) faults.hang = 0.05;
    if (seed % 4 == 1) faults.error = 0.05;
    if (seed % 4 >= 2) faults.partial = 0.1;
    if (seed % 7 == 0) faults.making_error = 0.5;
    if (seed % 11 == 0) faults.slow = 0.1;
    SimFleetOptions o = Centralized(20);
    o.seed = seed;
    NcclSumFleet fleet(o, faults);
    fleet.fleet().Start();
    // Connections break, too.
    for (int i = 0; i < 4; ++i) {
      fleet.fleet().loop().RunFor(absl::Milliseconds(40));
      fleet.fleet().network().Break(
          SimFleet::IdOf(static_cast<int>(seed) % 4),
          SimFleet::IdOf((static_cast<int>(seed) + 1 + i % 3) % 4));
    }
    ASSERT_TRUE(fleet.fleet().Run()) << seed << fleet.fleet().StatusOf(0);
    ASSERT_TRUE(fleet.OneX()) << seed;
    const auto of = [&](const char* fault) {
      const auto it = fleet.nccl().faults().find(fault);
      return it == fleet.nccl().faults().end() ? 0 : it->second;
    };
    partial += of("nccl_partial");
    hangs += of("nccl_hangs");
    errors += of("nccl_errors");
  }
  EXPECT_GT(partial, 50u);
  EXPECT_GT(hangs, 20u);
  EXPECT_GT(errors, 20u);
}

TEST(NcclSumFleetTest, AHangCostsADeadlineAndARound) {
  const SimFleetOptions o = Centralized();
  NcclSumFleet usual(o, {});
  ASSERT_TRUE(usual.fleet().Run());
  NcclSumFleet hangs(o, {.hang = 0.1});
  ASSERT_TRUE(hangs.fleet().Run());
  EXPECT_TRUE(hangs.OneX());
  EXPECT_LE(hangs.LongestRound(), kDeadline + 2 * usual.LongestRound());
  EXPECT_GT(hangs.LongestRound(), kDeadline);
}

// The watchdog's time begins when all have begun: a straggler breaks nothing.
TEST(NcclSumFleetTest, AStragglerBreaksNothing) {
  SimFleetOptions o = Centralized(10);
  o.slowness[2] = 100;  // a second a step, twice the deadline
  NcclSumFleet fleet(o, {});
  ASSERT_TRUE(fleet.fleet().Run());
  EXPECT_EQ(fleet.nccl().operations(), 10u);
}

TEST(NcclSumFleetTest, AReplayLeavesNcclAtTheSameMean) {
  const SimFleetOptions o = Centralized();
  std::vector<std::string> logs(kPeers);
  std::vector<std::unique_ptr<Decisions>> kept;
  SimFleetOptions first = o;
  first.decisions = [&](int rank) {
    kept.push_back(
        std::make_unique<Decisions>([&logs, rank](std::string_view line) {
          absl::StrAppend(&logs[static_cast<size_t>(rank)], std::string(line),
                          "\n");
        }));
    return kept.back().get();
  };
  NcclSumFleet fleet(first, {.partial = 0.1});
  ASSERT_TRUE(fleet.fleet().Run());
  EXPECT_THAT(logs, testing::Each(testing::HasSubstr("nccl-end ")));
  EXPECT_THAT(logs, testing::Each(logs[0]));
  const uint64_t hash = fleet.fleet().Hash();

  SimFleetOptions again = o;
  std::vector<std::unique_ptr<Decisions>> replayed;
  again.decisions = [&](int rank) {
    replayed.push_back(std::make_unique<Decisions>(
        *Decisions::Replay(logs[static_cast<size_t>(rank)])));
    return replayed.back().get();
  };
  NcclSumFleet calm(again, {});
  ASSERT_TRUE(calm.fleet().Run());
  EXPECT_EQ(calm.fleet().Hash(), hash);
}

TEST(NcclSumFleetTest, PeersThatNcclCannotJoinSumOverTheTransport) {
  SimFleetOptions o = Centralized(10);
  SimFleet carrier(o);
  ASSERT_TRUE(carrier.Run());
  o.device = [](int r) {
    return r == 3 ? ""
                  : NcclPlace{"host", absl::StrCat("gpu", r), 22809}.Text();
  };
  NcclSumFleet three(o, {});
  ASSERT_TRUE(three.fleet().Run());
  EXPECT_EQ(three.fleet().Hash(), carrier.Hash());
  EXPECT_EQ(three.nccl().operations(), 0u);
}

}  // namespace nccl_sum_fleet_test
}  // namespace gossamer
