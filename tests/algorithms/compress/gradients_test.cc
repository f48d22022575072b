// The promises of every gradient method, and QSGD's own part of them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/compress/gradient_compressor.h"
#include "gmock/gmock.h"
#include "tests/algorithms/compress/gradient_fleet.h"
#include "tests/algorithms/golden_file.h"

namespace gossamer {
namespace gradients_test {

using testing::HasSubstr;

ParameterLayout SomeLayout() {
  return ParameterLayout({{"g", Player::kGenerator, {33, 41}, {}},
                          {"g.b", Player::kGenerator, {41}, {}},
                          {"d", Player::kDiscriminator, {64, 4, 3, 3}, {}},
                          {"d.b", Player::kDiscriminator, {3}, {}}});
}

GradientFleet::Vectors Gradients(int size, size_t n, RngKey key) {
  GradientFleet::Vectors g(size, std::vector<float>(n));
  for (int r = 0; r < size; ++r) key.Fold(r).FillGaussian(g[r]);
  return g;
}

// LGC whose codes travel after three steps, since even the worst are accepted.
constexpr char kCodesSoon[] = "lgc:rate=20,full=0,learn=1,worst=0.99,again=3";
constexpr char kCodesOfAServer[] =
    "lgc:rate=20,full=1,learn=1,worst=0.99,server=1,novel=8";

class GradientMethodTest : public testing::TestWithParam<const char*> {};

TEST_P(GradientMethodTest, GivesTheSameBitsAtAllRanksInAnyOrder) {
  const ParameterLayout layout = SomeLayout();
  for (const int size : {2, 3, 5}) {
    std::vector<std::vector<float>> first;
    for (int order = 0; order < 6; ++order) {
      GradientFleet fleet(GetParam(), layout, size);
      for (int step = 0; step < 5; ++step) {
        const auto mean =
            fleet.Step(Gradients(size, layout.size(), RngKey(3).Fold(step)),
                       RngKey(order).Fold(step), order % 2 == 1, order > 3);
        if (HasFailure()) return;
        if (order == 0) first.push_back(mean);
        EXPECT_EQ(mean, first[step]) << "order " << order;
      }
    }
  }
}

// Gradients of the largest accepted values, of both signs, and of values below
// the normal ones; each alone and beside ordinary values.  None may leave a
// trace in later steps.
TEST_P(GradientMethodTest, StaysFiniteAtBothEndsOfFloats) {
  const ParameterLayout layout = SomeLayout();
  const auto method = *GradientCompressor::Create(
      GetParam(), layout, HostKernels(), MakeLinearCoder);
  for (const bool mixed : {false, true}) {
    for (const float extreme : {kMaxMagnitude, 1e-40f, 1.4e-45f}) {
      GradientFleet fleet(GetParam(), layout, 3);
      for (int step = 0; step < 8; ++step) {
        auto g = Gradients(3, layout.size(), RngKey(8).Fold(step));
        for (auto& of_rank : g) {
          for (size_t i = 0; i < of_rank.size(); i += mixed ? 3 : 1) {
            of_rank[i] = std::copysign(extreme, of_rank[i]);
          }
          ASSERT_TRUE(method->Accepts(of_rank));
        }
        const auto mean = fleet.Step(g);
        ASSERT_TRUE(HostKernels().all_finite(mean)) << extreme << " " << step;
        for (int r = 0; r < 3; ++r) {
          ASSERT_TRUE(HostKernels().all_finite(fleet.Residual(r)))
              << extreme << " " << step;
        }
      }
    }
  }
}

TEST_P(GradientMethodTest, TakesOnlyWhatSpoilsNoMemory) {
  const ParameterLayout layout = SomeLayout();
  const auto method = *GradientCompressor::Create(
      GetParam(), layout, HostKernels(), MakeLinearCoder);
  std::vector<float> g(layout.size());
  EXPECT_TRUE(method->Accepts(g));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf(""), 3e38f, -3e38f}) {
    for (const size_t at : {size_t{0}, g.size() / 2, g.size() - 1}) {
      g[at] = bad;
      // A method that sends floats accepts the value, since the mean shows it.
      EXPECT_EQ(method->Accepts(g), GetParam() == GradientCompressor::kDense)
          << bad << " " << at;
      g[at] = 0;
    }
  }
}

// Methods with a memory that do not filter it.
class ErrorFeedbackTest : public testing::TestWithParam<const char*> {};

// Over time all of every gradient arrives, except for the part that is still
// remembered.
TEST_P(ErrorFeedbackTest, LosesNothingOfWhatItIsGiven) {
  const ParameterLayout layout = SomeLayout();
  const size_t n = layout.size();
  constexpr int kSize = 3, kSteps = 40;
  GradientFleet fleet(GetParam(), layout, kSize);
  ASSERT_TRUE(fleet.rank(0).has_residual());
  std::vector<double> given(n), arrived(n);
  for (int step = 0; step < kSteps; ++step) {
    const auto g = Gradients(kSize, n, RngKey(8).Fold(step));
    const auto mean = fleet.Step(g);
    for (size_t i = 0; i < n; ++i) {
      for (int r = 0; r < kSize; ++r) given[i] += g[r][i];
      arrived[i] += double{kSize} * mean[i];
    }
  }
  for (int r = 0; r < kSize; ++r) {
    const auto residual = fleet.Residual(r);
    for (size_t i = 0; i < n; ++i) arrived[i] += residual[i];
  }
  for (size_t i = 0; i < n; ++i) ASSERT_NEAR(arrived[i], given[i], 2e-4) << i;
}

TEST_P(GradientMethodTest, WithoutAGradientARankAddsNothingAndForgetsNothing) {
  const ParameterLayout layout = SomeLayout();
  const size_t n = layout.size();
  for (const int without : {0, 1}) {
    GradientFleet fleet(GetParam(), layout, 2), silent(GetParam(), layout, 2);
    for (int step = 0; step < 3; ++step) {
      const auto g = Gradients(2, n, RngKey(5).Fold(step));
      fleet.Step(g), silent.Step(g);
    }
    const auto before = silent.Residual(without);
    auto g = Gradients(2, n, RngKey(6));
    g[without].clear();
    const auto mean = silent.Step(g);
    EXPECT_EQ(silent.Residual(without), before);
    // The result is that without the rank: the other's gradient alone, halved.
    double squares = 0;
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(std::isfinite(mean[i]));
      squares += mean[i] * mean[i];
    }
    EXPECT_GT(squares, 0);
    // Both ranks are silent.
    for (auto& v : g) v.clear();
    for (const float m : silent.Step(g)) ASSERT_EQ(m, 0);
  }
}

TEST_P(GradientMethodTest, GoesOnFromItsStateBitForBit) {
  const ParameterLayout layout = SomeLayout();
  constexpr int kSize = 3;
  GradientFleet whole(GetParam(), layout, kSize);
  GradientFleet resumed(GetParam(), layout, kSize);
  for (int step = 0; step < 12; ++step) {
    const auto g = Gradients(kSize, layout.size(), RngKey(4).Fold(step));
    if (step == 7) {
      for (int r = 0; r < kSize; ++r) {
        resumed.Restore(r, whole.Save(r), whole.step());
      }
    }
    const auto mean = whole.Step(g, RngKey(1), false, /*ahead=*/true);
    if (step >= 7) {
      ASSERT_EQ(resumed.Step(g, RngKey(step)), mean) << step;
    }
  }
}

// Methods that send payloads.
class GradientPayloadTest : public testing::TestWithParam<const char*> {};

// Any other bytes in place of a rank's payload are refused and change nothing,
// or pass for a payload and add finite numbers.
TEST_P(GradientPayloadTest, SurvivesWhatIsNoMessageOfIt) {
  const ParameterLayout layout = SomeLayout();
  auto here = *GradientCompressor::Create(GetParam(), layout);
  auto there = *GradientCompressor::Create(GetParam(), layout);
  ASSERT_FALSE(here->summable());
  const AllReduceForm form = here->Form(0, 2);
  const auto g = Gradients(2, layout.size(), RngKey(4));
  there->Begin({0, 1, 2}, g[1]);
  std::vector<float> unused(form.floats);
  const SharedBytes honest = there->Contribute({}, unused);
  ASSERT_TRUE(form.payloads->Accept(honest).ok());
  const auto bytes = honest.bytes();
  EXPECT_FALSE(form.payloads->Accept({}).ok());
  for (const size_t size :
       {size_t{1}, bytes.size() - 1, bytes.size() + 1, 4 * bytes.size() + 9}) {
    std::vector<std::byte> wrong(size);
    std::ranges::copy(bytes.first(std::min(size, bytes.size())), wrong.begin());
    EXPECT_FALSE(form.payloads->Accept(SharedBytes::FromVector(wrong)).ok())
        << size;
  }
  int refused = 0;
  const RngKey key(9);
  for (uint64_t i = 0; i < 3000; ++i) {
    std::vector<std::byte> bad(bytes.begin(), bytes.end());
    for (uint64_t k = 0; k <= i % 3; ++k) {
      bad[key.Fold(k).Below(bad.size(), i)] =
          static_cast<std::byte>(key.Fold(k).Fold("byte").Below(256, i));
    }
    auto accepted =
        form.payloads->Accept(SharedBytes::FromVector(std::move(bad)));
    refused += !accepted.ok();
    if (!accepted.ok()) continue;
    std::vector<float> sum(form.floats);
    form.payloads->Add(accepted->bytes(), sum);
    for (const float s : sum) ASSERT_TRUE(std::isfinite(s));
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Gradients, GradientMethodTest,
    testing::Values("dense-f32", "qsgd", "qsgd:levels=1,coding=omega",
                    "qsgd:norm=l2", "qsgd:levels=127,coding=gamma",
                    "top-k:rate=65", "top-k:rate=20,beta=0.1",
                    "scalecom:rate=100", "scalecom:rate=65,beta=0.1",
                    "scalecom:rate=30,ahead=1", "scalecom:rate=400,flat=1",
                    "adacomp", "adacomp:bin=64,conv=300,most=2", kCodesSoon,
                    kCodesOfAServer, "lgc:rate=20,full=2,learn=2",
                    "qsgd:full=2", "top-k:rate=65,full=2",
                    "scalecom:full=2,rate=30,ahead=1", "adacomp:full=2",
                    "adacomp:bin=100,flat=1"));

INSTANTIATE_TEST_SUITE_P(
    Gradients, ErrorFeedbackTest,
    testing::Values("top-k:rate=65", "scalecom:rate=100",
                    "scalecom:rate=30,ahead=1", "scalecom:rate=400,flat=1",
                    "adacomp", "adacomp:bin=64,conv=300,most=2", kCodesSoon,
                    kCodesOfAServer, "top-k:rate=65,full=9", "adacomp:full=9",
                    "adacomp:bin=100,flat=1"));

// Methods that begin with dense gradients, paired with the same without that
// warm-up.
class DenseWarmupTest
    : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(DenseWarmupTest, ItsFirstStepsAreExactMeansAndLeaveNothing) {
  const ParameterLayout layout = SomeLayout();
  constexpr int kSize = 3;
  GradientFleet fleet(GetParam().first, layout, kSize);
  GradientFleet exact(GradientCompressor::kDense, layout, kSize,
                      fleet.rank(0).summable() ? "mesh" : "all-gather");
  for (int step = 0; step < 8; ++step) {
    const AllReduceForm form = fleet.rank(0).Form(fleet.step(), kSize);
    const bool dense = form.floats == layout.size() && form.leader < 0 &&
                       form.payloads == nullptr;
    EXPECT_EQ(dense, step < 5) << step;
    const auto g = Gradients(kSize, layout.size(), RngKey(4).Fold(step));
    const auto mean = fleet.Step(g), floats = exact.Step(g);
    EXPECT_EQ(mean == floats, step < 5) << step;
    for (int r = 0; r < kSize && step < 5; ++r) {
      for (const float m : fleet.Residual(r)) ASSERT_EQ(m, 0) << step;
    }
  }
}

// After the warm-up the method is as it would be from that step on.
TEST_P(DenseWarmupTest, TheMethodBeginsAfterThem) {
  const ParameterLayout layout = SomeLayout();
  constexpr int kSize = 3;
  GradientFleet fleet(GetParam().first, layout, kSize);
  GradientFleet plain(GetParam().second, layout, kSize);
  while (fleet.step() < 5) {
    fleet.Step(Gradients(kSize, layout.size(), RngKey(1).Fold(fleet.step())));
  }
  for (int r = 0; r < kSize; ++r) plain.Restore(r, plain.Save(r), fleet.step());
  while (fleet.step() < 12) {
    const auto g =
        Gradients(kSize, layout.size(), RngKey(2).Fold(fleet.step()));
    ASSERT_EQ(fleet.Step(g), plain.Step(g)) << fleet.step();
  }
}

// Resumes at every step of the warm-up, at its end and after it, with and
// without messages that leaders have made ahead.
TEST_P(DenseWarmupTest, IsResumedBitForBitInItAndAcrossItsEnd) {
  const ParameterLayout layout = SomeLayout();
  constexpr int kSize = 3;
  for (uint64_t stop = 1; stop < 8; ++stop) {
    GradientFleet whole(GetParam().first, layout, kSize);
    GradientFleet resumed(GetParam().first, layout, kSize);
    while (whole.step() < 10) {
      const auto g =
          Gradients(kSize, layout.size(), RngKey(4).Fold(whole.step()));
      if (whole.step() == stop) {
        for (int r = 0; r < kSize; ++r) {
          resumed.Restore(r, whole.Save(r), stop);
        }
      }
      const auto mean = whole.Step(g, RngKey(1), false, /*ahead=*/true);
      if (whole.step() > stop) {
        ASSERT_EQ(resumed.Step(g, RngKey(stop)), mean) << stop;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gradients, DenseWarmupTest,
    testing::Values(
        std::pair("qsgd:full=5", "qsgd"),
        std::pair("top-k:rate=65,full=5", "top-k:rate=65"),
        std::pair("scalecom:full=5,rate=30,beta=0.5",
                  "scalecom:rate=30,beta=0.5"),
        std::pair("scalecom:rate=30,full=5,ahead=1",
                  "scalecom:rate=30,ahead=1"),
        std::pair("adacomp:bin=64,full=5", "adacomp:bin=64"),
        std::pair("lgc:rate=20,full=5,learn=1,worst=0.99",
                  "lgc:rate=20,full=0,learn=1,worst=0.99"),
        std::pair("lgc:rate=20,full=5,learn=1,worst=0.99,server=1",
                  "lgc:rate=20,full=0,learn=1,worst=0.99,server=1")));

INSTANTIATE_TEST_SUITE_P(Gradients, GradientPayloadTest,
                         testing::Values("qsgd", "qsgd:levels=1,coding=omega",
                                         "qsgd:norm=l2",
                                         "qsgd:levels=127,coding=gamma",
                                         "top-k:rate=65", "adacomp",
                                         "adacomp:bin=64,conv=300,most=2",
                                         "adacomp:bin=100,flat=1"));

TEST(GradientCompressorTest, RefusesWhatCannotBe) {
  const auto refused = [](std::string_view name, const char* why) {
    const auto made = GradientCompressor::Create(name, SomeLayout());
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(why)) << name;
  };
  refused("clt-k", "known: adacomp, dense-f32, lgc, qsgd, scalecom, top-k");
  refused("", "unknown gradient method \"\"");
  refused("dense-f32:rate=2", "has no option \"rate\"; known: none");
  refused("top-k:rate=1", "a whole number from 2 to 65536");
  refused("top-k:rate=1e9", "a whole number from 2 to 65536");
  refused("top-k:rate=12.5", "a whole number");
  refused("top-k:rate=-3", "a whole number");
  refused("top-k:rate=", "is \"\"");
  refused("top-k:rate=nan", "is \"nan\"");
  refused("top-k:rate", "is \"\"");
  refused("top-k:ahead=1",
          "no option \"ahead\"; known: rate, beta, flat, full");
  refused("scalecom:beta=0", "a number from 1e-06 to 1");
  refused("scalecom:beta=1.01", "a number from 1e-06 to 1");
  refused("scalecom:beta=-0.5", "a number from 1e-06 to 1");
  refused("scalecom:rate=9,rate=9", "given twice");
  refused("scalecom:k=5", "known: rate, beta, flat, ahead, full");
  refused("scalecom:,rate=9", "no option \"\"");
  refused("adacomp:bin=0", "a whole number from 2 to 32768");
  refused("adacomp:conv=40000", "a whole number from 2 to 32768");
  refused("adacomp:most=64", "a whole number from 1 to 63");
  refused("adacomp:rate=40", "known: bin, conv, most, flat, full");
  refused("qsgd:levels=3", "1, 7 or 127");
  refused("qsgd:levels=0", "1, 7 or 127");
  refused("qsgd:bits=4", "known: levels, bucket, norm, coding, least, full");
  refused("qsgd:bucket=100", "a multiple of 128 up to 32768");
  refused("qsgd:bucket=65536", "a multiple of 128 up to 32768");
  refused("qsgd:norm=l1", "max or l2");
  refused("qsgd:coding=huffman", "fixed, gamma or omega");
  refused("qsgd:zstd=3", "option zstd of \"qsgd\" is gone: leave zstd=3 out");
  refused("dense-f32:full=3", "has no option \"full\"; known: none");
  refused("qsgd:full=-1", "a whole number from 0 to 1000000000");
  refused("top-k:full=1.5,rate=9", "a whole number from 0 to 1000000000");
  refused("scalecom:rate=9,full=", "full of \"scalecom\" is \"\"");
  refused("adacomp:full", "full of \"adacomp\" is \"\"");
  refused("adacomp:full=3,bin=64,full=3", "full of \"adacomp\" is given twice");
  refused("adacomp:full=3,bins=64", "no option \"bins\"");
  // The largest segments have 1353 and 2304 values, all segments together 3701.
  refused("top-k:rate=2305", "largest segment that it divides has 2304 values");
  refused("scalecom:rate=65536", "take at most 2304");
  refused("scalecom:rate=3702,flat=1", "take at most 3701");
  refused("lgc:rate=2305", "take at most 2304");
  refused("adacomp:bin=1354", "bin of \"adacomp\" is 1354");
  refused("adacomp:conv=2305", "take at most 2304");
  refused("adacomp:bin=3702,flat=1", "take at most 3701");
  for (const char* const name : {"top-k:rate=2304", "scalecom:rate=3701,flat=1",
                                 "adacomp:bin=1353", "adacomp:conv=2304"}) {
    EXPECT_TRUE(GradientCompressor::Create(name, SomeLayout()).ok()) << name;
  }
  EXPECT_TRUE(GradientCompressor::Create("top-k:rate=65536", {}).ok());
  refused("qsgd:fragments=2", "no option \"fragments\"");
}

// A rank decodes the payloads of the others, and each rank draws for itself.
TEST(QuantizedGradientsTest, HaveNoBiasAndErrorsOfRanksAverageOut) {
  const ParameterLayout layout = SomeLayout();
  const size_t n = layout.size();
  constexpr int kDraws = 300;
  for (const char* const name :
       {"qsgd", "qsgd:levels=1,bucket=128", "qsgd:norm=l2",
        "qsgd:levels=1,norm=l2", "qsgd:levels=127,norm=l2"}) {
    double variance[2] = {};
    for (const int size : {2, 8}) {
      // Gradients are equal, so that only the draws can make a difference.
      const GradientFleet::Vectors g(size, Gradients(1, n, RngKey(3))[0]);
      GradientFleet fleet(name, layout, size);
      std::vector<double> sum(n);
      double squares = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        const auto mean = fleet.Step(g);
        for (size_t i = 0; i < n; ++i) {
          const double error = static_cast<double>(mean[i]) - g[0][i];
          sum[i] += error / kDraws;
          squares += error * error / kDraws;
        }
      }
      // The mean of K draws without bias has 1/K of the variance of one.
      double mean = 0;
      for (const double s : sum) mean += s * s;
      EXPECT_LE(mean, 1.3 * squares / kDraws) << name;
      EXPECT_GT(squares, 0);
      variance[size == 8] = squares;
    }
    EXPECT_NEAR(variance[0] / variance[1], 4, 0.2) << name;
  }
}

// Few values are large, so that Elias's codes are shorter.
TEST(QuantizedGradientsTest, PayloadsHaveTheBytesOfTheGoldenFiles) {
  const ParameterLayout layout = SomeLayout();
  std::vector<float> g(layout.size());
  for (size_t i = 0; i < g.size(); ++i) {
    const auto integer = static_cast<int>(RngKey(9).Below(2001, i)) - 1000;
    const bool large = RngKey(9).Fold("large").Below(16, i) == 0;
    g[i] = static_cast<float>(integer) / (large ? 16 : 256);
  }
  for (const auto& [file, name] :
       {std::pair("gradients_qsgd", "qsgd"),
        std::pair("gradients_qsgd_bytes", "qsgd:levels=127,least=16"),
        std::pair("gradients_qsgd_gamma", "qsgd:levels=1,coding=gamma"),
        std::pair("gradients_qsgd_omega",
                  "qsgd:levels=1,norm=l2,coding=omega")}) {
    auto rank = *GradientCompressor::Create(name, layout);
    rank->Begin({7, 1, 3}, g);
    const SharedBytes payload = rank->Contribute({}, {});
    const std::string kept = GoldenBytes(file, payload.bytes());
    EXPECT_TRUE(
        std::ranges::equal(payload.bytes(), std::as_bytes(std::span(kept))))
        << name;
  }
}

}  // namespace gradients_test
}  // namespace gossamer
