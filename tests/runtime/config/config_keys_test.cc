// The list of keys is the schema's, and each key has a type, a default and an
// explanation.

#include "runtime/config/config_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "proto/run.pb.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace config_keys_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void PathsOf(const google::protobuf::Descriptor& type,
             const std::string& prefix, std::set<std::string>& paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    if (field.message_type() == nullptr) {
      paths.insert(absl::StrCat(prefix, field.name()));
    } else {
      PathsOf(*field.message_type(), absl::StrCat(prefix, field.name(), "."),
              paths);
    }
  }
}

TEST(ConfigKeys, AreThoseOfTheSchema) {
  std::set<std::string> expected, listed;
  PathsOf(*RunConfig::descriptor(), "", expected);
  for (const ConfigKey& key : ConfigKeys()) listed.insert(key.path);
  EXPECT_EQ(listed, expected);
  EXPECT_EQ(ConfigKeys().size(), expected.size());
}

TEST(ConfigKeys, EachIsExplainedByASentence) {
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_FALSE(key.explanation.empty()) << key.path;
    EXPECT_THAT(FirstSentence(key.explanation),
                AllOf(Not(HasSubstr("\n")), Not(StartsWith("Who ")),
                      Not(StartsWith("What ")), Not(StartsWith("Where "))))
        << key.path;
  }
}

TEST(ConfigKeys, TransportIsExplained) {
  const auto transport = FindConfigKey("transport");
  ASSERT_TRUE(transport.ok()) << transport.status();
  EXPECT_EQ(transport->values, "auto, grpc, nccl");
  EXPECT_EQ(transport->default_value, "\"auto\"");
  EXPECT_THAT(transport->explanation, HasSubstr("from device to device"));
}

TEST(ConfigKeys, DeviceIsExplained) {
  const auto device = FindConfigKey("resources.device");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->values, "auto, cpu, cuda, cuda:N");
  EXPECT_EQ(device->default_value, "\"cpu\"");
  EXPECT_THAT(device->explanation, AllOf(HasSubstr("resumed on another device"),
                                         HasSubstr("repeats to the bit")));
}

TEST(ConfigKeys, HaveTypesValuesAndDefaults) {
  const auto codec = FindConfigKey("mixing.codec");
  ASSERT_TRUE(codec.ok()) << codec.status();
  EXPECT_EQ(codec->type, "text");
  EXPECT_EQ(codec->default_value, "\"innov-int4\"");
  EXPECT_THAT(codec->values, HasSubstr("innov-int8, "));
  const auto overlap = FindConfigKey("mixing.overlap_steps");
  ASSERT_TRUE(overlap.ok()) << overlap.status();
  EXPECT_THAT(overlap->values, StartsWith("auto, 0, 1, "));
  EXPECT_EQ(overlap->default_value, "1");
  EXPECT_EQ(FindConfigKey("peers")->default_value, "4");
  EXPECT_EQ(FindConfigKey("game.gan.data.flip")->default_value, "false");
  EXPECT_EQ(FindConfigKey("game.gan.data.classes")->type, "list of texts");
}

// The names come from the parts that own the keys, so each of them is one that
// a configuration may have, if not with the defaults of the other keys.
TEST(ConfigKeys, ListedNamesAreKnown) {
  int named = 0;
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.type != "text" || key.values.empty()) continue;
    ++named;
    for (absl::string_view name : absl::StrSplit(key.values, ", ")) {
      const std::string set = absl::StrCat(key.path, "=", name);
      const std::string message(
          ParseRunConfig("", "", std::vector<std::string>{set})
              .status()
              .message());
      EXPECT_THAT(message, Not(HasSubstr("known: "))) << set;
    }
  }
  EXPECT_EQ(named, 12);
}

TEST(ConfigKeys, AreFoundByTheirLastNameWhereItIsTheOnlyOne) {
  EXPECT_EQ(FindConfigKey("clip_radius")->path, "mixing.clip_radius");
  // Two keys end so: evaluation.every and checkpoint.every.
  EXPECT_THAT(std::string(FindConfigKey("every").status().message()),
              HasSubstr("there is evaluation.every, checkpoint.every"));
  EXPECT_THAT(std::string(FindConfigKey("overlap").status().message()),
              HasSubstr("there is mixing.overlap_steps"));
}

TEST(ConfigKeys, GroupsAreExplainedToo) {
  const auto mixing = FindConfigKey("mixing");
  ASSERT_TRUE(mixing.ok()) << mixing.status();
  EXPECT_EQ(mixing->type, "group of keys");
  EXPECT_FALSE(mixing->explanation.empty());
}

TEST(ConfigKeys, AnUnknownKeyNamesTheNearest) {
  const auto wrong = FindConfigKey("mixing.codek");
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("did you mean \"mixing.codec\"?"));
}

TEST(FirstSentence, EndsAtAFullStopOrAParagraph) {
  EXPECT_EQ(FirstSentence("One thing: a, b.  Two."), "One thing: a, b");
  EXPECT_EQ(FirstSentence("One\nTwo"), "One");
  EXPECT_EQ(FirstSentence("One."), "One");
  EXPECT_EQ(FirstSentence(""), "");
}

}  // namespace config_keys_test
}  // namespace gossamer
