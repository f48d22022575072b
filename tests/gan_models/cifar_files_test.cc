// CIFAR's binary files: images come back as they were written, and a file of a
// wrong size, label or class is refused with what to do.

#include "gan_models/data/cifar_files.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/testing.h"

namespace gossamer {
namespace cifar_files_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

void WriteFile(const std::string& path, size_t size, char byte) {
  std::ofstream(path, std::ios::binary) << std::string(size, byte);
}

TEST(CifarFilesTest, ReadsWhatItWrites) {
  const TemporaryFolder folder;
  const ImageData data = SmallData(50, 20);
  ASSERT_TRUE(WriteCifar10(folder.path(), data).ok());
  const auto read = ReadImages("emoji-32", folder.path(), {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->class_names, data.class_names);
  EXPECT_EQ(read->train.pixels, data.train.pixels);
  EXPECT_EQ(read->train.labels, data.train.labels);
  EXPECT_EQ(read->test.pixels, data.test.pixels);
  EXPECT_EQ(read->test.labels, data.test.labels);
}

TEST(CifarFilesTest, KeepsOnlyTheClassesAskedForByNameOrNumber) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCifar10(folder.path(), SmallData(50, 20)).ok());
  const auto read = ReadImages("emoji-32", folder.path(), {"three", "7"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->train.size(), 10u);
  EXPECT_THAT(read->test.labels, ElementsAre(3, 7, 3, 7));
  EXPECT_EQ(read->test.image(1)[0], 7);
}

TEST(CifarFilesTest, LargerImagesHaveTheSameFormat) {
  const TemporaryFolder folder;
  ImageData data = SmallData(10, 5);
  for (ImageSet* set : {&data.train, &data.test}) {
    set->side = 64;
    set->pixels.resize(set->size() * ImageBytes(64));
    for (size_t i = 0; i < set->pixels.size(); ++i) {
      set->pixels[i] = static_cast<uint8_t>(i % 251);
    }
  }
  ASSERT_TRUE(WriteCifar10(folder.path(), data).ok());
  const auto read = ReadImages("emoji-64", folder.path(), {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->train.side, 64);
  EXPECT_EQ(read->train.pixels, data.train.pixels);
  EXPECT_EQ(read->test.labels, data.test.labels);
  // Files of one size are no whole number of images of another.
  EXPECT_EQ(ReadImages("emoji-128", folder.path(), {}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(CifarFilesTest, ClassesAreReadWithoutImages) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCifar10(folder.path(), SmallData(50, 20)).ok());
  const auto chosen = ReadClasses("cifar-10", folder.path(), {"7", "three"});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  ASSERT_EQ(chosen->size(), 2u);
  EXPECT_EQ((*chosen)[0].number, 3);
  EXPECT_EQ((*chosen)[1].name, "seven");
  const auto emoji = ReadClasses("emoji-64", "", {});
  ASSERT_TRUE(emoji.ok()) << emoji.status();
  EXPECT_EQ(emoji->size(), 10u);
  EXPECT_EQ((*emoji)[0].name, "face");
  EXPECT_EQ(ReadClasses("cifar-10", "/no/folder", {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(CifarFilesTest, UnknownClassNamesTheKnown) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCifar10(folder.path(), SmallData(50, 20)).ok());
  for (const char* bad : {"ten", "10", "-1", ""}) {
    const auto read = ReadImages("emoji-32", folder.path(), {bad});
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(Message(read.status()), HasSubstr("zero, one, two"));
  }
}

TEST(CifarFilesTest, MissingFilesSayHowToGetThem) {
  const TemporaryFolder folder;
  const auto emoji = ReadImages("emoji-32", folder.path(), {});
  EXPECT_EQ(emoji.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(emoji.status()),
              HasSubstr("gossamer-models render-emoji --out " + folder.path()));
  const auto cifar = ReadImages("cifar-10", folder.path(), {});
  EXPECT_EQ(cifar.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(cifar.status()), HasSubstr("cs.toronto.edu"));
  EXPECT_EQ(ReadImages("cifar-10", "", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadImages("imagenet", folder.path(), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CifarFilesTest, WrongSizesAreRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCifar10(folder.path(), SmallData(50, 20)).ok());
  // A CIFAR-10 file has exactly 10,000 images.
  const auto small = ReadImages("cifar-10", folder.path(), {});
  EXPECT_EQ(small.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(small.status()),
              AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("30730 bytes"),
                    HasSubstr("30730000")));
  // The cut is within an image.
  std::filesystem::resize_file(folder / "test_batch.bin", 3073 * 3 + 1);
  const auto within = ReadImages("emoji-32", folder.path(), {});
  EXPECT_EQ(within.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(within.status()), HasSubstr("test_batch.bin"));
  // The cut is between images.
  std::filesystem::resize_file(folder / "test_batch.bin", 3073 * 3);
  std::filesystem::resize_file(folder / "data_batch_4.bin", 3073 * 9);
  const auto between = ReadImages("emoji-32", folder.path(), {});
  EXPECT_EQ(between.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(between.status()), HasSubstr("data_batch_4.bin"));
}

TEST(CifarFilesTest, LabelsAreChecked) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCifar10(folder.path(), SmallData(50, 20)).ok());
  WriteFile(folder / "test_batch.bin", 3073, 10);
  const auto read = ReadImages("emoji-32", folder.path(), {});
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(read.status()), HasSubstr("label 10"));
}

TEST(CifarFilesTest, Cifar100TakesTheFineLabel) {
  const TemporaryFolder folder;
  std::ofstream names(folder / "fine_label_names.txt");
  for (int i = 0; i < 100; ++i) names << "fine" << i << "\n";
  names.close();
  const auto write = [&](const char* name, int records) {
    std::ofstream file(folder / name, std::ios::binary);
    for (int i = 0; i < records; ++i) {
      file.put(19).put(static_cast<char>(i % 100));
      file << std::string(ImageBytes(32), static_cast<char>(i % 100));
    }
  };
  write("train.bin", 50000);
  write("test.bin", 10000);
  const auto read = ReadImages("cifar-100", folder.path(), {"fine42"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->train.size(), 500u);
  EXPECT_EQ(read->test.size(), 100u);
  EXPECT_EQ(read->train.image(0)[ImageBytes(32) - 1], 42);
}

}  // namespace cifar_files_test
}  // namespace gossamer
