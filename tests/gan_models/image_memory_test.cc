// The memory that a folder of very many pictures takes: its names once, and a
// few numbers for each.
//
// A program of its own: blocks that an earlier test has freed would be taken
// again, and hide what is taken here.

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gan_models/data/image_build.h"
#include "gan_models/data/image_folder.h"
#include "gtest/gtest.h"
#include "tests/gan_models/picture_files.h"
#include "tests/testing/peak_memory.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

// A sanitizer keeps freed blocks, so nothing is bounded under one.
constexpr bool kBounded = kPeakFactor == 1;
// Somewhat less than 2^16: vectors that double are nearly full.
constexpr size_t kClasses = 13, kInClass = kBounded ? 5000 : 50;
constexpr size_t kFiles = kClasses * kInClass;
// "a_rather_long_name_123456.JPEG" with its zero.
constexpr size_t kNameBytes = 31;

// The kilobytes of the names alone, 1,967.  A peak that rises by less was not
// measured: the system has not reset it.
constexpr int64_t kNames = static_cast<int64_t>(kFiles * kNameBytes >> 10);

// The most kilobytes that names take if they are held once: one and a half
// times their bytes, `numbers` bytes for each, and 256 kB for buffers.
//
// A second copy of the names at the peak is beyond it.  By their sizes names
// and numbers are 2,475 kB after Scan() and 3,491 kB in a build, the limits are
// 3,683 and 4,699, and with the names twice there would be 4,443 and 5,458.
constexpr int64_t Limit(size_t numbers) {
  return static_cast<int64_t>((kFiles * (kNameBytes * 3 / 2 + numbers) >> 10) +
                              256);
}

class ImageMemoryTest : public ::testing::Test {
 protected:
  ImageMemoryTest() {
    // A block that a vector has outgrown goes back to the system at once.
    ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
    Fill(from_, kInClass);
  }

  // Makes `count` links of one picture in each class.
  static void Fill(const std::string& folder, size_t count) {
    const auto picture = ToPng(SomePicture(8, 8, 1), PngKind::kRgb);
    for (size_t c = 0; c < kClasses; ++c) {
      const std::string name = absl::StrCat(folder, "/c", 10 + c);
      const auto path = [&name](size_t i) {
        return absl::StrCat(name, "/a_rather_long_name_", 100000 + i, ".JPEG");
      };
      std::filesystem::create_directories(name);
      WriteBytes(path(0), picture);
      for (size_t i = 1; i < count; ++i) {
        std::filesystem::create_hard_link(path(0), path(i));
      }
    }
  }

  // Returns the kilobytes by which `work` raises the peak.
  static int64_t PeakOf(const std::function<void()>& work) {
    ::malloc_trim(0);
    ResetPeakMemory();
    const int64_t before = PeakMemory();
    work();
    return PeakMemory() - before;
  }

  absl::StatusOr<ImageBuildResult> Build(const std::string& from) const {
    return BuildImages({.from = from,
                        .held_out = "",
                        .out = from + ".images",
                        .resolution = 8},
                       [](const ImageBuildProgress&) {});
  }

  const TemporaryFolder folder_;
  const std::string from_ = folder_.path() + "/many";
};

TEST_F(ImageMemoryTest, ManyNamesTakeLittleMemory) {
  absl::StatusOr<ImageFolder> found;
  const int64_t kilobytes = PeakOf([&] { found = ImageFolder::Scan(from_); });
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), kFiles);
  RecordProperty("kilobytes", std::to_string(kilobytes));
  // 8 bytes: the place of a name in their text.
  if (kBounded) {
    EXPECT_GE(kilobytes, kNames);
    EXPECT_LT(kilobytes, Limit(8));
  }
}

TEST_F(ImageMemoryTest, ABuildHoldsTheNamesOnce) {
  // Libraries and threads take their memory before it is measured.
  const std::string few = folder_.path() + "/few";
  Fill(few, 2);
  ASSERT_TRUE(Build(few).ok());
  absl::StatusOr<ImageBuildResult> result;
  const int64_t kilobytes = PeakOf([&] { result = Build(from_); });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->progress.done, kFiles);
  EXPECT_EQ(result->train + result->held_out, kFiles);
  RecordProperty("kilobytes", std::to_string(kilobytes));
  // And 16 more: the class of a picture twice, and its entry in the file.
  if (kBounded) {
    EXPECT_GE(kilobytes, kNames);
    EXPECT_LT(kilobytes, Limit(8 + 16));
  }
}

}  // namespace
}  // namespace gossamer
