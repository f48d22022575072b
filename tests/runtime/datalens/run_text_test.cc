// A run's configuration: what is written is read, and what cannot be meant is
// refused with its line.

#include "runtime/datalens/run_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Refusal(std::string_view text) {
  DataLensRun run;
  const absl::Status read = ReadRunText(text, "digits.txt", run);
  EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(read.message());
}

TEST(RunTextTest, WhatIsWrittenIsTheSameRun) {
  DataLensRun run;
  run.data = "/a folder/#1/digits.csv";
  run.settings.budget = {.epsilon = 1.0 / 3, .delta = 1e-7};
  run.settings.top = 7;
  run.settings.clip = 5e-324;
  run.settings.seed = ~uint64_t{0};
  run.groups = 3;
  run.steps = 12;
  run.checkpoint_every = 0;
  run.noise_seed = 0;
  run.patience = 0.5;
  DataLensRun read;
  const std::string text = RunText(run);
  ASSERT_TRUE(ReadRunText(text, "f", read).ok());
  EXPECT_EQ(RunText(read), text);
  EXPECT_EQ(SettingsText(read.settings), SettingsText(run.settings));
  EXPECT_EQ(read.data, run.data);
  EXPECT_EQ(read.groups, 3);
  EXPECT_EQ(read.steps, 12u);
  EXPECT_EQ(read.checkpoint_every, 0u);
  EXPECT_EQ(read.noise_seed, uint64_t{0});
  EXPECT_EQ(read.patience, 0.5);
  EXPECT_THAT(RunText({}), Not(HasSubstr("noise-seed")));
}

// Otherwise a run's folder would not say all that its bits depend on.
TEST(RunTextTest, NamesAllThatStudentAndTeachersAgreeOn) {
  const std::string text = "\n" + RunText({});
  for (const absl::string_view line :
       absl::StrSplit(SettingsText({}), '\n', absl::SkipEmpty())) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat(
                          "\n", line.substr(0, line.find(' ') + 1))));
  }
}

TEST(RunTextTest, ReadsWhatPeopleWrite) {
  DataLensRun run;
  ASSERT_TRUE(ReadRunText("# so\n\n  top\t 9  \r\ndata my digits.csv\n"
                          "   # and so\nsigma 3e2",
                          "f", run)
                  .ok());
  EXPECT_EQ(run.settings.top, 9);
  EXPECT_EQ(run.data, "my digits.csv");
  EXPECT_EQ(run.settings.sigma, 300);
  EXPECT_EQ(run.settings.teachers, 479);
}

TEST(RunTextTest, RefusesWithLineAndName) {
  EXPECT_EQ(Refusal("top 3\nepsilom 1\n"),
            "digits.txt:2: there is no \"epsilom\"; did you mean "
            "\"epsilon\"?");
  EXPECT_THAT(Refusal("checkpoints runs/a"), HasSubstr("known: data, epsilon"));
  EXPECT_EQ(Refusal("top 3\n\ntop 4"),
            "digits.txt:3: \"top\" is in line 1, too");
  EXPECT_EQ(Refusal("top"),
            "digits.txt:1: \"top\" has no value; write \"top VALUE\"");
  EXPECT_THAT(Refusal("top 3.5"), HasSubstr("top 3.5: not a whole number"));
  EXPECT_THAT(Refusal("sigma nan"), HasSubstr("sigma nan: not a number"));
  EXPECT_THAT(Refusal("seed -1"), HasSubstr("seed -1: not a whole number"));
  EXPECT_THAT(Refusal("patience 0"), HasSubstr("from 0.1 to 86400"));
  EXPECT_THAT(Refusal("noise-seed x"), HasSubstr("noise-seed x"));
  EXPECT_THAT(Refusal("tpo 3\nsigma big\n"),
              AllOf(HasSubstr("digits.txt:1: "), HasSubstr("digits.txt:2: ")));
}

}  // namespace
}  // namespace gossamer
