// `gossamer data` from outside: a folder of pictures becomes a file that
// `data check` finds whole, and errors say what to do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/gan_models/picture_files.h"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DataCommand : public Cli {
 protected:
  void SetUp() override { MakeClasses(folder_.path() + "/from", 2, 10); }
  static constexpr char kBuild[] =
      "data build --from from --out out.images --resolution 16 ";
};

TEST_F(DataCommand, BuildsAndChecks) {
  Write("from/class0/bad.jpg", "not a picture");
  const Result built = Run(kBuild);
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_THAT(built.out,
              HasSubstr("out.images: 18 pictures to train and 2 held out, of 2 "
                        "classes, 16x16, 24."));
  EXPECT_THAT(built.err,
              AllOf(HasSubstr("21 of 21 pictures"),
                    HasSubstr("1 files are left out, all named in "
                              "out.images.refused.txt:\n  from/class0/bad.jpg: "
                              "neither JPEG nor PNG")));
  const Result again = Run(kBuild);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("; it was there"));
  const Result checked = Run("data check --data out.images");
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("1 files were refused"));

  std::fstream file(folder_.path() + "/out.images",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');
  file.close();
  const Result damaged = Run("data check --data out.images --json");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_EQ(ordered_json::parse(damaged.out)["damaged"], ordered_json({20}));
  EXPECT_THAT(damaged.err, HasSubstr("1 pictures differ"));
}

TEST_F(DataCommand, JsonHasTheKeysOfItsHelp) {
  const std::string help = Run("data build --help").out;
  const Result built = Run(std::string(kBuild) + "--json");
  ASSERT_EQ(built.code, 0) << built.err;
  const Result checked = Run("data check --data out.images --json");
  ASSERT_EQ(checked.code, 0) << checked.err;
  for (const std::string& text : {built.out, checked.out}) {
    const auto json = ordered_json::parse(text);
    for (const auto& [key, value] : json.items()) {
      EXPECT_THAT(help, HasSubstr(key));
    }
  }
  EXPECT_EQ(ordered_json::parse(built.out)["train"], 18);
}

TEST_F(DataCommand, ErrorsSayWhatIsWrong) {
  const Result none = Run("data build --from none --out out.images");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("data build: none is no folder"));
  const Result odd =
      Run("data build --from from --out out.images --resolution 30");
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.err, HasSubstr("a multiple of 4"));
  EXPECT_EQ(Run("data build --from from").code, 2);
  EXPECT_EQ(Run("data").code, 2);
  const Result folder = Run("data check --data from");
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("gossamer data build --from from"));
}

TEST_F(DataCommand, TrainingSaysWhichFilesItsDataSetNeeds) {
  const auto refusal = [&](const std::string& name) {
    Write("run.textproto", "name: \"r\" peers: 2 game { gan { data { name: \"" +
                               name + "\" } } }");
    const Result refused = Run("train --config run.textproto");
    EXPECT_EQ(refused.code, 2);
    return refused.err;
  };
  EXPECT_THAT(refusal("cifar-10"),
              HasSubstr("--data DIR is needed, the folder of the cifar-10"));
  EXPECT_THAT(refusal("image-folder"),
              HasSubstr("--data FILE is needed, of image-folder"));
}

TEST_F(DataCommand, AFileSizeLimitIsAnErrorWithAName) {
  program_ = "ulimit -f 8 && " + program_;
  const Result full = Run(kBuild);
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("out.images.partial: no room for the 23552 "
                                  "bytes of 20 pictures"));
}

}  // namespace
}  // namespace gossamer
