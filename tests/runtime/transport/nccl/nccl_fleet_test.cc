// A fleet whose payloads travel by NCCL: the same bits as over the carrier, and
// what a hang costs the others.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/fake_nccl.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace nccl_fleet_test {

constexpr absl::Duration kDeadline = absl::Milliseconds(500);

// Four peers on a GPU each of one host; each exchanges with all others.
class NcclFleet {
 public:
  NcclFleet(SimFleetOptions options, FakeNcclOptions faults) {
    options.schedule.graph = "complete";
    options.transport = [this, faults](int rank, EventLoop* loop,
                                       std::unique_ptr<Transport> carrier) {
      if (nccl_ == nullptr) nccl_ = std::make_unique<FakeNccl>(loop, faults);
      View view;
      view.epoch = 1;
      view.schedule.graph = "complete";
      for (int r = 0; r < 4; ++r) {
        const NcclPlace place{"host", absl::StrCat("gpu", r), 22809};
        view.members.push_back({.id = SimFleet::IdOf(r),
                                .address = "sim",
                                .device = place.Text()});
      }
      gpus_.push_back(nccl_->NewRank(absl::StrCat("gpu", rank)));
      NcclOptions o{.self = SimFleet::IdOf(rank),
                    .deadline = kDeadline,
                    .poll = absl::Microseconds(100),
                    .min_bytes = 1};
      auto transport = std::make_unique<NcclTransport>(
          std::move(carrier), loop, gpus_.back().get(), gpus_.back().get(),
          std::move(o));
      transport->Prepare(view);
      transports_.push_back(transport.get());
      return transport;
    };
    fleet_ = std::make_unique<SimFleet>(std::move(options));
  }

  SimFleet& fleet() { return *fleet_; }
  NcclCounters Sum() const {
    NcclCounters sum;
    for (const NcclTransport* t : transports_) {
      sum.bodies += t->nccl_counters().bodies;
      sum.fallbacks += t->nccl_counters().fallbacks;
      sum.broken += t->nccl_counters().broken;
    }
    return sum;
  }
  // Returns the time between the ends of two rounds of one peer, longest
  // first, over all peers.
  std::vector<absl::Duration> Rounds() {
    std::vector<absl::Duration> took;
    for (int r = 0; r < 4; ++r) {
      const auto& rounds = fleet_->recorder(r).rounds;
      for (size_t i = 1; i < rounds.size(); ++i) {
        took.push_back(rounds[i].finished - rounds[i - 1].finished);
      }
    }
    std::ranges::sort(took, std::greater<>());
    return took;
  }

 private:
  std::unique_ptr<FakeNccl> nccl_;
  std::vector<std::unique_ptr<FakeNccl::Rank>> gpus_;
  std::vector<NcclTransport*> transports_;
  std::unique_ptr<SimFleet> fleet_;  // before what its transports use
};

FakeNcclOptions Made(FakeNcclOptions options) {
  options.making = absl::Milliseconds(1);
  return options;
}

TEST(NcclFleetTest, TheSameBitsAsOverTheCarrierWhateverNcclDoes) {
  SimFleetOptions plain = QuadraticFleet(4, 60);
  plain.schedule.graph = "complete";
  SimFleet carrier(plain);
  ASSERT_TRUE(carrier.Run());
  for (const FakeNcclOptions& faults :
       {FakeNcclOptions{}, FakeNcclOptions{.slow = 0.1},
        FakeNcclOptions{.hang = 0.01}, FakeNcclOptions{.error = 0.01}}) {
    NcclFleet nccl(QuadraticFleet(4, 60), Made(faults));
    ASSERT_TRUE(nccl.fleet().Run());
    EXPECT_EQ(nccl.fleet().Hash(), carrier.Hash());
    EXPECT_GT(nccl.Sum().bodies, 20u);
    EXPECT_EQ(nccl.Sum().broken > 0, faults.hang + faults.error > 0);
  }
}

// The others wait for the edge's deadline and a round, once.  The word that a
// communicator is given up takes a way between peers, and so do the bodies that
// answer it.
TEST(NcclFleetTest, AHangCostsTheOthersADeadlineAndARound) {
  for (const auto kind :
       {DeadlinePolicy::Kind::kNone, DeadlinePolicy::Kind::kFixed}) {
    SimFleetOptions options = QuadraticFleet(4, 60);
    options.peer.deadline = {kind, kDeadline};
    NcclFleet usual(options, Made({}));
    ASSERT_TRUE(usual.fleet().Run());
    ASSERT_EQ(usual.Sum().broken, 0u);
    const absl::Duration round = usual.Rounds()[0];
    EXPECT_LT(round, kDeadline / 5);
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      NcclFleet hangs(options, Made({.seed = seed, .hang = 0.01}));
      ASSERT_TRUE(hangs.fleet().Run());
      ASSERT_EQ(hangs.Sum().broken, 4u) << "all members give it up";
      const std::vector<absl::Duration> rounds = hangs.Rounds();
      EXPECT_LE(rounds[0], kDeadline + round + 2 * options.network.link.latency)
          << seed;
      const auto stalls = std::ranges::count_if(
          rounds, [&](absl::Duration d) { return d > 2 * round; });
      EXPECT_LE(stalls, 4) << seed << ": one for each peer";
    }
  }
}

}  // namespace nccl_fleet_test
}  // namespace gossamer
