// What an exchange of `masked` does to the two ends.

#include "algorithms/compress/masked_average.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"

namespace gossamer {
namespace {

// With w = 1/2 an exchange of `masked` is what an exact average would be, on
// the places that both ends have agreed on, and nothing on the others:
// compressing commutes with averaging.
TEST(MaskedAverageTest, ValuesAreAveragedExactlyAndTheOthersLeftAlone) {
  const auto codec = Make("masked:rate=4");
  const size_t n = Layout().size();
  std::vector<float> x[] = {Gaussian("a", n), Gaussian("b", n)};
  std::vector<float> memory[] = {codec->InitialMemory(false),
                                 codec->InitialMemory(true)};
  for (int turn = 0; turn < 12; ++turn) {
    const std::vector<float> before[] = {x[0], x[1]};
    Message sent[2];
    for (int e : {0, 1}) {
      sent[e] = Message(*codec, codec->FormatFor(memory[e]), x[e], memory[e]);
    }
    const Encoded of[] = {sent[0].encoded(), sent[1].encoded()};
    for (int e : {0, 1}) {
      codec->Complete(&of[e], &of[1 - e], 0.5f, memory[e], x[e]);
    }
    size_t averaged = 0;
    for (size_t i = 0; i < n; ++i) {
      const float a = before[0][i], b = before[1][i];
      if (x[0][i] == a && x[1][i] == b) continue;
      ++averaged;
      const float bf16 = 0x1p-7f * std::max(std::abs(a), std::abs(b));
      EXPECT_NEAR(x[0][i], (a + b) / 2, bf16);
      EXPECT_NEAR(x[1][i], (a + b) / 2, bf16);
      EXPECT_NEAR(x[0][i] + x[1][i], a + b,
                  1e-6f * (std::abs(a) + std::abs(b)));
    }
    // Later some are equal already.
    EXPECT_GT(averaged, turn == 0 ? n / 5 : 0);
    EXPECT_LE(averaged, (n + 3) / 4) << turn;
  }
}

}  // namespace
}  // namespace gossamer
