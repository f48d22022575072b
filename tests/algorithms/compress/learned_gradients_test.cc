// LGC: its phases, the savings and losses of its codes, and that no coder,
// however bad, does harm.

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/compress/learning_phases.h"
#include "gmock/gmock.h"
#include "tests/algorithms/compress/gradient_fleet.h"

namespace gossamer {
namespace learned_gradients_test {

using testing::HasSubstr;
using Phase = LearningPhase;

TEST(LearningPhasesTest, CodesBeginOnceTheyAreGoodAndEndWhenTheyAreBad) {
  LearningPhases phases({.learn = 5, .worst = 0.5});
  uint64_t step = 3;
  // However long codes are bad.
  for (; step < 100; ++step) {
    ASSERT_EQ(phases.At(step), Phase::kLearning) << step;
    phases.Note(step, 0.8);
  }
  const auto note_until = [&](double error, Phase next) {
    for (int i = 0; phases.At(step + 1) != next; ++i, ++step) {
      ASSERT_LT(i, 100);
      phases.Note(step, error);
    }
  };
  note_until(0.1, Phase::kCoded);
  EXPECT_EQ(phases.At(step), Phase::kLearning);
  EXPECT_EQ(phases.At(step + 2), Phase::kCoded);
  for (++step; step < 200; ++step) phases.Note(step, 0.49);
  EXPECT_EQ(phases.At(step + 1), Phase::kCoded);
  // An error of step 200 counts from step 202 on.
  phases.Note(step, 0.51);
  EXPECT_EQ(phases.At(step + 1), Phase::kCoded);
  EXPECT_EQ(phases.At(step + 2), Phase::kLearning);
  phases.Note(step + 1, 0.0);
  EXPECT_EQ(phases.At(step + 2), Phase::kLearning);
  // The coder learns anew, at least as long as the first time.
  for (step += 2; step < 206; ++step) phases.Note(step, 0.0);
  EXPECT_EQ(phases.At(208), Phase::kLearning);
  note_until(0.0, Phase::kCoded);
  for (++step; step < 230; ++step) phases.Note(step, 0.0);
  phases.Note(step, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(phases.At(step + 2), Phase::kLearning);
}

TEST(LearningPhasesTest, GoOnFromTheirState) {
  const LearningPlan plan = {.learn = 4, .worst = 0.5};
  LearningPhases phases(plan);
  const auto error = [](uint64_t step) { return step % 30 < 20 ? 0.1 : 0.9; };
  int changes = 0;
  for (uint64_t step = 2; step < 90; ++step) {
    StateCopy state;
    phases.VisitState(state);
    state.restoring = true;
    LearningPhases other(plan);
    other.VisitState(state);
    changes += phases.At(step) != phases.At(step + 1);
    phases.Note(step, error(step));
    other.Note(step, error(step));
    for (const uint64_t ahead : {1, 2}) {
      ASSERT_EQ(other.At(step + ahead), phases.At(step + ahead)) << step;
    }
  }
  EXPECT_GE(changes, 4);
}

// Gradients of a network: the values of a chunk are as large as its
// `Amplitude`, at one index, up or down.  Ranks differ by a little noise.
class Chunks {
 public:
  static constexpr int kChunk = 20, kValues = 640;

  static ParameterLayout Layout() {
    return ParameterLayout({{"w", Player::kGenerator, {kValues, kChunk}, {}},
                            {"b", Player::kGenerator, {7}, {}}});
  }
  template <typename F>
  static GradientFleet::Vectors Gradients(int size, uint64_t step,
                                          const F& amplitude) {
    const size_t n = kValues * kChunk + 7;
    GradientFleet::Vectors g(size, std::vector<float>(n));
    const RngKey key = RngKey(11).Fold(step);
    for (int r = 0; r < size; ++r) {
      key.Fold(r).FillGaussian(g[r]);
      for (float& x : g[r]) x *= 0.01f;
      for (int i = 0; i < kValues; ++i) {
        const auto at = RngKey(2).Below(kChunk, i);
        const bool up = RngKey(3).Below(2, i) == 0;
        g[r][i * kChunk + at] += up ? amplitude(i) : -amplitude(i);
      }
    }
    return g;
  }
};

float Even(int) { return 1; }
float Fifth(int i) { return i % 8 == 5 ? 8 : 0.2f; }
float Second(int i) { return i % 8 == 2 ? 8 : 0.2f; }

constexpr char kLgc[] = "lgc:rate=20,full=4,learn=150,worst=0.5,again=20";
constexpr size_t kLearningFloats = 2 + 640 + 7 + 2 * 16 * 4;
constexpr size_t kCodedFloats = 2 + 640 / 4 + 7;

TEST(LearnedGradientsTest, LearnsAndSendsLessThanChosenValues) {
  GradientFleet fleet(kLgc, Chunks::Layout(), 4);
  GradientFleet scalecom("scalecom:rate=20", Chunks::Layout(), 4);
  const auto step_of = [](GradientFleet& f) {
    const size_t before = f.bytes_sent(1);
    f.Step(Chunks::Gradients(4, f.step(), Fifth));
    return f.bytes_sent(1) - before;
  };
  for (int i = 0; i < 4; ++i) step_of(fleet);
  EXPECT_EQ(fleet.rank(1).Form(4, 4).floats, kLearningFloats);
  for (int i = 0; i < 300; ++i) step_of(fleet);
  ASSERT_EQ(fleet.rank(1).Form(fleet.step(), 4).floats, kCodedFloats);
  size_t sent = 0, of_scalecom = 0;
  for (int i = 0; i < 8; ++i) {
    sent += step_of(fleet);
    of_scalecom += step_of(scalecom);
  }
  EXPECT_LT(static_cast<double>(sent), 0.45 * static_cast<double>(of_scalecom));
  // The values left out are small, and so is the residual.
  double residual = 0;
  for (const float m : fleet.Residual(2)) residual += m * m;
  EXPECT_LT(residual, 0.1 * 640 * 8);
}

TEST(LearnedGradientsTest, CodersHaveTheSameBitsAtAllRanks) {
  for (const std::string& name :
       {std::string(kLgc), kLgc + std::string(",server=1")}) {
    GradientFleet fleet(name, Chunks::Layout(), 3);
    const auto first = fleet.Save(0).floats["coder"];
    for (int i = 0; i < 250; ++i) {
      auto g = Chunks::Gradients(3, fleet.step(), i < 170 ? Fifth : Second);
      if (i % 7 == 3) g[i % 3].clear();
      fleet.Step(g, RngKey(i));
      const auto coder = fleet.Save(0).floats["coder"];
      for (int r = 1; r < 3; ++r) {
        const auto other = fleet.Save(r).floats["coder"];
        ASSERT_TRUE(std::ranges::equal(coder, other, {},
                                       std::bit_cast<uint32_t, float>,
                                       std::bit_cast<uint32_t, float>))
            << i;
      }
    }
    EXPECT_NE(fleet.Save(0).floats["coder"], first);
  }
}

// The encoder has learnt one distribution when another one comes.
TEST(LearnedGradientsTest, FallsBackWhenTheCoderIsStaleAndRecovers) {
  GradientFleet fleet(kLgc, Chunks::Layout(), 4);
  const auto floats = [&] {
    return fleet.rank(0).Form(fleet.step(), 4).floats;
  };
  // Returns the largest squared residual of a rank, and the number of steps
  // with codes.
  const auto train_until = [&](uint64_t end, const auto& amplitude) {
    std::pair<double, int> seen;
    while (fleet.step() < end) {
      seen.second += floats() == kCodedFloats;
      fleet.Step(Chunks::Gradients(4, fleet.step(), amplitude));
      double residual = 0;
      for (const float m : fleet.Residual(0)) residual += m * m;
      seen.first = std::max(seen.first, residual);
    }
    return seen;
  };
  const auto [before, coded_before] = train_until(405, Fifth);
  ASSERT_GT(coded_before, 200);
  ASSERT_EQ(floats(), kCodedFloats);
  const auto [after, coded] = train_until(411, Second);
  EXPECT_EQ(coded, 2);
  EXPECT_EQ(floats(), kLearningFloats);
  const auto [meanwhile, coded_meanwhile] = train_until(700, Second);
  EXPECT_GT(coded_meanwhile, 50) << "the coder has not learnt what changed";
  // The bound is all of two steps' gradients, and some of the small values.
  EXPECT_LT(std::max(after, meanwhile), 640 / 8 * 18 * 18);
  EXPECT_LT(train_until(900, Second).first, 4 * before);
}

// Bytes for 160,000 values, the mean over a cycle of all leaders.
TEST(LearnedGradientsTest, CodesAreAsLongAsTheyAreSaidToBe) {
  const ParameterLayout layout({{"w", Player::kGenerator, {400, 400}, {}}});
  const double k = 160000.0 / 100;
  const std::string soon = "lgc:full=0,learn=1,worst=0.99,again=0";
  for (const int size : {4, 16, 64}) {
    const auto per_step = [&](const std::string& method) {
      GradientFleet fleet(method, layout, size);
      GradientFleet::Vectors g(size, std::vector<float>(layout.size()));
      for (int r = 0; r < size; ++r) RngKey(r).FillGaussian(g[r]);
      const auto sent = [&] {
        size_t all = 0;
        for (int r = 0; r < size; ++r) all += fleet.bytes_sent(r);
        return static_cast<double>(all);
      };
      for (int i = 0; i < 12; ++i) fleet.Step(g);
      const double before = sent();
      fleet.Step(g);
      return (sent() - before) / size;
    };
    const double share = (size - 1.0) / size;
    // A leader message has an index and a sign for each value, a scale, and 4
    // floats for 16 values.
    const double message = share * (k * 7 / 8 + k / 8 + 4 + 32);
    EXPECT_NEAR(per_step(soon),
                message + share * 8 * (k / 4 + 2) + 2 * (size - 1) * 32, 8);
    // With a server the code is in the message, with 16 novel values.
    EXPECT_NEAR(per_step(soon + ",server=1"),
                message + share * k + (size - 1) * (14 + 4 * (3 + 16) + 32), 8);
  }
}

// A coder whose every operation fails or gives a useless result.
class UselessCoder final : public ValueCoder {
 public:
  enum class Kind { kFails, kNotFinite, kHuge, kRandom };
  UselessCoder(Kind kind, size_t values, size_t code)
      : kind_(kind), code_((values + 15) / 16 * code), parameters_(3, 1.0f) {}
  size_t code_size() const override { return code_; }
  std::span<float> parameters() override { return parameters_; }
  absl::Status Gradient(std::span<const float>,
                        std::span<float> gradient) override {
    return Say(gradient);
  }
  absl::Status Encode(std::span<const float>, std::span<float> code) override {
    return Say(code);
  }
  void Decode(std::span<const float> code,
              std::span<float> values) const override {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = code[i % code.size()];
    }
  }

 private:
  absl::Status Say(std::span<float> what) {
    std::fill(
        what.begin(), what.end(),
        kind_ == Kind::kHuge ? 1e25f : std::numeric_limits<float>::quiet_NaN());
    if (kind_ == Kind::kRandom) RngKey(++draws_).FillGaussian(what);
    return kind_ == Kind::kFails ? absl::InternalError("broken")
                                 : absl::OkStatus();
  }

  const Kind kind_;
  const size_t code_;
  uint64_t draws_ = 0;
  std::vector<float> parameters_;
};

ValueCoderMaker Useless(UselessCoder::Kind kind) {
  return [kind](size_t values,
                size_t code) -> absl::StatusOr<std::unique_ptr<ValueCoder>> {
    return std::make_unique<UselessCoder>(kind, values, code);
  };
}

TEST(LearnedGradientsTest, WithACoderThatNeverLearnsItIsScaleCom) {
  using Kind = UselessCoder::Kind;
  for (const Kind kind :
       {Kind::kFails, Kind::kNotFinite, Kind::kHuge, Kind::kRandom}) {
    GradientFleet fleet("lgc:rate=20,full=0,learn=1,worst=0.5",
                        Chunks::Layout(), 3, "", Useless(kind));
    GradientFleet scalecom("scalecom:rate=20", Chunks::Layout(), 3);
    for (int i = 0; i < 60; ++i) {
      const auto g = Chunks::Gradients(3, i, Fifth);
      // The sums are formed in another order.
      ASSERT_THAT(fleet.Step(g), testing::Pointwise(testing::FloatNear(1e-5f),
                                                    scalecom.Step(g)))
          << i;
    }
  }
}

// Each rank pulls to a target of its own; the targets jump.  Returns the
// distance of the common x to their mean, as a share of the largest one.
double DistanceAfterAJump(std::string_view method,
                          const ValueCoderMaker& coders) {
  constexpr int kSize = 4, kSteps = 1600;
  const ParameterLayout layout({{"w", Player::kGenerator, {64, 20}, {}}});
  const size_t n = layout.size();
  GradientFleet fleet(method, layout, kSize, "", coders);
  std::vector<float> x(n);
  double start = 0, distance = 0;
  for (int step = 0; step < kSteps; ++step) {
    const bool jumped = step >= kSteps / 2;
    GradientFleet::Vectors targets(kSize, std::vector<float>(n));
    GradientFleet::Vectors g = targets;
    std::vector<float> mean(n);
    for (int r = 0; r < kSize; ++r) {
      RngKey(r).Fold(jumped).FillGaussian(targets[r]);
      for (size_t i = 0; i < n; ++i) {
        // A few coordinates jump far.
        if (jumped && i % 160 == 3) targets[r][i] += 30;
        mean[i] += targets[r][i] / kSize;
        g[r][i] = x[i] - targets[r][i];
      }
    }
    const auto q = fleet.Step(g);
    distance = 0;
    for (size_t i = 0; i < n; ++i) {
      distance += (x[i] - mean[i]) * (x[i] - mean[i]);
      x[i] -= 0.02f * q[i];
    }
    if (step == kSteps / 2) start = distance;
  }
  return std::sqrt(distance / start);
}

TEST(LearnedGradientsTest, TrainingRecoversFromAJumpWithAnyCoder) {
  EXPECT_LT(DistanceAfterAJump("scalecom:rate=20", nullptr), 0.1);
  for (const char* const name : {"lgc:rate=20,full=10,learn=100",
                                 "lgc:rate=20,full=10,learn=100,server=1"}) {
    EXPECT_LT(DistanceAfterAJump(name, MakeLinearCoder), 0.1) << name;
    // The method does not use codes that carry nothing.
    EXPECT_LT(DistanceAfterAJump(name, Useless(UselessCoder::Kind::kRandom)),
              0.1)
        << name;
  }
}

// The useless lesson of a coder.  Either it has learnt the fastest cosines of a
// block, which lose what is alike in it, as values in the leader's units are;
// or it has learnt random directions, which still carry a little.
enum class Taught { kSomethingElse, kNothing };

// A coder that learns until the test makes it stale.  From then on it is frozen
// with another lesson.
class StaleCoder final : public ValueCoder {
 public:
  StaleCoder(Taught taught, size_t values, size_t code, const bool* stale)
      : learning_(*MakeLinearCoder(values, code)),
        other_(*MakeLinearCoder(values, code)),
        stale_(*stale) {
    const auto weights = other_->parameters();
    const auto half = weights.first(weights.size() / 2);
    RngKey(4).FillGaussian(half);
    for (size_t i = 0; i < half.size(); ++i) {
      const size_t c = i / kBlock, j = i % kBlock;
      half[i] = static_cast<float>(
          taught == Taught::kNothing
              ? half[i] / std::sqrt(kBlock)
              : std::sqrt(2.0 / kBlock) *
                    std::cos(std::numbers::pi / kBlock * (kBlock - 1.0 - c) *
                             (j + 0.5)));
    }
    std::ranges::copy(half, weights.last(half.size()).begin());
  }
  size_t code_size() const override { return learning_->code_size(); }
  std::span<float> parameters() override { return learning_->parameters(); }
  absl::Status Gradient(std::span<const float> values,
                        std::span<float> gradient) override {
    return learning_->Gradient(values, gradient);
  }
  absl::Status Encode(std::span<const float> values,
                      std::span<float> code) override {
    return (stale_ ? other_ : learning_)->Encode(values, code);
  }
  void Decode(std::span<const float> code,
              std::span<float> values) const override {
    (stale_ ? other_ : learning_)->Decode(code, values);
  }

 private:
  const std::unique_ptr<ValueCoder> learning_, other_;
  const bool& stale_;
};

// The end of a training whose coder became stale.
struct StaleEnd {
  double distance = 0;   // distance to the optimum, mean of the last 300 steps
  double farthest = 0;   // largest distance at any step since then
  int coded_before = 0;  // steps whose codes travelled
  int coded_after = 0;
  bool coded_at_the_end = false;
};

// Trains on noisy quadratics of ranks that differ.  The targets jump when the
// coder becomes stale, so that there is as much to send as at the start.
StaleEnd TrainPastStaleness(std::string_view method,
                            Taught taught = Taught::kSomethingElse) {
  constexpr int kSize = 4;
  constexpr uint64_t kStale = 400, kSteps = 1600, kLast = 300;
  const ParameterLayout layout({{"w", Player::kGenerator, {64, 20}, {}}});
  const size_t n = layout.size();
  bool stale = false;
  GradientFleet fleet(
      method, layout, kSize, "",
      [&](size_t values,
          size_t code) -> absl::StatusOr<std::unique_ptr<ValueCoder>> {
        return std::make_unique<StaleCoder>(taught, values, code, &stale);
      });
  const size_t coded = 2 + 64 / 4;
  StaleEnd end;
  std::vector<float> x(n);
  for (uint64_t step = 0; step < kSteps; ++step) {
    stale = step >= kStale;
    const AllReduceForm form = fleet.rank(0).Form(step, kSize);
    end.coded_at_the_end = form.floats == coded || form.payloads != nullptr;
    (stale ? end.coded_after : end.coded_before) += end.coded_at_the_end;
    GradientFleet::Vectors g(kSize, std::vector<float>(n));
    std::vector<float> target(n), mean(n);
    for (int r = 0; r < kSize; ++r) {
      RngKey(r).Fold(stale).FillGaussian(target);
      RngKey(r).Fold("noise").Fold(step).FillGaussian(g[r]);
      for (size_t i = 0; i < n; ++i) {
        mean[i] += target[i] / kSize;
        g[r][i] += x[i] - target[i];
      }
    }
    const auto q = fleet.Step(g);
    double squares = 0;
    for (size_t i = 0; i < n; ++i) {
      x[i] -= 0.02f * q[i];
      squares += (x[i] - mean[i]) * (x[i] - mean[i]);
    }
    if (stale) end.farthest = std::max(end.farthest, std::sqrt(squares));
    if (step >= kSteps - kLast) end.distance += std::sqrt(squares) / kLast;
  }
  return end;
}

// ScaleCom ends at a distance of 2.01, top-k at 2.28; the jump is one of 17.8.
TEST(LearnedGradientsTest, AStaleCoderEndsWhereScaleComAndTopKEnd) {
  const StaleEnd scalecom = TrainPastStaleness("scalecom:rate=20");
  const StaleEnd top_k = TrainPastStaleness("top-k:rate=20");
  ASSERT_LT(scalecom.distance, 2.1);
  for (const char* const name : {"lgc:rate=20,full=10,learn=100",
                                 "lgc:rate=20,full=10,learn=100,server=1"}) {
    for (const Taught taught : {Taught::kSomethingElse, Taught::kNothing}) {
      const StaleEnd end = TrainPastStaleness(name, taught);
      EXPECT_GT(end.coded_before, 200) << name;
      // The first stale step counts from the step after the next on.
      EXPECT_EQ(end.coded_after, 2) << name;
      EXPECT_FALSE(end.coded_at_the_end) << name;
      EXPECT_LT(end.distance, 1.05 * scalecom.distance) << name;
      EXPECT_LT(end.distance, top_k.distance) << name;
      EXPECT_LT(end.farthest, 1.05 * scalecom.farthest) << name;
    }
  }
}

// Codes that lose nearly all of a gradient cost distance if the configuration
// accepts them: a fifth with sums, three quarters with a server.  Training does
// not diverge.
TEST(LearnedGradientsTest, AStaleCoderThatIsBelievedIsSlowAndNoWorse) {
  const StaleEnd scalecom = TrainPastStaleness("scalecom:rate=20");
  const std::string believed = "lgc:rate=20,full=10,learn=100,worst=0.99";
  for (const auto& [name, factor] :
       {std::pair(believed, 1.4), std::pair(believed + ",server=1", 2.2)}) {
    const StaleEnd end = TrainPastStaleness(name, Taught::kNothing);
    EXPECT_GT(end.coded_after, 400) << name;
    EXPECT_LT(end.distance, factor * scalecom.distance) << name;
    EXPECT_GT(end.distance, 1.1 * scalecom.distance) << name;
    EXPECT_LT(end.farthest, 1.05 * scalecom.farthest) << name;
  }
}

TEST(LearnedGradientsTest, SurvivesExtremeGradients) {
  for (const char* const name :
       {"lgc:rate=20,full=0,learn=1,worst=0.99,again=0",
        "lgc:rate=20,full=0,learn=1,worst=0.99,again=0,server=1"}) {
    GradientFleet fleet(name, Chunks::Layout(), 2);
    for (const float most : {1.0f, 0.0f, 1e-38f, 1e38f, 1e-45f, 3e38f, 1.0f}) {
      for (int i = 0; i < 4; ++i) {
        auto g = Chunks::Gradients(2, fleet.step(), Even);
        for (auto& of_rank : g) {
          for (float& x : of_rank) {
            x = std::clamp(x, -1.0f, 1.0f) * most;
          }
        }
        for (const float m : fleet.Step(g)) ASSERT_TRUE(std::isfinite(m));
        for (const float m : fleet.Residual(1)) ASSERT_TRUE(std::isfinite(m));
      }
    }
  }
}

// Such a network has no large values to choose from, so it sends floats for
// ever.
TEST(LearnedGradientsTest, SmallNetworksTravelWhole) {
  const ParameterLayout layout({{"b", Player::kGenerator, {40}, {}}});
  GradientFleet fleet("lgc:rate=65536,full=0,learn=1", layout, 2);
  for (int i = 0; i < 5; ++i) {
    GradientFleet::Vectors g(2, std::vector<float>(40, 1.0f + i));
    EXPECT_EQ(fleet.Step(g), g[0]);
  }
}

TEST(LearnedGradientsTest, RefusesWhatCannotBe) {
  const auto why = [](std::string_view name) {
    const auto made = GradientCompressor::Create(
        name, Chunks::Layout(), HostKernels(), MakeLinearCoder);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << name;
    return std::string(made.status().message());
  };
  EXPECT_THAT(why("lgc:code=9"), HasSubstr("a whole number from 1 to 8"));
  EXPECT_THAT(why("lgc:learn=0"),
              HasSubstr("a whole number from 1 to 1000000000"));
  EXPECT_THAT(why("lgc:full=-1"),
              HasSubstr("a whole number from 0 to 1000000000"));
  EXPECT_THAT(why("lgc:worst=1"), HasSubstr("a number from 0.01 to 0.99"));
  EXPECT_THAT(why("lgc:rate=1"), HasSubstr("from 2 to 65536"));
  EXPECT_THAT(why("lgc:beta=1"),
              HasSubstr("known: rate, code, learn, worst, again, "
                        "server, novel, flat, full"));
  const auto without = GradientCompressor::Create("lgc", Chunks::Layout());
  EXPECT_EQ(without.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(without.status().message()),
              HasSubstr("learns an autoencoder"));
  EXPECT_TRUE(GradientCompressor::Create("lgc", {}).ok());
}

class LedMessageTest : public testing::TestWithParam<const char*> {};

// Changed leader messages and payloads of codes are refused, or have finite
// consequences.
TEST_P(LedMessageTest, SurvivesWhatIsNoMessageOfIt) {
  GradientFleet fleet(GetParam(), Chunks::Layout(), 2);
  while (fleet.step() < 6) {
    fleet.Step(Chunks::Gradients(2, fleet.step(), Even));
  }
  const auto g = Chunks::Gradients(2, 6, Even);
  const AllReduceForm form = fleet.rank(0).Form(6, 2);
  ASSERT_TRUE(form.floats == kCodedFloats || form.payloads != nullptr);
  ASSERT_EQ(form.leader, 0);
  fleet.rank(0).Begin({6, 0, 2}, g[0]);
  fleet.rank(1).Begin({6, 1, 2}, g[1]);
  const SharedBytes message = fleet.rank(0).MakeLeaderMessage();
  ASSERT_TRUE(form.check_leader_message(message.bytes()).ok());
  EXPECT_FALSE(form.check_leader_message({}).ok());
  EXPECT_FALSE(
      form.check_leader_message(message.bytes().first(message.size() - 1))
          .ok());
  const RngKey key(9);
  int refused = 0, taken = 0;
  std::vector<float> vector(form.floats);
  for (uint64_t i = 0; i < 2000; ++i) {
    std::vector<std::byte> bad(message.bytes().begin(), message.bytes().end());
    for (uint64_t k = 0; k <= i % 3; ++k) {
      // Half of the changes are behind the choice.
      const size_t at = key.Fold(k).Below(bad.size(), i);
      bad[i % 2 == 0 ? at : bad.size() - 1 - at / 4] =
          static_cast<std::byte>(key.Fold(k).Fold("byte").Below(256, i));
    }
    if (!form.check_leader_message(bad).ok()) {
      ++refused;
      continue;
    }
    ++taken;
    const SharedBytes payload = fleet.rank(1).Contribute(
        SharedBytes::FromVector(std::move(bad)), vector);
    if (form.payloads != nullptr) {
      ASSERT_TRUE(form.payloads->Accept(payload).ok());
      std::ranges::fill(vector, 0.0f);
      form.payloads->Add(payload.bytes(), vector);
    }
    for (const float v : vector) ASSERT_TRUE(std::isfinite(v));
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(taken, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Gradients, LedMessageTest,
    testing::Values("lgc:rate=20,full=0,learn=1,worst=0.99,again=0",
                    "lgc:rate=20,full=0,learn=1,worst=0.99,again=0,server=1"));

}  // namespace learned_gradients_test
}  // namespace gossamer
