// Configurations of algorithm datalens: what they resolve to, and what is
// refused with its line.

#include "runtime/config/datalens_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/config/compose.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace datalens_config_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

RunConfig Parse(const std::string& text) {
  const auto config = ParseRunConfig(text, "f.textproto");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(RunConfig());
}

std::string Refusal(const std::string& text) {
  return std::string(ParseRunConfig(text, "f.textproto").status().message());
}

TEST(DataLensConfigTest, HasItsGameAndTheRoundsOfItsBudget) {
  const RunConfig config = Parse("algorithm: \"datalens\" seed: 5");
  EXPECT_TRUE(config.game().has_datalens());
  EXPECT_EQ(config.rounds(), 111u);
  EXPECT_EQ(config.mixing().graph(), "complete");
  EXPECT_FALSE(config.game().datalens().has_noise_seed());
  const auto spec = PeerSpecOf(config);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->averaging, Averaging::kVotes);
  EXPECT_EQ(spec->rounds, 111u);
  EXPECT_EQ(spec->ema, 0.9);
  // The defaults of the keys are those of the settings.
  const DataLensSettings usual;
  EXPECT_EQ(spec->votes.seed, 5u);
  EXPECT_EQ(spec->votes.budget.epsilon, usual.budget.epsilon);
  EXPECT_EQ(spec->votes.budget.delta, usual.budget.delta);
  EXPECT_EQ(spec->votes.teachers, usual.teachers);
  EXPECT_EQ(spec->votes.top, usual.top);
  EXPECT_EQ(spec->votes.clip, usual.clip);
  EXPECT_EQ(spec->votes.sigma, usual.sigma);
  EXPECT_EQ(spec->votes.threshold, usual.threshold);
  EXPECT_EQ(spec->votes.step_size, usual.step_size);
  EXPECT_EQ(spec->votes.batch, usual.batch);
  EXPECT_EQ(spec->votes.discriminator_steps, usual.discriminator_steps);
  EXPECT_EQ(spec->votes.student_steps, usual.student_steps);
  EXPECT_EQ(spec->votes.teacher_rate, usual.teacher_rate);
  EXPECT_EQ(spec->votes.student_rate, usual.student_rate);
  EXPECT_EQ(spec->votes.teacher_width, usual.teacher_width);
  EXPECT_EQ(spec->votes.student_width, usual.student_width);
  EXPECT_EQ(spec->votes.latent, usual.latent);
}

TEST(DataLensConfigTest, FewerRoundsAreAllowed) {
  EXPECT_EQ(Parse("algorithm: \"datalens\" rounds: 20").rounds(), 20u);
  EXPECT_EQ(Refusal("algorithm: \"datalens\"\nrounds: 112"),
            "f.textproto:2:1: rounds is 112, but the budget of epsilon 10 pays "
            "for 111: leave it out");
}

// All peers must agree on every number, the noise among them, and not on the
// folder of a machine.
TEST(DataLensConfigTest, EveryNumberCounts) {
  const RunConfig config =
      Parse("algorithm: \"datalens\" game { datalens { noise_seed: 0 } }");
  const auto& type = *DataLensConfig::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    RunConfig other = config;
    DataLensConfig& votes = *other.mutable_game()->mutable_datalens();
    const auto& field = *type.field(i);
    const auto& reflection = *votes.GetReflection();
    using Field = google::protobuf::FieldDescriptor;
    if (field.cpp_type() == Field::CPPTYPE_DOUBLE) {
      reflection.SetDouble(
          &votes, &field,
          std::nextafter(reflection.GetDouble(votes, &field), 9));
    } else if (field.cpp_type() == Field::CPPTYPE_UINT32) {
      reflection.SetUInt32(&votes, &field,
                           reflection.GetUInt32(votes, &field) + 1);
    } else if (field.cpp_type() == Field::CPPTYPE_UINT64) {
      reflection.SetUInt64(&votes, &field, 1);
    } else {
      reflection.SetString(&votes, &field, "elsewhere");
    }
    EXPECT_EQ(ConfigurationHash(other) == ConfigurationHash(config),
              field.name() == "path")
        << field.name();
  }
  // The seed of the noise leaves no machine.
  EXPECT_THAT(ConfigurationLines(config),
              AllOf(HasSubstr("game.datalens.sigma: "),
                    testing::Not(HasSubstr("noise_seed"))));
}

TEST(DataLensConfigTest, EachProblemHasItsLine) {
  EXPECT_THAT(Refusal("algorithm: \"datalens\"\ngame { datalens {\n"
                      "  top: 65\n  sigma: 0\n  ema: 1\n} }"),
              AllOf(HasSubstr("f.textproto:3:3: game.datalens.top is 65; it "
                              "must lie between 1 and 64"),
                    HasSubstr("f.textproto:4:3: game.datalens.sigma is 0"),
                    HasSubstr("f.textproto:5:3: game.datalens.ema is 1")));
  EXPECT_THAT(Refusal("algorithm: \"datalens\" game { datalens {\n"
                      "teachers: 4000000000 } }"),
              HasSubstr("f.textproto:2:1: game.datalens.teachers is"));
}

TEST(DataLensConfigTest, GoesWithItsOwnGameAndPeers) {
  EXPECT_THAT(Refusal("algorithm: \"datalens\" game { quadratic {} }"),
              HasSubstr("learns from votes, and no other game"));
  EXPECT_THAT(Refusal("game { datalens {} }"),
              HasSubstr("take algorithm datalens"));
  EXPECT_THAT(Refusal("algorithm: \"datalens\" peers: 1"),
              HasSubstr("peers is 1, but peer 1 is the student"));
  EXPECT_THAT(
      Refusal("algorithm: \"datalens\" peers: 4\n"
              "game { datalens { teachers: 2 } }"),
      HasSubstr("peers is 4, but besides the student each needs a teacher"));
}

}  // namespace datalens_config_test
}  // namespace gossamer
