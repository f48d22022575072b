// A file of pictures: it reads back as written, wrong files are refused with
// both sizes, and memory does not grow with the file.

#include "gan_models/data/image_cache.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "gan_models/data/image_cache_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace image_cache_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSide = 8;
constexpr size_t kBytes = 3 * kSide * kSide;

ImageCacheWriter::Contents TwoClasses(size_t pictures) {
  ImageCacheWriter::Contents contents = {
      .side = kSide, .class_names = {"cat", "dog"}, .words = {}, .source = 7};
  for (size_t i = 0; i < pictures; ++i) {
    contents.words.push_back(static_cast<uint32_t>(i % 2) |
                             (i % 5 == 4 ? kEntryHeldOut : 0));
  }
  return contents;
}

std::vector<uint8_t> Image(size_t i) {
  return std::vector<uint8_t>(kBytes, static_cast<uint8_t>(i));
}

class ImageCacheTest : public ::testing::Test {
 protected:
  // Ten pictures, of which number 3 is refused.
  void WriteTen() {
    auto writer = ImageCacheWriter::Open(path_, TwoClasses(10));
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (size_t i = 0; i < 10; ++i) {
      if (i == 3) {
        (*writer)->Refuse(i);
      } else {
        ASSERT_TRUE((*writer)->Keep(i, Image(i)).ok());
      }
    }
    const absl::Status published = (*writer)->Publish();
    ASSERT_TRUE(published.ok()) << published;
  }
  std::string Refusal() const {
    const auto cache = ImageCache::Open(path_);
    EXPECT_FALSE(cache.ok());
    return std::string(cache.status().message());
  }
  // Changes bytes of the file.
  void Poke(uint64_t at, std::vector<std::byte> bytes) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  // Changes a field of the header, with a checksum that is right.
  template <typename T>
  void Claim(size_t at, T value) const {
    std::vector<std::byte> head(60);
    std::ifstream file(path_, std::ios::binary);
    file.read(reinterpret_cast<char*>(head.data()), 60);
    Put(std::span(head), at, value);
    Put(std::span(head), 56, Crc32c(std::span(head).first(56)));
    Poke(0, head);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/ten.images";
};

TEST_F(ImageCacheTest, PicturesAndClassesReadBackAsWritten) {
  WriteTen();
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  const auto cache = ImageCache::Open(path_);
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_EQ(cache->side(), kSide);
  EXPECT_EQ(cache->size(), 10u);
  EXPECT_EQ(cache->source(), 7u);
  EXPECT_THAT(cache->class_names(), ElementsAre("cat", "dog"));
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(cache->has(i), i != 3);
    EXPECT_EQ(cache->held_out(i), i % 5 == 4);
    EXPECT_EQ(cache->class_of(i), static_cast<int>(i % 2));
    if (i == 3) continue;
    cache->Prefetch(i);
    EXPECT_EQ(std::vector(cache->image(i).begin(), cache->image(i).end()),
              Image(i));
    EXPECT_TRUE(cache->whole(i));
  }
}

TEST_F(ImageCacheTest, AFlippedPixelIsFound) {
  WriteTen();
  Poke(8192 + 6 * kBytes + 5, {std::byte{99}});
  const auto cache = ImageCache::Open(path_);
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_TRUE(cache->whole(5));
  EXPECT_FALSE(cache->whole(6));
}

TEST_F(ImageCacheTest, AFileOfAWrongSizeIsRefusedWithBothSizes) {
  WriteTen();
  const uint64_t size = std::filesystem::file_size(path_);
  EXPECT_EQ(size, 8192 + 10 * kBytes);
  for (const uint64_t wrong : {size - 1, size + 1, uint64_t{60}}) {
    std::filesystem::resize_file(path_, wrong);
    EXPECT_THAT(Refusal(), HasSubstr(absl::StrCat("ten.images has ", wrong,
                                                  " bytes instead of ", size,
                                                  " (10 pictures of side 8)")));
  }
  for (const uint64_t tiny : {0, 7, 59}) {
    std::filesystem::resize_file(path_, tiny);
    EXPECT_THAT(Refusal(), HasSubstr("is no file of gossamer data build"));
  }
}

TEST_F(ImageCacheTest, ForeignDamagedAndUnfinishedFilesAreRefused) {
  std::ofstream(path_) << std::string(100000, 'x');
  EXPECT_THAT(Refusal(), HasSubstr("is no file of gossamer data build"));
  WriteTen();
  Poke(20, {std::byte{1}});
  EXPECT_THAT(Refusal(), HasSubstr("damaged header"));
  WriteTen();
  Poke(4096 + 8 * 2, {std::byte{1}});
  EXPECT_THAT(Refusal(), HasSubstr("damaged table"));
  WriteTen();
  Claim<uint32_t>(28, 0);
  EXPECT_THAT(Refusal(), HasSubstr("unfinished build"));
  WriteTen();
  Claim<uint32_t>(8, 2);
  EXPECT_THAT(Refusal(), HasSubstr("version 2"));
  std::filesystem::remove(path_);
  EXPECT_THAT(Refusal(), HasSubstr("gossamer data build --out"));
  std::filesystem::create_directory(path_);
  EXPECT_THAT(Refusal(), HasSubstr("gossamer data build --from"));
}

TEST_F(ImageCacheTest, NumbersOutOfRangeAreRefusedBeforeTheyAreUsed) {
  const auto refused_with = [this](size_t at, auto value) {
    WriteTen();
    Claim(at, value);
    return Refusal();
  };
  EXPECT_THAT(refused_with(16, uint64_t{0}), HasSubstr("out of range"));
  EXPECT_THAT(refused_with(16, ~uint64_t{0}), HasSubstr("out of range"));
  EXPECT_THAT(refused_with(12, uint32_t{9}), HasSubstr("out of range"));
  EXPECT_THAT(refused_with(12, ~uint32_t{0}), HasSubstr("out of range"));
  EXPECT_THAT(refused_with(24, uint32_t{0}), HasSubstr("out of range"));
  EXPECT_THAT(refused_with(24, uint32_t{3}),
              HasSubstr("names 2 classes instead of 3"));
  EXPECT_THAT(refused_with(24, uint32_t{1}),
              HasSubstr("names 2 classes instead of 1"));
  EXPECT_THAT(refused_with(32, ~uint64_t{0}), HasSubstr("out of range"));
  EXPECT_THAT(refused_with(16, uint64_t{11}), HasSubstr("bytes instead of"));
}

// Kilobytes of memory that are this process's own and no file's.
int64_t OwnMemory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::stoll(line.substr(8));
  }
  return 0;
}

TEST_F(ImageCacheTest, MemoryDoesNotGrowWithTheFile) {
  // 20 GB of pictures, of which the disk has next to nothing.
  constexpr uint64_t kPictures = 400000;
  ImageCacheHeader header = {.side = 128,
                             .entries = kPictures,
                             .classes = 1,
                             .names_bytes = 4,
                             .finished = true};
  const std::vector<ImageEntry> entries(kPictures, {kEntryDone, 0});
  const std::string name("all\0", 4);
  header.entries_crc = Crc32c(std::as_bytes(std::span(entries)));
  header.names_crc = Crc32c(std::as_bytes(std::span(name)));
  std::ofstream(path_).flush();
  Poke(0, header.Encode());
  const auto table = std::as_bytes(std::span(entries));
  Poke(4096, {table.begin(), table.end()});
  const auto names = std::as_bytes(std::span(name));
  Poke(header.names_at(), {names.begin(), names.end()});
  std::filesystem::resize_file(path_, header.file_bytes());
  EXPECT_GT(header.file_bytes(), uint64_t{18} << 30);

  const int64_t before = OwnMemory();
  const auto cache = ImageCache::Open(path_);
  ASSERT_TRUE(cache.ok()) << cache.status();
  int sum = 0;
  for (size_t i = 0; i < kPictures; i += 997) sum += cache->image(i)[1000];
  EXPECT_EQ(sum, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int64_t kMax = 64 << 10;  // with the shadow of the pages read
#else
  constexpr int64_t kMax = 2 << 10;
#endif
  EXPECT_LT(OwnMemory() - before, kMax);
}

}  // namespace image_cache_test
}  // namespace gossamer
