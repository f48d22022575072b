// `gossamer config` from outside: explanations, and a configuration as a run
// would have it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "nlohmann/json.hpp"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace config_command_test {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConfigCommand : public Cli {};

TEST_F(ConfigCommand, ExplainsOneKeyAndListsAll) {
  const Result one = Run("config explain mixing.deadline");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(StartsWith("mixing.deadline: text; default "
                                        "\"none\"\n"),
                             HasSubstr("its round goes on")));
  const Result all = Run("config explain");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("  mixing.codec "),
                             HasSubstr("  resources.threads ")));
}

TEST_F(ConfigCommand, JsonHasTheKeysOfItsHelp) {
  const Result r = Run("config explain peers --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["default"], "4");
  const std::string help = Run("config explain --help").out;
  for (const auto& [key, value] : json[0].items()) {
    EXPECT_THAT(help, HasSubstr(key));
  }
}

TEST_F(ConfigCommand, AnUnknownKeyIsAWrongCommandLine) {
  const Result r = Run("config explain mixing.codek");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("did you mean \"mixing.codec\"?"));
}

TEST_F(ConfigCommand, ShowAddsDefaultsAndRefusesAsTrainDoes) {
  Write("c.textproto", "name: \"c\" peers: 5 game { quadratic {} }\n");
  const Result shown = Run("config show --config c.textproto --set seed=9");
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("peers: 5"), HasSubstr("seed: 9"),
                               HasSubstr("codec: \"innov-int4\"")));
  const Result wrong = Run("config show --config c.textproto --set peers=0");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("peers is 0"));
}

}  // namespace config_command_test
}  // namespace gossamer
