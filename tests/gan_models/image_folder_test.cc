// The files below a folder: classes by name, an order that no file system
// changes, and a sentence for everything that is left out.

#include "gan_models/data/image_folder.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace image_folder_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ImageFolderTest : public ::testing::Test {
 protected:
  void Touch(const std::string& name) {
    const std::filesystem::path path = root() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path);
  }
  const std::string& root() const { return folder_.path(); }
  std::string Refusal() const {
    return std::string(ImageFolder::Scan(root()).status().message());
  }

  const TemporaryFolder folder_;
};

TEST_F(ImageFolderTest, ClassesAndFilesAreInTheOrderOfTheirNames) {
  for (const char* name : {"n02/b.JPEG", "n02/a.jpg", "n01/z.png", "n10/B.Jpeg",
                           "n10/a.PNG", "n10/10.jpg"}) {
    Touch(name);
  }
  const auto found = ImageFolder::Scan(root());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->class_names(), ElementsAre("n01", "n02", "n10"));
  std::vector<std::string> names;
  std::vector<size_t> classes, places;
  for (size_t i = 0; i < found->size(); ++i) {
    names.push_back(found->name(i));
    classes.push_back(found->class_of(i));
    places.push_back(found->place_in_class(i));
  }
  EXPECT_THAT(names, ElementsAre("n01/z.png", "n02/a.jpg", "n02/b.JPEG",
                                 "n10/10.jpg", "n10/B.Jpeg", "n10/a.PNG"));
  EXPECT_THAT(classes, ElementsAre(0, 1, 1, 2, 2, 2));
  EXPECT_THAT(places, ElementsAre(0, 0, 1, 0, 1, 2));
  EXPECT_EQ(found->path(1), root() + "/n02/a.jpg");
  EXPECT_THAT(found->notes(), IsEmpty());
}

TEST_F(ImageFolderTest, AFolderWithoutClassesIsOneClass) {
  Touch("b.jpg");
  Touch("a.png");
  const auto found = ImageFolder::Scan(root());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->class_names(), ElementsAre("all"));
  EXPECT_EQ(found->name(0), "a.png");
  EXPECT_EQ(found->path(1), root() + "/b.jpg");
  EXPECT_EQ(found->class_of(1), 0u);
}

TEST_F(ImageFolderTest, FilesLeftOutAreReportedOncePerReason) {
  for (const char* name : {"c1/a.jpg", "c1/notes.txt", "c1/list.csv",
                           "c1/.hidden.jpg", "c1/deep/b.jpg", "beside.png"}) {
    Touch(name);
  }
  std::filesystem::create_directories(root() + "/c0");
  std::filesystem::create_directories(root() + "/c2");
  std::filesystem::create_directories(root() + "/.cache");
  std::filesystem::create_symlink("nowhere", root() + "/c1/lost.jpg");
  const auto found = ImageFolder::Scan(root());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 1u);
  EXPECT_EQ(found->class_of(0), 1u);  // an empty class keeps its place
  EXPECT_THAT(found->class_names(), ElementsAre("c0", "c1", "c2"));
  EXPECT_EQ(found->notes().size(), 5u);
  EXPECT_THAT(found->notes(),
              AllOf(Contains(HasSubstr("2 files are left out")),
                    Contains(HasSubstr("1 folders within classes")),
                    Contains(HasSubstr("2 classes have no picture; the first "
                                       "is " +
                                       root() + "/c0")),
                    Contains(HasSubstr("1 entries are left out, because they "
                                       "are links to nothing")),
                    Contains(HasSubstr("1 pictures beside"))));
}

TEST_F(ImageFolderTest, LinksAreFollowed) {
  Touch("elsewhere/real/a.jpg");
  std::filesystem::create_directories(root() + "/data/c1");
  std::filesystem::create_directory_symlink("../elsewhere/real",
                                            root() + "/data/c0");
  std::filesystem::create_symlink("../../elsewhere/real/a.jpg",
                                  root() + "/data/c1/b.jpg");
  const auto found = ImageFolder::Scan(root() + "/data");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 2u);
  EXPECT_EQ(found->name(0), "c0/a.jpg");
  EXPECT_EQ(found->name(1), "c1/b.jpg");
}

TEST_F(ImageFolderTest, AFolderWithoutPicturesIsRefused) {
  EXPECT_THAT(Refusal(), HasSubstr("has no file that ends in"));
  std::filesystem::create_directories(root() + "/c0");
  EXPECT_THAT(Refusal(), HasSubstr("has no file that ends in"));
  Touch("beside.jpg");
  EXPECT_THAT(Refusal(), HasSubstr("has 1 pictures beside folders, and the "
                                   "folders have none"));
  const auto none = ImageFolder::Scan(root() + "/none");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ImageFolderTest, AFolderThatCannotBeListedIsNamed) {
  Touch("c0/a.jpg");
  Touch("c1/a.jpg");
  std::filesystem::permissions(root() + "/c1", std::filesystem::perms::none);
  // The superuser may list it all the same.
  const uid_t user = ::geteuid();
  if (user == 0) {
    std::filesystem::permissions(root(), std::filesystem::perms(0755));
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto found = ImageFolder::Scan(root());
  if (user == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(found.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr(root() + "/c1 cannot be listed"));
  std::filesystem::permissions(root() + "/c1", std::filesystem::perms(0755));
}

TEST_F(ImageFolderTest, TheHashIsOfNamesAndClasses) {
  Touch("c0/a.jpg");
  Touch("c1/b.jpg");
  const uint64_t before = ImageFolder::Scan(root())->fingerprint();
  EXPECT_EQ(ImageFolder::Scan(root())->fingerprint(), before);
  std::filesystem::rename(root() + "/c1/b.jpg", root() + "/c0/b.jpg");
  const uint64_t moved = ImageFolder::Scan(root())->fingerprint();
  EXPECT_NE(moved, before);
  Touch("c1/c.jpg");
  EXPECT_NE(ImageFolder::Scan(root())->fingerprint(), moved);
}

}  // namespace image_folder_test
}  // namespace gossamer
