// Builds of a file of pictures: the same file whatever the threads and
// interruptions, and a reason for everything that is refused.

#include "gan_models/data/image_build.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gan_models/data/image_cache.h"
#include "gan_models/data/image_decoder.h"
#include "gan_models/data/image_resize.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/picture_files.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace image_build_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadText(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class ImageBuildTest : public ::testing::Test {
 protected:
  ImageBuild Build(int threads = 2) const {
    return {.from = from_,
            .held_out = "",
            .out = out_,
            .resolution = 16,
            .threads = threads};
  }
  static absl::StatusOr<ImageBuildResult> Run(const ImageBuild& build) {
    return BuildImages(build, [](const ImageBuildProgress&) {});
  }
  static std::string Refusal(const ImageBuild& build) {
    const auto result = Run(build);
    EXPECT_FALSE(result.ok());
    return std::string(result.status().message());
  }
  // Runs `work` in another process; returns its exit status, or minus the
  // signal that ended it.
  static int InAnotherProcess(const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const TemporaryFolder folder_;
  const std::string from_ = folder_.path() + "/from";
  const std::string out_ = folder_.path() + "/out.images";
};

TEST_F(ImageBuildTest, PicturesAreTheResizedCentresOfTheFiles) {
  MakeClasses(from_, 3, 4);
  const auto result = Run(Build());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->progress.files, 12u);
  EXPECT_EQ(result->progress.done, 12u);
  EXPECT_EQ(result->progress.refused, 0u);
  EXPECT_EQ(result->classes, 3u);
  EXPECT_EQ(result->train, 9u);
  EXPECT_EQ(result->held_out, 3u);
  EXPECT_EQ(result->file_bytes, std::filesystem::file_size(out_));
  const auto cache = ImageCache::Open(out_);
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_THAT(cache->class_names(), ElementsAre("class0", "class1", "class2"));
  for (size_t i = 0; i < 12; ++i) {
    const auto file = ReadPictureFile(
        absl::StrCat(from_, "/class", i / 4, "/", i % 4, ".jpg"));
    ASSERT_TRUE(file.ok());
    const auto decoded = DecodeImage(*file, {});
    std::vector<uint8_t> expected(3 * 16 * 16);
    ResizeCentre(*decoded, 16, expected);
    EXPECT_TRUE(std::ranges::equal(cache->image(i), expected)) << i;
    EXPECT_EQ(cache->class_of(i), static_cast<int>(i / 4));
    EXPECT_EQ(cache->held_out(i), i % 4 == 1);
    EXPECT_TRUE(cache->whole(i));
  }
}

TEST_F(ImageBuildTest, TheNumberOfThreadsChangesNothing) {
  MakeClasses(from_, 2, 20);
  ASSERT_TRUE(Run(Build(1)).ok());
  const std::string one = ReadText(out_);
  std::filesystem::remove(out_);
  ASSERT_TRUE(Run(Build(7)).ok());
  EXPECT_EQ(ReadText(out_), one);
}

TEST_F(ImageBuildTest, AFolderOfItsOwnIsTheHeldOutPart) {
  MakeClasses(from_, 3, 4);
  const std::string held_out = folder_.path() + "/val";
  MakeClasses(held_out, 2, 1);
  std::filesystem::remove_all(held_out + "/class0");
  ImageBuild build = Build();
  build.held_out = held_out;
  const auto result = Run(build);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->train, 12u);
  EXPECT_EQ(result->held_out, 1u);
  const auto cache = ImageCache::Open(out_);
  EXPECT_TRUE(cache->held_out(12));
  EXPECT_EQ(cache->class_of(12), 1);

  MakeClasses(held_out, 4, 1);
  std::filesystem::remove(out_);
  EXPECT_THAT(Refusal(build), HasSubstr("has class \"class3\", which"));
}

TEST_F(ImageBuildTest, DamagedFilesAreNamedAndCounted) {
  MakeClasses(from_, 2, 10);
  std::ofstream(from_ + "/class0/text.jpg") << "not a picture";
  std::filesystem::resize_file(from_ + "/class1/7.jpg", 300);
  const auto result = Run(Build());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->progress.refused, 2u);
  EXPECT_EQ(result->train + result->held_out, 19u);
  EXPECT_EQ(result->refused_list, out_ + ".refused.txt");
  EXPECT_THAT(result->first_refused,
              AllOf(Contains(HasSubstr(
                        "class0/text.jpg: neither JPEG nor PNG; it begins")),
                    Contains(HasSubstr("class1/7.jpg: JPEG: "))));
  const std::string list = ReadText(result->refused_list);
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 2);
  const auto cache = ImageCache::Open(out_);
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_FALSE(cache->has(10));
  EXPECT_TRUE(cache->has(11));
  EXPECT_FALSE(cache->has(18));
}

TEST_F(ImageBuildTest, TooManyDamagedFilesEndTheBuild) {
  MakeClasses(from_, 2, 10);
  for (int i = 0; i < 5; ++i) {
    std::ofstream(absl::StrCat(from_, "/class0/text", i, ".jpg")) << "text";
  }
  ImageBuild build = Build();
  build.max_refused = 0.1;
  EXPECT_THAT(Refusal(build),
              AllOf(HasSubstr("3 of "), HasSubstr("of all 25 at most 2 may be"),
                    HasSubstr("class0/text"), HasSubstr("out.images.partial")));
  EXPECT_FALSE(std::filesystem::exists(out_));
  build.max_refused = 0.2;
  const auto result = Run(build);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->progress.refused, 5u);
}

TEST_F(ImageBuildTest, AKilledBuildGoesOnAndEndsInTheSameFile) {
  MakeClasses(from_, 2, 300);
  ASSERT_TRUE(Run(Build()).ok());
  const std::string expected = ReadText(out_);
  std::filesystem::remove(out_);
  // The process ends in the middle: at the latest when half is done.
  const int status = InAnotherProcess([this] {
    std::atomic<bool> stop = false;
    std::jthread killer([&] {
      const std::string partial = out_ + ".partial";
      while (!stop) {
        std::ifstream file(partial, std::ios::binary);
        file.seekg(4096 + 8 * 200);
        uint32_t word = 0;
        file.read(reinterpret_cast<char*>(&word), sizeof word);
        if (file && word != 0) ::kill(::getpid(), SIGKILL);
      }
    });
    const bool ok = Run(Build(1)).ok();
    stop = true;
    return ok ? 0 : 1;
  });
  ASSERT_EQ(status, -SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(out_));
  // A pixel that did not reach the disk is decoded once more.
  {
    std::fstream partial(out_ + ".partial",
                         std::ios::in | std::ios::out | std::ios::binary);
    const ImageCacheHeader header = {
        .side = 16, .entries = 600, .classes = 2, .names_bytes = 14};
    partial.seekp(static_cast<std::streamoff>(header.pixels_at()) + 768 * 5);
    partial.put('!');
  }
  const auto result = Run(Build());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->progress.resumed, 199u);
  EXPECT_LT(result->progress.resumed, 600u);
  EXPECT_EQ(ReadText(out_), expected);
}

TEST_F(ImageBuildTest, AnotherSourceIsNoticed) {
  MakeClasses(from_, 2, 5);
  ImageBuild build = Build();
  build.max_refused = 0;
  for (const char* name : {"/class0/x.jpg", "/class0/y.jpg", "/class0/z.jpg"}) {
    std::ofstream(from_ + name) << "text";
  }
  EXPECT_THAT(Refusal(build), HasSubstr("may be"));
  ASSERT_TRUE(std::filesystem::exists(out_ + ".partial"));
  MakeClasses(from_, 2, 6);
  EXPECT_THAT(Refusal(build),
              AllOf(HasSubstr("was begun from other pictures or settings"),
                    HasSubstr("(13 files in 2 classes, resolution 16)"),
                    HasSubstr("(15 in 2, 16)"), HasSubstr("remove it")));
  std::filesystem::remove(out_ + ".partial");
  for (const char* name : {"/class0/x.jpg", "/class0/y.jpg", "/class0/z.jpg"}) {
    std::filesystem::remove(from_ + name);
  }
  ASSERT_TRUE(Run(build).ok());
  // A finished file is kept if it is of this source, and never replaced.
  const auto again = Run(build);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(again->train, 10u);
  EXPECT_EQ(again->held_out, 2u);
  build.resolution = 32;
  EXPECT_THAT(Refusal(build),
              HasSubstr("made from other pictures or settings"));
  std::ofstream(out_) << "a letter";
  EXPECT_THAT(Refusal(build), HasSubstr("remove it, or give another --out"));
}

TEST_F(ImageBuildTest, TwoBuildsAtOnceAreOne) {
  MakeClasses(from_, 2, 5);
  bool tried = false;
  std::string second;
  const auto first =
      BuildImages(Build(1), [&](const ImageBuildProgress& progress) {
        if (tried) return;
        tried = true;
        second = Refusal(Build());
      });
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(second, HasSubstr("is being written by another build"));
}

TEST_F(ImageBuildTest, AFullDiskIsNamedWithWhatIsNeeded) {
  MakeClasses(from_, 2, 50);
  const int status = InAnotherProcess([this] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = Run(Build());
    const std::string message(result.status().message());
    return message.find("no room for the 84992 bytes of 100 pictures") !=
                   std::string::npos
               ? 0
               : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(out_));
  // Nothing is left that would be gone on with.
  EXPECT_FALSE(std::filesystem::exists(out_ + ".partial"));
  EXPECT_TRUE(Run(Build()).ok());
}

TEST_F(ImageBuildTest, WrongOptionsAreRefused) {
  MakeClasses(from_, 1, 2);
  ImageBuild build = Build();
  build.resolution = 30;
  EXPECT_THAT(Refusal(build), HasSubstr("a multiple of 4 from 8 to 1024"));
  build = Build(0);
  EXPECT_THAT(Refusal(build), HasSubstr("0 threads"));
  build = Build();
  build.max_refused = 1.5;
  EXPECT_THAT(Refusal(build), HasSubstr("between 0 and 1"));
  build = Build();
  build.from = folder_.path() + "/none";
  EXPECT_THAT(Refusal(build), HasSubstr("is no folder"));
  build = Build();
  build.out = folder_.path() + "/none/out";
  EXPECT_THAT(Refusal(build), HasSubstr("out.partial: open"));
}

TEST_F(ImageBuildTest, BothPartsNeedAPicture) {
  MakeClasses(from_, 3, 1);
  EXPECT_THAT(Refusal(Build()),
              HasSubstr("gives 3 pictures to train and 0 to compare with"));
}

}  // namespace image_build_test
}  // namespace gossamer
