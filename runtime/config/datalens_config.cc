#include "runtime/config/datalens_config.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "algorithms/method/method.h"
#include "gan_models/data/digits.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

bool LearnsFromVotes(const RunConfig& config) {
  const Method* const method = MethodOf(config);
  return method != nullptr && method->averaging == Averaging::kVotes;
}

// A number beyond all ranges stays beyond them.
int Whole(uint32_t value) {
  return static_cast<int>(
      std::min<uint32_t>(value, std::numeric_limits<int>::max()));
}

void CheckPeersAndRounds(const RunConfig& config, const DataLensSettings& s,
                         Problems& problems) {
  if (config.peers() > static_cast<uint64_t>(s.teachers) + 1) {
    problems.Refuse("peers", "is ", config.peers(),
                    ", but besides the student each needs a teacher, and "
                    "game.datalens.teachers is ",
                    s.teachers);
  }
  const uint64_t allowed = AllowedSteps(s);
  if (config.rounds() <= allowed) return;
  problems.Refuse("rounds", "is ", config.rounds(),
                  ", but the budget of epsilon ", s.budget.epsilon,
                  " pays for ", allowed, ": leave it out");
}

}  // namespace

DataLensSettings DataLensSettingsOf(const RunConfig& config) {
  const DataLensConfig& c = config.game().datalens();
  return {.budget = {.epsilon = c.epsilon(), .delta = c.delta()},
          .teachers = Whole(c.teachers()),
          .top = Whole(c.top()),
          .clip = c.clip(),
          .sigma = c.sigma(),
          .threshold = c.threshold(),
          .step_size = c.step_size(),
          .batch = Whole(c.batch()),
          .discriminator_steps = Whole(c.discriminator_steps()),
          .student_steps = Whole(c.student_steps()),
          .teacher_rate = c.teacher_rate(),
          .student_rate = c.student_rate(),
          .teacher_width = Whole(c.teacher_width()),
          .student_width = Whole(c.student_width()),
          .latent = Whole(c.latent()),
          .seed = config.seed()};
}

void ResolveVotes(RunConfig& config) {
  if (!LearnsFromVotes(config)) return;
  if (config.game().game_case() == GameConfig::GAME_NOT_SET) {
    config.mutable_game()->mutable_datalens();
  }
  if (config.has_rounds() || !config.game().has_datalens()) return;
  const DataLensSettings s = DataLensSettingsOf(config);
  if (!ProblemsOf(s, kDigitPixels).empty()) return;
  config.set_rounds(AllowedSteps(s));
}

Problems ProblemsOfVotes(const RunConfig& config) {
  const bool votes = LearnsFromVotes(config);
  Problems problems;
  if (votes != config.game().has_datalens()) {
    problems.Refuse("algorithm", "is ", config.algorithm(),
                    votes ? ", which learns from votes, and no other game has "
                            "any than game { datalens {} }"
                          : ", but game datalens has votes and no gradients: "
                            "take algorithm datalens");
  }
  if (!config.game().has_datalens()) return problems;
  const DataLensSettings s = DataLensSettingsOf(config);
  problems.Add("game.datalens.", ProblemsOf(s, kDigitPixels));
  problems.Range<uint64_t>("evaluation.samples", config.evaluation().samples(),
                           2, 100000);
  if (votes && problems.empty()) CheckPeersAndRounds(config, s, problems);
  return problems;
}

}  // namespace gossamer
