// The data set image-folder: shards, batches and the held-out part of a file of
// pictures, as those of data sets in memory.

#include "gan_models/data/image_folder_dataset.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gan_models/data/dataset.h"
#include "gan_models/data/image_cache_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace image_folder_dataset_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSide = 12;
constexpr size_t kBytes = size_t{3} * kSide * kSide;
constexpr size_t kPictures = 100;

// Pixel 0 of a picture has its number, and the row of it counts up.  Classes
// follow each other; every fifth picture is held out, and number 7 is refused.
class ImageFolderDatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec_.name = "image-folder";
    spec_.path = folder_.path() + "/data.images";
    ImageCacheWriter::Contents contents = {
        .side = kSide,
        .class_names = {"ant", "bee", "cat", "dog"},
        .words = {},
        .source = 1};
    for (size_t i = 0; i < kPictures; ++i) {
      contents.words.push_back(static_cast<uint32_t>(i / 25) |
                               (i % 5 == 4 ? kEntryHeldOut : 0));
    }
    auto writer = ImageCacheWriter::Open(spec_.path, contents);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (size_t i = 0; i < kPictures; ++i) {
      if (i == 7) {
        (*writer)->Refuse(i);
        continue;
      }
      std::vector<uint8_t> image(kBytes);
      for (size_t x = 0; x < kSide; ++x) {
        image[x] = static_cast<uint8_t>(i + x);
      }
      ASSERT_TRUE((*writer)->Keep(i, image).ok());
    }
    ASSERT_TRUE((*writer)->Publish().ok());
  }
  static int LevelOf(float value) {
    return static_cast<int>(std::floor((value + 1) * 128));
  }
  // The numbers of the pictures in a batch.
  static std::vector<int> Numbers(const std::vector<float>& batch) {
    std::vector<int> numbers;
    for (size_t i = 0; i < batch.size(); i += kBytes) {
      numbers.push_back(LevelOf(batch[i]));
    }
    return numbers;
  }

  const TemporaryFolder folder_;
  DataSpec spec_;
};

TEST_F(ImageFolderDatasetTest, EachPictureIsInOneShard) {
  for (const double alpha : {0.0, 0.5}) {
    spec_.dirichlet_alpha = alpha;
    std::multiset<int> all;
    for (int rank = 0; rank < 3; ++rank) {
      const auto data = Dataset::Open(spec_, rank, 3, 1);
      ASSERT_TRUE(data.ok()) << data.status();
      EXPECT_THAT((*data)->example_shape(), ElementsAre(3, kSide, kSide));
      std::vector<float> batch(2000 * kBytes);
      (*data)->FillBatch(RngKey(rank), batch, {});
      const std::vector<int> drawn = Numbers(batch);
      for (const int i : std::set<int>(drawn.begin(), drawn.end())) {
        all.insert(i);
        EXPECT_NE(i % 5, 4) << "held out";
        EXPECT_NE(i, 7) << "refused";
      }
    }
    EXPECT_EQ(all.size(), 79u);
    EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), 79u);
  }
}

TEST_F(ImageFolderDatasetTest, ABatchIsAFunctionOfItsKey) {
  const auto data = Dataset::Open(spec_, 0, 1, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<float> a(20 * kBytes), b(a.size());
  std::vector<int64_t> labels(20);
  (*data)->FillBatch(RngKey(1), a, labels);
  (*data)->FillBatch(RngKey(1), b, {});
  EXPECT_EQ(a, b);
  (*data)->FillBatch(RngKey(2), b, {});
  EXPECT_NE(a, b);
  const std::vector<int> numbers = Numbers(a);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(labels[i], numbers[i] / 25);
    for (int x = 0; x < kSide; ++x) {
      EXPECT_EQ(LevelOf(a[i * kBytes + x]), numbers[i] + x);
    }
    EXPECT_EQ(LevelOf(a[i * kBytes + kSide]), 0);
  }
}

TEST_F(ImageFolderDatasetTest, FlipReversesRowsOfAnyLength) {
  spec_.flip = true;
  const auto data = Dataset::Open(spec_, 0, 1, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<float> batch(400 * kBytes);
  (*data)->FillBatch(RngKey(1), batch, {});
  int flipped = 0;
  for (size_t i = 0; i < batch.size(); i += kBytes) {
    const int first = LevelOf(batch[i]);
    const int step = LevelOf(batch[i + 1]) - first;
    EXPECT_TRUE(step == 1 || step == -1);
    EXPECT_EQ(LevelOf(batch[i + kSide - 1]), first + step * (kSide - 1));
    flipped += step < 0;
  }
  EXPECT_NEAR(flipped, 200, 40);
}

TEST_F(ImageFolderDatasetTest, TheHeldOutPartIsTheSameForAllAndMixed) {
  const auto one = Dataset::Open(spec_, 0, 2, 1);
  const auto two = Dataset::Open(spec_, 1, 2, 9);
  ASSERT_TRUE(one.ok() && two.ok());
  ASSERT_EQ((*one)->held_out_size(), 20);
  std::vector<float> a(20 * kBytes), b(a.size()), part(3 * kBytes);
  (*one)->FillHeldOut(0, a);
  (*two)->FillHeldOut(0, b);
  EXPECT_EQ(a, b);
  (*one)->FillHeldOut(5, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), a.begin() + 5 * kBytes));
  std::set<int> numbers;
  std::set<int64_t> first_classes;
  for (int i = 0; i < 20; ++i) {
    const int number = LevelOf(a[i * kBytes]);
    EXPECT_EQ(number % 5, 4);
    EXPECT_EQ((*one)->held_out_label(i), number / 25);
    // The middle of a level.
    EXPECT_FLOAT_EQ((a[i * kBytes] + 1) * 128, number + 0.5f);
    numbers.insert(number);
    if (i < 10) first_classes.insert(number / 25);
  }
  EXPECT_EQ(numbers.size(), 20u);
  EXPECT_GT(first_classes.size(), 2u);
}

TEST_F(ImageFolderDatasetTest, ChosenClassesHaveLabelsInTheirOrder) {
  spec_.classes = {"dog", "1"};
  const auto data = Dataset::Open(spec_, 0, 1, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT((*data)->class_names(), ElementsAre("bee", "dog"));
  EXPECT_EQ((*data)->held_out_size(), 10);
  std::vector<float> batch(50 * kBytes);
  std::vector<int64_t> labels(50);
  (*data)->FillBatch(RngKey(1), batch, labels);
  const std::vector<int> numbers = Numbers(batch);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(numbers[i] / 25, labels[i] == 0 ? 1 : 3);
  }
  const auto classes = ClassesOf(spec_);
  ASSERT_TRUE(classes.ok()) << classes.status();
  ASSERT_EQ(classes->size(), 2u);
  EXPECT_EQ((*classes)[1].number, 3);
  EXPECT_EQ((*classes)[1].name, "dog");
  spec_.classes = {"eel"};
  EXPECT_THAT(std::string(ClassesOf(spec_).status().message()),
              HasSubstr("known: ant, bee, cat, dog, or a number below 4"));
}

TEST_F(ImageFolderDatasetTest, WrongSpecsAreRefusedWithWhatToDo) {
  const auto message = [this](int peers) {
    return std::string(Dataset::Open(spec_, 0, peers, 1).status().message());
  };
  EXPECT_THAT(message(80), HasSubstr("79 training pictures"));
  const uint64_t size = std::filesystem::file_size(spec_.path);
  std::filesystem::resize_file(spec_.path, size - 1);
  EXPECT_THAT(message(1), HasSubstr("bytes instead of"));
  spec_.path = folder_.path();
  EXPECT_THAT(message(1), HasSubstr("gossamer data build --from"));
  spec_.path = folder_.path() + "/none";
  EXPECT_EQ(Dataset::Open(spec_, 0, 1, 1).status().code(),
            absl::StatusCode::kNotFound);
  spec_.path = "";
  EXPECT_THAT(message(1), HasSubstr("set --data"));
}

}  // namespace image_folder_dataset_test
}  // namespace gossamer
