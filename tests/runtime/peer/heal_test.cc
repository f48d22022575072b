// A peer whose parameters are spoilt begins anew by itself, with the median of
// members' states; one that is spoilt again and again ends with the reason.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/game/wrapped_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/forwarding_membership.h"
#include "tests/testing/sim_fleet.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace heal_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kPeers = 5, kSick = 2;

// The part of a service that a spoilt member needs: every other member gives it
// a state, and a view a little ahead admits it.
struct Clinic {
  EventLoop* loop = nullptr;
  View view;
  uint64_t furthest = 0;
  std::optional<PeerId> patient;
  bool over = false;  // the others end before it is well
  bool full = false;  // or before a view has it
  std::vector<std::function<void()>> tell;

  void Tell() {
    loop->Post([this] {
      for (const auto& f : tell) f();
    });
  }
};

// A peer's view of the fleet and of the clinic.
class ClinicMembership final : public ForwardingMembership {
 public:
  ClinicMembership(std::unique_ptr<Membership> fleet, PeerId self,
                   Clinic* clinic)
      : ForwardingMembership(std::move(fleet)), self_(self), clinic_(clinic) {}
  const View& view() const override {
    return clinic_->patient == self_ ? none_ : clinic_->view;
  }
  void BeginRound(uint64_t round) override {
    clinic_->furthest = std::max(clinic_->furthest, round);
    ForwardingMembership::BeginRound(round);
  }
  bool RenewIncarnation() override {
    clinic_->patient = self_;
    clinic_->Tell();
    return true;
  }
  std::vector<Member> donors() const override {
    std::vector<Member> others;
    if (clinic_->patient != self_ || clinic_->over) return others;
    for (const Member& m : clinic_->view.members) {
      if (m.id != self_) others.push_back(m);
    }
    return others;
  }
  std::vector<Member> joiners() const override {
    if (!clinic_->patient || clinic_->patient == self_) return {};
    return {{*clinic_->patient, ""}};
  }
  StopState stop() const override {
    if (clinic_->patient != self_ || !clinic_->over) return {};
    return {.round = clinic_->furthest, .committed = true};
  }
  void SetReady() override {
    if (clinic_->full) {
      clinic_->over = true;
      return clinic_->Tell();
    }
    clinic_->patient.reset();
    ++clinic_->view.epoch;
    clinic_->view.from_round = clinic_->furthest + 3;
    clinic_->Tell();
  }
  void Observe(const void* owner, std::function<void()> f) override {
    clinic_->tell.push_back(f);
    ForwardingMembership::Observe(owner, std::move(f));
  }

 private:
  const PeerId self_;
  Clinic* const clinic_;
  const View none_;
};

// A game that calls `harm` before each gradient, with the number of gradients
// so far; a status that is not OK becomes the gradient's.
class HarmedGame final : public Game {
 public:
  using Harm =
      std::function<absl::Status(uint64_t call, std::span<float> parameters)>;
  HarmedGame(std::unique_ptr<Game> game, Harm harm)
      : game_(std::move(game)), harm_(std::move(harm)) {}
  const ParameterLayout& layout() const override { return game_->layout(); }
  DeviceSpan<float> device_parameters() override {
    return game_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override {
    return game_->device_gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    const absl::Status status = harm_(calls_++, parameters());
    if (!status.ok()) return status;
    return game_->Gradient(players, key);
  }

 private:
  const std::unique_ptr<Game> game_;
  const Harm harm_;
  uint64_t calls_ = 0;
};

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = 1e6f;

void Spoil(std::span<float> parameters) { parameters[3] = kNotANumber; }

HarmedGame::Harm SpoilsAt(uint64_t when) {
  return [when](uint64_t call, std::span<float> x) {
    if (call == when) Spoil(x);
    return absl::OkStatus();
  };
}

// A game of which no checkpoint can be taken: it shows two states by one name.
class TwiceShownGame final : public WrappedGame {
 public:
  explicit TwiceShownGame(std::unique_ptr<Game> game)
      : WrappedGame(std::move(game)) {}
  void VisitState(StateVisitor& visitor) override {
    visitor.Counter("order", order_);
    visitor.Counter("order", order_);
  }

 private:
  uint64_t order_ = 0;
};

class HealTest : public testing::Test {
 protected:
  void Begin(uint64_t rounds, HarmedGame::Harm harm, bool clinic = true,
             const std::string& checkpoints = "", int mute = -1) {
    SimFleetOptions o = QuadraticFleet(kPeers, rounds);
    o.checkpoints = checkpoints;
    o.codec = "innov-int4";
    o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
    o.peer.limits.largest = kLargest;
    o.peer.liveness_limit = absl::Minutes(2);
    o.game = [harm, mute](int rank) -> std::unique_ptr<Game> {
      auto game = Quadratic(rank, kPeers, 0.1, 0.5);
      if (rank == mute)
        return std::make_unique<TwiceShownGame>(std::move(game));
      if (rank != kSick) return game;
      return std::make_unique<HarmedGame>(std::move(game), harm);
    };
    if (clinic) {
      o.membership = [this, rank = 0](std::unique_ptr<Membership> m) mutable {
        return std::make_unique<ClinicMembership>(
            std::move(m), SimFleet::IdOf(rank++), &clinic_);
      };
    }
    fleet_.emplace(o);
    clinic_.loop = &fleet_->loop();
    clinic_.view = fleet_->fleet().view();
  }

  void ExpectTheOthersFine() {
    for (int rank = 0; rank < kPeers; ++rank) {
      if (rank == kSick) continue;
      EXPECT_TRUE(fleet_->StatusOf(rank).ok()) << fleet_->StatusOf(rank);
      EXPECT_EQ(fleet_->recorder(rank).Count("edge_refused"), 0);
      for (const float v : fleet_->game(rank).parameters()) {
        ASSERT_TRUE(std::isfinite(v));
      }
    }
  }

  Clinic clinic_;
  std::optional<SimFleet> fleet_;
};

class SpoiltTest : public HealTest,
                   public testing::WithParamInterface<float> {};

// A flipped bit in an exponent makes finite nonsense.
INSTANTIATE_TEST_SUITE_P(Heal, SpoiltTest,
                         testing::Values(kNotANumber, -20 * kLargest));

TEST_P(SpoiltTest, APeerWithInvalidParametersRejoins) {
  Begin(300, [](uint64_t call, std::span<float> x) {
    if (call == 100) x[3] = GetParam();
    return absl::OkStatus();
  });
  ASSERT_TRUE(fleet_->Run()) << fleet_->StatusOf(kSick);
  ExpectTheOthersFine();
  EventRecorder& sick = fleet_->recorder(kSick);
  EXPECT_EQ(sick.Count("spoilt"), 1);
  EXPECT_EQ(sick.Count("rejoined"), 1);
  EXPECT_EQ(fleet_->fleet().reports().at(SimFleet::IdOf(kSick)).spoilt, 1u);
  EXPECT_EQ(fleet_->peer(kSick).round(), 301u);
  EXPECT_LT(fleet_->ConsensusDistance(), 0.05);
  for (int rank = 0; rank < kPeers; ++rank) {
    if (rank == kSick) continue;
    // Both neighbours miss one deadline, or two if the peer is hardly back.
    EXPECT_LE(fleet_->peer(rank).last_metrics().late, 2u) << rank;
    const std::vector<RoundMetrics>& rounds = fleet_->recorder(rank).rounds;
    ASSERT_GT(rounds.size(), 290u);
    for (size_t i = 50; i < rounds.size(); ++i) {
      EXPECT_LT(rounds[i].finished - rounds[i - 1].finished,
                absl::Milliseconds(150))
          << rank << " " << i;
    }
  }
}

// A donor offers more than any state of this run has, so another one gives the
// state.
TEST_F(HealTest, ADonorThatOffersNonsenseIsPassedOver) {
  Begin(300, SpoilsAt(100));
  fleet_->Start();
  EventRecorder& sick = fleet_->recorder(kSick);
  ASSERT_TRUE(fleet_->loop().RunUntil([&] { return sick.Count("spoilt") == 1; },
                                      absl::Minutes(1)));
  std::vector<std::byte> offer(49, std::byte{0x7f});
  offer[0] = std::byte{1};
  Transport& donor = fleet_->peer(0).neighborhood().transport();
  ASSERT_TRUE(fleet_->loop().RunUntil(
      [&] {
        return donor.Send(SimFleet::IdOf(kSick), Channel::kState,
                          {SharedBytes::FromVector(offer), SharedBytes()});
      },
      absl::Minutes(1)));
  ASSERT_TRUE(fleet_->Run()) << fleet_->StatusOf(kSick);
  ExpectTheOthersFine();
  EXPECT_EQ(sick.Count("state_failed"), 1);
  EXPECT_EQ(sick.Count("state_received"), 1);
  EXPECT_EQ(sick.Count("rejoined"), 1);
  EXPECT_EQ(fleet_->recorder(1).Count("state_offered"), 1);
}

// The donor reports the reason, and seldom, since it is asked again every
// second.
TEST_F(HealTest, ADonorThatCannotTakeItsStateSaysSo) {
  Begin(2000, SpoilsAt(100),
        /*clinic=*/true, /*checkpoints=*/"", /*mute=*/0);
  ASSERT_TRUE(fleet_->Run()) << fleet_->StatusOf(kSick);
  ExpectTheOthersFine();
  EXPECT_EQ(fleet_->recorder(kSick).Count("state_failed"), 1);
  EXPECT_EQ(fleet_->recorder(kSick).Count("state_received"), 1);
  EXPECT_EQ(fleet_->recorder(0).Count("state_offered"), 0);
  int lines = 0, times = 0;
  for (const Event& e : fleet_->recorder(0).events) {
    if (e.kind != "state_not_offered") continue;
    EXPECT_THAT(e.detail, HasSubstr("is shown twice"));
    ++lines;
    times += static_cast<int>(e.times);
  }
  EXPECT_EQ(lines, 2);
  EXPECT_EQ(times, 10);
}

TEST_F(HealTest, APeerEndsIfItsFleetEndsBeforeItRecovers) {
  clinic_.over = true;
  const TemporaryFolder folder;
  Begin(300, SpoilsAt(100),
        /*clinic=*/true, folder.path());
  ASSERT_TRUE(fleet_->Run()) << fleet_->StatusOf(kSick);
  ExpectTheOthersFine();
  EXPECT_EQ(fleet_->recorder(kSick).Count("ended_without"), 1);
  EXPECT_EQ(fleet_->recorder(kSick).Count("rejoined"), 0);
  EXPECT_EQ(fleet_->recorder(0).Count("ended_without"), 0);
  const auto saved = [&](int rank) {
    return CheckpointStore(absl::StrCat(folder.path(), "/peer-", rank), 1)
        .Rounds();
  };
  EXPECT_THAT(saved(0), ElementsAre(301));
  EXPECT_THAT(saved(kSick), IsEmpty()) << "what it has is nonsense";
}

// The received state belongs to the others' round, which the peer does not
// know.  Saved under its own round it would pass for the state of that round.
TEST_F(HealTest, APeerThatIsNotReadmittedInTimeSavesNothing) {
  clinic_.full = true;
  const TemporaryFolder folder;
  Begin(300, SpoilsAt(100),
        /*clinic=*/true, folder.path());
  ASSERT_TRUE(fleet_->Run()) << fleet_->StatusOf(kSick);
  ExpectTheOthersFine();
  EXPECT_EQ(fleet_->recorder(kSick).Count("state_received"), 1);
  EXPECT_EQ(fleet_->recorder(kSick).Count("ended_without"), 1);
  const CheckpointStore store(absl::StrCat(folder.path(), "/peer-", kSick), 1);
  EXPECT_THAT(store.Rounds(), IsEmpty());
}

TEST_F(HealTest, APeerThatFailsToRecoverEndsWithTheReason) {
  Begin(1500, [](uint64_t call, std::span<float> x) {
    if (call >= 50 && call % 20 == 0) Spoil(x);
    return absl::OkStatus();
  });
  EXPECT_FALSE(fleet_->Run());
  ExpectTheOthersFine();
  EXPECT_EQ(fleet_->recorder(kSick).Count("spoilt"), 3);
  EXPECT_EQ(fleet_->StatusOf(kSick).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(fleet_->StatusOf(kSick).message()),
              HasSubstr("parameters are nonsense again, though it took "
                        "what members have 3 times"));
}

TEST_F(HealTest, APeerWhoseStepsAllFailRejoins) {
  Begin(300, [](uint64_t call, std::span<float>) {
    if (call < 20 || call >= 120) return absl::OkStatus();
    return absl::DataLossError("the gradient is not finite");
  });
  ASSERT_TRUE(fleet_->Run()) << fleet_->StatusOf(kSick);
  ExpectTheOthersFine();
  EXPECT_EQ(fleet_->recorder(kSick).Count("step_skipped"), 100);
  EXPECT_EQ(fleet_->recorder(kSick).Count("spoilt"), 1);
  EXPECT_EQ(fleet_->recorder(kSick).Count("rejoined"), 1);
}

// No service could admit it again, so it reports its state and contributes
// nothing.
TEST_F(HealTest, APeerWithInvalidParametersContributesNothingWithoutAService) {
  Begin(100, SpoilsAt(30),
        /*clinic=*/false);
  ASSERT_TRUE(fleet_->Run()) << fleet_->StatusOf(kSick);
  ExpectTheOthersFine();
  EXPECT_EQ(fleet_->recorder(kSick).Count("spoilt"), 0);
  EXPECT_GT(fleet_->recorder(kSick).Count("nonfinite_parameters"), 60);
  EXPECT_EQ(fleet_->peer(kSick).last_metrics().round, 100u);
}

}  // namespace heal_test
}  // namespace gossamer
