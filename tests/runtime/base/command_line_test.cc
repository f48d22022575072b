// Command lines: every type of option is read, and a wrong one is refused by
// its name.

#include "runtime/base/command_line.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A variable for each type of option.
struct Values {
  std::string text = "before";
  bool flag = false;
  bool other_flag = false;
  int number = 7;
  uint32_t narrow = 0;
  uint64_t wide = 0;
  double real = 0.5;
  std::optional<int> maybe;
  std::optional<std::string> maybe_text;
  std::vector<std::string> set;
  std::vector<std::string> files;
  std::vector<uint64_t> seeds = {1, 2};
};

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest()
      : program_({.name = "draw",
                  .about = "Draws pictures.",
                  .footer = "examples:\n  draw --text x",
                  .version = "draw 1.2.3"}) {
    program_.AddOption("--text", &v_.text, "some text", {.show_default = true});
    program_.AddOption("--flag", &v_.flag, "yes");
    program_.AddOption("--other-flag", &v_.other_flag, "no",
                       {.excludes = "--flag"});
    program_.AddOption("--number", &v_.number, "how many",
                       {.show_default = true});
    program_.AddOption("--narrow", &v_.narrow, "32 bits");
    program_.AddOption("--wide", &v_.wide, "64 bits", {.value_name = "SEED"});
    program_.AddOption("--share", &v_.real, "of it",
                       {.show_default = true, .range = {{0, 1}}});
    program_.AddOption("--wait", &v_.real, "for it", {.positive = true});
    program_.AddOption("--maybe", &v_.maybe, "or not");
    program_.AddOption("--maybe-text", &v_.maybe_text, "or not");
    program_.AddOption("--set", &v_.set, "one field", {.one_at_a_time = true});
    program_.AddOption("--files", &v_.files, "many");
    program_.AddOption("--seeds", &v_.seeds, "many",
                       {.show_default = true, .delimiter = ','});
    program_.AddOption("--colour", &v_.text, "one of few",
                       {.choices = {"red", "blue"}});
  }

  absl::StatusOr<std::string> Parse(
      std::initializer_list<const char*> arguments) {
    std::vector<const char*> argv = {"/path/of/draw"};
    argv.insert(argv.end(), arguments);
    return program_.Parse(static_cast<int>(argv.size()), argv.data());
  }
  // Returns the error with which the arguments are refused.
  std::string Refused(std::initializer_list<const char*> arguments) {
    const auto parsed = Parse(arguments);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("(see --help)"));
    return std::string(parsed.status().message());
  }

  Values v_;
  Command program_;
};

TEST_F(CommandLineTest, NothingGivenChangesNothing) {
  EXPECT_EQ(*Parse({}), "");
  EXPECT_EQ(v_.text, "before");
  EXPECT_EQ(v_.number, 7);
  EXPECT_FALSE(v_.flag);
  EXPECT_FALSE(v_.maybe);
  EXPECT_THAT(v_.seeds, ElementsAre(1, 2));
}

TEST_F(CommandLineTest, ReadsEveryType) {
  EXPECT_EQ(*Parse({"--text", "after", "--flag", "--number=-3", "--narrow",
                    "4294967295", "--wide", "18446744073709551615", "--share",
                    "0.25", "--maybe", "5", "--maybe-text", ""}),
            "");
  EXPECT_EQ(v_.text, "after");
  EXPECT_TRUE(v_.flag);
  EXPECT_EQ(v_.number, -3);
  EXPECT_EQ(v_.narrow, 4294967295u);
  EXPECT_EQ(v_.wide, 18446744073709551615u);
  EXPECT_EQ(v_.real, 0.25);
  EXPECT_EQ(v_.maybe, 5);
  EXPECT_EQ(v_.maybe_text, "");
}

TEST_F(CommandLineTest, NumbersAreDecimalOrHexadecimal) {
  EXPECT_EQ(*Parse({"--number", "010", "--wide", "0xff"}), "");
  EXPECT_EQ(v_.number, 10);
  EXPECT_EQ(v_.wide, 255u);
}

TEST_F(CommandLineTest, ListsTakeSeveralValues) {
  EXPECT_EQ(*Parse({"--files", "a", "b", "--seeds", "3,4", "--files", "c",
                    "--seeds", "5"}),
            "");
  EXPECT_THAT(v_.files, ElementsAre("a", "b", "c"));
  EXPECT_THAT(v_.seeds, ElementsAre(3, 4, 5));
}

TEST_F(CommandLineTest, OneAtATimeTakesOneValueAfterEachFlag) {
  EXPECT_EQ(*Parse({"--set", "a=1,2", "--set", "b=--flag"}), "");
  EXPECT_THAT(v_.set, ElementsAre("a=1,2", "b=--flag"));
}

TEST_F(CommandLineTest, OneAtATimeLeavesTheNextArgument) {
  EXPECT_EQ(Refused({"--set", "a=1", "b=2"}),
            "\"b=2\" was not expected (see --help)");
}

TEST_F(CommandLineTest, NumbersThatAreNone) {
  EXPECT_EQ(Refused({"--number", "x"}),
            "--number x: not a whole number from -2147483648 to 2147483647 "
            "(see --help)");
}

// Every case has a program of its own: Parse may be called once.
class WrongValueTest
    : public CommandLineTest,
      public testing::WithParamInterface<std::vector<const char*>> {};

TEST_P(WrongValueTest, IsRefusedByName) {
  const auto& p = GetParam();
  EXPECT_THAT(Refused({p[0], p[1]}),
              AllOf(StartsWith(std::string(p[0]) + " " + p[1] + ": not "),
                    HasSubstr(p[2])));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongValueTest,
    testing::Values(
        std::vector{"--number", "1.5", "a whole number"},
        std::vector{"--number", "", "a whole number"},
        std::vector{"--number", "99999999999999999999", "to 2147483647"},
        std::vector{"--narrow", "-1", "from 0 to 4294967295"},
        std::vector{"--narrow", "4294967296", "from 0 to 4294967295"},
        std::vector{"--wide", "-1", "from 0 to 18446744073709551615"},
        std::vector{"--wide", "99999999999999999999", "from 0 to"},
        std::vector{"--wide", "0xg", "a whole number"},
        std::vector{"--maybe", "x", "a whole number"},
        std::vector{"--seeds", "-2", "a whole number from 0"},
        std::vector{"--share", "x", "a number from 0 to 1"},
        std::vector{"--share", "1.01", "a number from 0 to 1"},
        std::vector{"--share", "nan", "a number from 0 to 1"},
        std::vector{"--wait", "0", "a number above 0"},
        std::vector{"--wait", "inf", "a number above 0"},
        std::vector{"--colour", "green", "one of red, blue"}));

TEST_F(CommandLineTest, RangesIncludeTheirEnds) {
  EXPECT_EQ(*Parse({"--share", "1", "--colour", "blue"}), "");
  EXPECT_EQ(v_.real, 1);
  EXPECT_EQ(v_.text, "blue");
}

TEST_F(CommandLineTest, OneWrongValueOfAList) {
  EXPECT_THAT(Refused({"--seeds", "1,x"}), StartsWith("--seeds x: not "));
}

TEST_F(CommandLineTest, AMissingValue) {
  EXPECT_THAT(Refused({"--number"}), HasSubstr("--number"));
}

TEST_F(CommandLineTest, ASingleValueTwice) {
  EXPECT_THAT(Refused({"--number", "1", "--number", "2"}),
              HasSubstr("--number"));
}

TEST_F(CommandLineTest, AnUnknownOption) {
  EXPECT_EQ(Refused({"--nmber", "3"}),
            "there is no option --nmber (see --help)");
}

TEST_F(CommandLineTest, AnOptionThatExcludesAnother) {
  EXPECT_THAT(Refused({"--flag", "--other-flag"}),
              AllOf(HasSubstr("--flag"), HasSubstr("--other-flag")));
}

TEST_F(CommandLineTest, ARequiredOption) {
  program_.AddOption("--needed", &v_.text, "must be", {.required = true});
  EXPECT_EQ(Refused({}), "--needed is required (see --help)");
}

TEST_F(CommandLineTest, AMisspeltRequiredOptionIsNamed) {
  program_.AddOption("--needed", &v_.text, "must be", {.required = true});
  EXPECT_EQ(Refused({"--neded", "x"}),
            "there is no option --neded (see --help)");
}

TEST_F(CommandLineTest, Help) {
  program_.AddOption("--needed", &v_.maybe_text, "must be", {.required = true});
  const std::string help = *Parse({"--help"});
  EXPECT_THAT(help, StartsWith("Draws pictures."));
  EXPECT_THAT(help, HasSubstr("Usage: draw [OPTIONS]"));
  EXPECT_THAT(help, HasSubstr("--text TEXT=before "));
  EXPECT_THAT(help, HasSubstr("--flag Excludes: --other-flag"));
  EXPECT_THAT(help, HasSubstr("--number INT=7 "));
  EXPECT_THAT(help, HasSubstr("--narrow UINT "));
  EXPECT_THAT(help, HasSubstr("--wide SEED "));
  EXPECT_THAT(help, HasSubstr("--share FLOAT in [0 - 1]=0.5"));
  EXPECT_THAT(help, HasSubstr("--set TEXT "));
  EXPECT_THAT(help, HasSubstr("--files TEXT ..."));
  EXPECT_THAT(help, HasSubstr("--seeds UINT=[1,2] ..."));
  EXPECT_THAT(help, HasSubstr("--colour red|blue "));
  EXPECT_THAT(help, HasSubstr("--needed TEXT REQUIRED"));
  EXPECT_THAT(help, HasSubstr("examples:\n  draw --text x"));
}

TEST_F(CommandLineTest, Version) {
  EXPECT_EQ(*Parse({"--version"}), "draw 1.2.3\n");
}

TEST(CommandLineDeathTest, AnOptionThatIsDeclaredTwiceEndsTheProcess) {
  int value = 0;
  Command program({.name = "draw", .about = "Draws."});
  program.AddOption("--number", &value, "how many");
  EXPECT_DEATH(program.AddOption("--number", &value, "how many"),
               "number is already added");
}

class SubcommandTest : public testing::Test {
 protected:
  SubcommandTest() : program_({.name = "draw", .about = "Draws."}) {
    for (const char* name : {"line", "circle"}) {
      Command& command =
          program_.AddCommand({.name = name,
                               .about = std::string("Draws a ") + name,
                               .footer = std::string("examples of ") + name,
                               .run = [this, name] {
                                 ran_.push_back(name);
                                 return size_;
                               }});
      command.AddOption("--size", &size_, "how large", {.required = true});
    }
  }

  int Run(std::initializer_list<const char*> arguments) {
    std::vector<const char*> argv = {"draw"};
    argv.insert(argv.end(), arguments);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = program_.Run(static_cast<int>(argv.size()), argv.data());
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  int size_ = 0;
  std::vector<std::string> ran_;
  std::string out_, err_;
  Command program_;
};

TEST_F(SubcommandTest, RunsWhatIsAskedForAndReturnsItsStatus) {
  EXPECT_EQ(Run({"circle", "--size", "3"}), 3);
  EXPECT_THAT(ran_, ElementsAre("circle"));
  EXPECT_THAT(out_ + err_, IsEmpty());
}

TEST_F(SubcommandTest, HelpOfTheProgramListsThem) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("draw [OPTIONS] SUBCOMMAND"),
                          HasSubstr("Draws a line")));
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(SubcommandTest, HelpOfOne) {
  EXPECT_EQ(Run({"line", "--help"}), 0);
  EXPECT_THAT(out_,
              AllOf(HasSubstr("draw line [OPTIONS]"), HasSubstr("--size"),
                    HasSubstr("examples of line"), Not(HasSubstr("circle"))));
}

TEST_F(SubcommandTest, ErrorsGoToStderrAndSayWhichCommand) {
  EXPECT_EQ(Run({"line", "--size", "x"}), 2);
  EXPECT_THAT(err_, StartsWith("draw line: --size x: not a whole number"));
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(SubcommandTest, ARequiredOptionOfOne) {
  EXPECT_EQ(Run({"line"}), 2);
  EXPECT_EQ(err_, "draw line: --size is required (see --help)\n");
}

TEST_F(SubcommandTest, NoneIsAnError) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(err_, StartsWith("draw: A subcommand is required"));
}

TEST_F(SubcommandTest, AnUnknownOneIsNamed) {
  EXPECT_EQ(Run({"lime"}), 2);
  EXPECT_EQ(err_, "draw: \"lime\" was not expected (see --help)\n");
}

TEST_F(SubcommandTest, TwoAreAnError) {
  EXPECT_EQ(Run({"line", "--size", "3", "circle", "--size", "4"}), 2);
  EXPECT_THAT(ran_, IsEmpty());
}

TEST(ProgramTest, RunsWithoutSubcommands) {
  Command program({.name = "draw", .about = "Draws.", .run = [] { return 4; }});
  const char* const argv[] = {"draw"};
  EXPECT_EQ(program.Run(1, argv), 4);
}

// A value from another source than a command line follows the same rules.
TEST(AssignOptionTest, ReadsAsACommandLineDoes) {
  int number = 7;
  EXPECT_TRUE(AssignOption("n", "0x10", &number).ok());
  EXPECT_EQ(number, 16);
  EXPECT_EQ(AssignOption("n", "3.5", &number).message(),
            "n 3.5: not a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(AssignOption("n", "8", &number, {.range = {{0, 7}}}).message(),
            "n 8: not a whole number from 0 to 7");
  EXPECT_EQ(number, 16);
  bool flag = false;
  EXPECT_TRUE(AssignOption("f", "true", &flag).ok());
  EXPECT_TRUE(flag);
  EXPECT_EQ(AssignOption("f", "maybe", &flag).message(),
            "f maybe: not true or false");
}

}  // namespace
}  // namespace gossamer
