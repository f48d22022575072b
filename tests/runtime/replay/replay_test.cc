// A run repeats the decisions of another's log, and ends with its bits at other
// speeds and latencies and without its faults.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/game/synthetic_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/replay/decisions.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/forwarding_membership.h"
#include "tests/testing/sim_fleet.h"
#include "topology/fleet/overlap_chooser.h"

namespace gossamer {
namespace replay_test {

class ReplayTest : public testing::Test {
 protected:
  // Runs a fleet under faults drawn from `seed` and keeps its decisions;
  // returns the hash of all bits.
  uint64_t Record(SimFleetOptions o, uint64_t seed) {
    logs_.assign(static_cast<size_t>(o.peers), "");
    std::vector<Decisions> kept;
    for (std::string& log : logs_) {
      kept.emplace_back(
          [&log](const std::string& line) { log += line + "\n"; });
    }
    o.decisions = [&kept](int rank) { return &kept[rank]; };
    SimFleet fleet(o);
    fleet.Start();
    const RngKey key = RngKey(seed).Fold("faults");
    for (uint64_t i = 0; i < 25; ++i) {
      fleet.loop().RunFor(absl::Milliseconds(50));
      const int a = static_cast<int>(key.Below(o.peers, 3 * i));
      const int b = (a + 1) % o.peers;
      const absl::Duration length =
          absl::Milliseconds(key.Below(300, 3 * i + 1));
      switch (key.Below(3, 3 * i + 2)) {
        case 0:
          fleet.network().Break(SimFleet::IdOf(a), SimFleet::IdOf(b), length);
          break;
        case 1:
          fleet.network().Stall(SimFleet::IdOf(a), SimFleet::IdOf(b),
                                fleet.loop().Now() + length);
          break;
        default:
          fleet.network().Freeze(SimFleet::IdOf(a),
                                 fleet.loop().Now() + length);
      }
    }
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    return fleet.Hash();
  }

  uint64_t Repeat(SimFleetOptions o, double latency_ms, double slowness) {
    std::vector<Decisions> again;
    for (const std::string& log : logs_) {
      auto decisions = Decisions::Replay(log);
      EXPECT_TRUE(decisions.ok()) << decisions.status();
      again.push_back(*std::move(decisions));
    }
    o.decisions = [&again](int rank) { return &again[rank]; };
    o.network.link.latency = absl::Milliseconds(latency_ms);
    o.network.link.jitter = 0.5;
    o.step_jitter = 0.4;
    o.slowness = {{1, slowness}};
    SimFleet fleet(o);
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    return fleet.Hash();
  }

  size_t Lines(const std::string& word) const {
    size_t n = 0;
    for (const std::string& log : logs_) {
      for (size_t at = 0; (at = log.find(word, at)) != std::string::npos; ++n) {
        ++at;
      }
    }
    return n;
  }

  std::vector<std::string> logs_;
};

TEST_F(ReplayTest, DeadlinesJumpsAndSkipsRepeat) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    SimFleetOptions o = QuadraticFleet(5, 120);
    o.seed = seed;
    if (seed % 5 == 0) o.slowness = {{2, 6.0}};
    o.codec = seed % 2 ? "innov-int4" : "diff-int8";
    o.schedule.graph = seed % 3 ? "ring" : "permuted-ring";
    o.peer.overlap_steps = static_cast<int>(seed % 4);
    o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
    const uint64_t bits = Record(o, seed);
    EXPECT_GT(Lines("done") + Lines("skip"), 0u);
    EXPECT_EQ(Repeat(o, 0.1, 1), bits);
    EXPECT_EQ(Repeat(o, 30, 3), bits);
  }
}

// A random ring of so many peers that hardly an edge has learnt its deadline
// when the run ends.
TEST_F(ReplayTest, DeadlinesOfFirstExchangesRepeat) {
  SimFleetOptions o = QuadraticFleet(16, 24);
  o.codec = "innov-int4";
  o.schedule.graph = "permuted-ring";
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  const uint64_t bits = Record(o, 3);
  EXPECT_GT(Lines("done"), 0u);
  EXPECT_GT(Lines("skip"), 0u);
  EXPECT_EQ(Repeat(o, 30, 3), bits);
}

// The part of the topology service for overlap_steps auto: it hears what peers
// measure, and makes a view with the h that hides it.
class OverlapService {
 public:
  explicit OverlapService(size_t peers) : timings_(peers) {}
  // Null before the first choice.
  const View* changed() const { return view_.epoch > 0 ? &view_ : nullptr; }
  void Begin(uint64_t round) { begun_ = std::max(begun_, round); }
  void Hear(size_t peer, const RoundTiming& timing, const View& before) {
    timings_[peer] = timing;
    if (begun_ < view_.from_round) return;
    const int h = chooser_.Choose(timings_, h_, begun_ - view_.from_round);
    if (h == h_) return;
    if (view_.epoch == 0) view_ = before;
    h_ = h;
    view_.epoch += 1;
    view_.from_round = begun_ + 2;
    view_.overlap_steps = h;
    for (RoundTiming& t : timings_) t = {};
  }

 private:
  std::vector<RoundTiming> timings_;
  uint64_t begun_ = 0;  // by the first view
  int h_ = 1;
  OverlapChooser chooser_;
  View view_;
};

// A membership that reports a peer's timing to OverlapService and takes its
// view.
class MeasuredOverlap final : public ForwardingMembership {
 public:
  MeasuredOverlap(std::unique_ptr<Membership> fleet, size_t peer,
                  std::shared_ptr<OverlapService> service)
      : ForwardingMembership(std::move(fleet)),
        peer_(peer),
        service_(std::move(service)) {}
  const View& view() const override {
    const View* changed = service_->changed();
    return changed != nullptr ? *changed : ForwardingMembership::view();
  }
  void BeginRound(uint64_t round) override {
    service_->Begin(round);
    ForwardingMembership::BeginRound(round);
  }
  void Report(const PeerReport& report) override {
    service_->Hear(peer_, report.timing, view());
    ForwardingMembership::Report(report);
  }

 private:
  const size_t peer_;
  const std::shared_ptr<OverlapService> service_;
};

// The latency is several steps, so h grows in the middle of the run.  Side by
// side and without a service, the log alone gives the round and the h.
TEST_F(ReplayTest, AnOverlapThatFollowedTheLatencyRepeats) {
  SimFleetOptions o = QuadraticFleet(5, 120);
  o.codec = "innov-int4";
  o.peer.overlap_steps = kAutoOverlap;
  SimFleetOptions far = o;
  far.network.link.latency = absl::Milliseconds(35);
  far.membership = [service = std::make_shared<OverlapService>(5),
                    peer = size_t{0}](auto fleet) mutable {
    return std::make_unique<MeasuredOverlap>(std::move(fleet), peer++, service);
  };
  const uint64_t bits = Record(far, 1);
  // The first line of each peer is of the first view.
  EXPECT_GT(Lines("overlap"), 5u);
  EXPECT_EQ(Lines("overlap"), Lines("\noverlap") + 5);
  EXPECT_EQ(Repeat(o, 0.1, 1), bits);
  EXPECT_EQ(Repeat(o, 30, 3), bits);
  logs_.assign(5, "");
  EXPECT_NE(Repeat(o, 0.1, 1), bits);
}

// Each line of the log matters: without one, other bits come out, or the run
// ends.
TEST_F(ReplayTest, ALineThatIsMissingIsMissed) {
  SimFleetOptions o = QuadraticFleet(5, 120);
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  o.peer.liveness_limit = absl::Seconds(5);
  const uint64_t bits = Record(o, 1);
  std::string& log = logs_[0];
  const size_t at = log.find("skip");
  ASSERT_NE(at, std::string::npos);
  log.erase(at, log.find('\n', at) + 1 - at);
  SimFleetOptions again = o;
  std::vector<Decisions> decisions;
  for (const std::string& l : logs_) decisions.push_back(*Decisions::Replay(l));
  again.decisions = [&](int rank) { return &decisions[rank]; };
  SimFleet fleet(again);
  EXPECT_TRUE(!fleet.Run() || fleet.Hash() != bits);
}

TEST_F(ReplayTest, ChosenFormatsRepeat) {
  SimFleetOptions o = QuadraticFleet(4, 60);
  o.codec = "auto";
  o.game = [](int rank) -> std::unique_ptr<Game> {
    return *SyntheticGame::Create({.parameters = 20480}, rank, 4, 7);
  };
  o.network.link.bytes_per_second = 20480 / 8.0 * 3 / 0.010;
  const uint64_t bits = Record(o, 1);
  EXPECT_GT(Lines("format"), 0u);
  o.network.link.bytes_per_second = 0;
  EXPECT_EQ(Repeat(o, 5, 1), bits);
}

// All-gather is the fastest for peers that are far apart, but not for peers
// side by side on a slow link.  Each schedule has its own order of sums.
TEST_F(ReplayTest, TheAllReduceThatWasChosenRepeats) {
  SimFleetOptions o = FarCentralizedFleet();
  const uint64_t bits = Record(o, 1);
  EXPECT_EQ(Lines("all-reduce"), 4u);
  o.network.link.bytes_per_second = 3000;
  EXPECT_EQ(Repeat(o, 0.1, 2), bits);
  logs_.assign(4, "");
  EXPECT_NE(Repeat(o, 0.1, 2), bits);
}

TEST_F(ReplayTest, LinesThatAreNoneAreRefusedByNumber) {
  for (const char* bad :
       {"jump 1 5\nhop 2\n", "jump 1 5\njump 3\n", "jump 1 5\ndone 1 2 x\n",
        "stop 4\nformat 1 2 99\n", "stop 4\nformat 1 2 8\n",
        "stop 4\nall-reduce 99\n"}) {
    const auto decisions = Decisions::Replay(bad);
    EXPECT_EQ(decisions.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(decisions.status().message()),
                testing::HasSubstr("line 2"));
  }
}

}  // namespace replay_test
}  // namespace gossamer
