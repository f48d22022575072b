// Shards of a data set for the peers, and batches from them.

#include "gan_models/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gan_models/data/shards.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/testing.h"

namespace gossamer {
namespace dataset_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectPartition(const std::vector<std::vector<int>>& shards, int size) {
  std::vector<int> seen(size);
  for (const auto& shard : shards) {
    for (int i : shard) ++seen.at(i);
  }
  EXPECT_THAT(seen, Each(1));
}

TEST(ShardsTest, IidIsAnEvenPartition) {
  for (int peers : {1, 3, 7}) {
    const auto shards = IidShards(100, peers, RngKey(1));
    ExpectPartition(shards, 100);
    for (const auto& s : shards) EXPECT_NEAR(s.size(), 100.0 / peers, 1);
  }
  EXPECT_EQ(IidShards(100, 3, RngKey(1)), IidShards(100, 3, RngKey(1)));
  EXPECT_NE(IidShards(100, 3, RngKey(1)), IidShards(100, 3, RngKey(2)));
}

// Returns the mean over labels of the largest share of a label that one peer
// has.
double Skew(const std::vector<std::vector<int>>& shards,
            const std::vector<int>& labels) {
  double sum = 0;
  for (int label = 0; label < 10; ++label) {
    double largest = 0, total = 0;
    for (const auto& s : shards) {
      const auto n = static_cast<double>(std::count_if(
          s.begin(), s.end(), [&](int i) { return labels[i] == label; }));
      largest = std::max(largest, n);
      total += n;
    }
    sum += largest / total;
  }
  return sum / 10;
}

TEST(ShardsTest, DirichletIsAPartitionThatAlphaSkews) {
  std::vector<int> labels(2000);
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int>(i % 10);
  double last = 1;
  for (double alpha : {0.05, 0.5, 100.0}) {
    const auto shards = DirichletShards(labels, 4, alpha, RngKey(3));
    ASSERT_TRUE(shards.ok()) << shards.status();
    ExpectPartition(*shards, 2000);
    for (const auto& s : *shards) EXPECT_FALSE(s.empty());
    const double skew = Skew(*shards, labels);
    EXPECT_LT(skew, last);
    last = skew;
  }
  EXPECT_LT(last, 0.35);  // an even split is 0.25
}

TEST(ShardsTest, DirichletRefusesWhatCannotBe) {
  const std::vector<int> labels = {0, 1};
  EXPECT_EQ(DirichletShards(labels, 3, 1, RngKey(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (double alpha : {0.0, -1.0, std::nan("")}) {
    EXPECT_EQ(DirichletShards(labels, 2, alpha, RngKey(1)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ShardsTest, DirichletHasItsMeanAndVariance) {
  constexpr int kParts = 4, kDraws = 20000;
  for (double alpha : {0.3, 2.0}) {
    double mean = 0, square = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double p = SampleDirichlet(kParts, alpha, RngKey(5).Fold(i))[0];
      mean += p / kDraws;
      square += p * p / kDraws;
    }
    const double expected =
        (1.0 / kParts) * (1 - 1.0 / kParts) / (alpha * kParts + 1);
    EXPECT_NEAR(mean, 0.25, 0.01);
    EXPECT_NEAR(square - mean * mean, expected, 0.05 * expected);
  }
}

class ImageDatasetTest : public testing::Test {
 protected:
  ImageDatasetTest() {
    EXPECT_TRUE(WriteCifar10(folder_.path(), SmallData(100, 20)).ok());
    spec_.path = folder_.path();
  }
  const TemporaryFolder folder_;
  DataSpec spec_;
};

TEST_F(ImageDatasetTest, EachImageIsInOneShard) {
  std::set<int> all;
  for (int rank = 0; rank < 4; ++rank) {
    const auto data = Dataset::Open(spec_, rank, 4, 1);
    ASSERT_TRUE(data.ok()) << data.status();
    // Pixel 0 holds the image's number; so many draws reach the whole shard.
    std::vector<float> batch(2000 * ImageBytes(32));
    (*data)->FillBatch(RngKey(rank), batch, {});
    std::set<int> mine;
    for (size_t i = 0; i < batch.size(); i += ImageBytes(32)) {
      mine.insert(static_cast<int>(std::floor((batch[i] + 1) * 128)));
    }
    EXPECT_EQ(mine.size(), 25u);
    for (int i : mine) EXPECT_TRUE(all.insert(i).second) << i;
  }
  EXPECT_EQ(all.size(), 100u);
}

TEST_F(ImageDatasetTest, ValuesLieInTheirQuantum) {
  const auto data = Dataset::Open(spec_, 0, 1, 1);
  ASSERT_TRUE(data.ok());
  std::vector<float> a(16 * ImageBytes(32)), b(a.size());
  (*data)->FillBatch(RngKey(1), a, {});
  (*data)->FillBatch(RngKey(1), b, {});
  EXPECT_EQ(a, b);
  (*data)->FillBatch(RngKey(2), b, {});
  EXPECT_NE(a, b);
  double noise = 0;
  for (float v : a) {
    EXPECT_GE(v, -1);
    EXPECT_LT(v, 1);
    const double level = (v + 1) * 128;
    noise += level - std::floor(level);
  }
  EXPECT_NEAR(noise / static_cast<double>(a.size()), 0.5, 0.01);
}

TEST_F(ImageDatasetTest, FlipMirrorsHalfOfTheImages) {
  spec_.flip = true;
  const auto flipped = Dataset::Open(spec_, 0, 1, 1);
  spec_.flip = false;
  const auto plain = Dataset::Open(spec_, 0, 1, 1);
  ASSERT_TRUE(flipped.ok() && plain.ok());
  constexpr int kImages = 200;
  std::vector<float> a(kImages * ImageBytes(32)), b(a.size());
  (*flipped)->FillBatch(RngKey(1), a, {});
  (*plain)->FillBatch(RngKey(1), b, {});
  const auto level = [](float v) { return std::floor((v + 1) * 128); };
  int mirrored = 0;
  for (size_t i = 0; i < kImages; ++i) {
    bool same = true, mirror = true;
    for (size_t j = 0; j < ImageBytes(32); ++j) {
      const float value = level(a[i * ImageBytes(32) + j]);
      const size_t row = j / 32 * 32, column = j % 32;
      same &= value == level(b[i * ImageBytes(32) + j]);
      mirror &= value == level(b[i * ImageBytes(32) + row + 31 - column]);
    }
    EXPECT_TRUE(same || mirror) << i;
    mirrored += mirror ? 1 : 0;
  }
  EXPECT_NEAR(mirrored, kImages / 2, 30);
}

TEST_F(ImageDatasetTest, LabelsAreThoseOfTheImages) {
  // Two peers' shards differ by class; their labels mean the same.
  spec_.classes = {"seven", "2", "3"};
  spec_.dirichlet_alpha = 0.3;
  for (int rank = 0; rank < 2; ++rank) {
    const auto data = Dataset::Open(spec_, rank, 2, 1);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT((*data)->class_names(), ElementsAre("two", "three", "seven"));
    constexpr size_t kImages = 50;
    std::vector<float> batch(kImages * ImageBytes(32)), same(batch.size());
    std::vector<int64_t> labels(kImages);
    (*data)->FillBatch(RngKey(1), batch, labels);
    (*data)->FillBatch(RngKey(1), same, {});
    EXPECT_EQ(batch, same);
    for (size_t i = 0; i < kImages; ++i) {
      // Pixel 0 holds the image's number, whose last digit is its class.
      const auto number =
          static_cast<int>(std::floor((batch[i * ImageBytes(32)] + 1) * 128));
      const std::vector<int> classes = {2, 3, 7};
      EXPECT_EQ(classes[labels[i]], number % 10);
    }
    ASSERT_EQ((*data)->held_out_size(), 6);
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ((*data)->held_out_label(i), i % 3);
    }
  }
}

TEST_F(ImageDatasetTest, RefusesMorePeersThanImages) {
  const auto data = Dataset::Open(spec_, 0, 101, 1);
  EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
  spec_.dirichlet_alpha = -1;
  EXPECT_THAT(std::string(Dataset::Open(spec_, 0, 1, 1).status().message()),
              HasSubstr("dirichlet_alpha is -1"));
}

DataSpec Mixture() {
  DataSpec spec;
  spec.name = "gaussian-mixture";
  return spec;
}

TEST(GaussianMixtureTest, PointsLieOnEightModes) {
  const auto data = Dataset::Open(Mixture(), 0, 2, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<float> points(2 * 4000);
  (*data)->FillBatch(RngKey(1), points, {});
  std::vector<int> counts(8);
  for (size_t i = 0; i < points.size(); i += 2) {
    EXPECT_NEAR(std::hypot(points[i], points[i + 1]), 2, 0.12);
    const double angle = std::atan2(points[i + 1], points[i]);
    const auto mode = std::lround(angle / (M_PI / 4));
    EXPECT_NEAR(angle, mode * M_PI / 4, 0.06);
    ++counts[(mode + 8) % 8];
  }
  for (int n : counts) EXPECT_NEAR(n, 500, 110);
}

TEST(GaussianMixtureTest, LabelsAreTheChosenModes) {
  DataSpec spec = Mixture();
  spec.classes = {"6", "0"};
  const auto data = Dataset::Open(spec, 0, 2, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT((*data)->class_names(), ElementsAre("0", "6"));
  std::vector<float> points(2 * 100);
  std::vector<int64_t> labels(100);
  (*data)->FillBatch(RngKey(1), points, labels);
  for (size_t i = 0; i < labels.size(); ++i) {
    // Mode 0 lies at (2, 0) and mode 6 at (0, -2).
    EXPECT_NEAR(points[2 * i + labels[i]], labels[i] == 0 ? 2 : -2, 0.12);
  }
  (*data)->FillHeldOut(5, points);
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t label = (*data)->held_out_label(5 + i);
    EXPECT_NEAR(points[2 * i + label], label == 0 ? 2 : -2, 0.12);
  }
}

TEST(GaussianMixtureTest, ClassesAreModesAndDirichletSkewsThem) {
  DataSpec spec = Mixture();
  spec.classes = {"2"};
  const auto one = Dataset::Open(spec, 0, 2, 1);
  ASSERT_TRUE(one.ok());
  std::vector<float> points(2 * 100);
  (*one)->FillBatch(RngKey(1), points, {});
  for (size_t i = 0; i < points.size(); i += 2) {
    EXPECT_NEAR(points[i], 0, 0.1);
    EXPECT_NEAR(points[i + 1], 2, 0.1);
  }
  spec.classes = {"8"};
  EXPECT_EQ(Dataset::Open(spec, 0, 2, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  spec = Mixture();
  spec.dirichlet_alpha = 0.1;
  std::vector<float> a(2000), b(2000);
  (*Dataset::Open(spec, 0, 2, 1))->FillBatch(RngKey(1), a, {});
  (*Dataset::Open(spec, 1, 2, 1))->FillBatch(RngKey(1), b, {});
  EXPECT_NE(a, b);
}

}  // namespace dataset_test
}  // namespace gossamer
