// The settings of a DataLens run: the numbers that student and teachers share.
//
// Wang et al., "DataLens", CCS 2021, arXiv 2103.11109.  This header knows
// nothing of networks or processes.

#ifndef GOSSAMER_ALGORITHMS_PRIVACY_SETTINGS_H_
#define GOSSAMER_ALGORITHMS_PRIVACY_SETTINGS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "algorithms/base/problems.h"
#include "algorithms/privacy/rdp_accountant.h"

namespace gossamer {

struct DataLensSettings {
  PrivacyBudget budget = {};
  int teachers = 479;           // N, on disjoint shards
  int top = 32;                 // k: coordinates that a teacher votes on
  double clip = 1e-5;           // c: a gradient this large votes for certain
  double sigma = 200;           // of the noise on the sum of the votes
  double threshold = 0;         // beta, of the number of teachers
  double step_size = 0.05;      // alpha: how far a vote moves an image
  int batch = 10;               // images that the student asks about at once
  int discriminator_steps = 5;  // of every teacher on a batch
  int student_steps = 10;       // towards the moved images of a batch
  double teacher_rate = 3e-3;   // learning rates of Adam
  double student_rate = 5e-3;
  int teacher_width = 16;
  int student_width = 128;
  int latent = 4;
  uint64_t seed = 1;  // of everything but the noise
};

// Returns all that hinders a run on images of `dimensions` values: ranges
// first, then a budget that does not pay for one batch.
Problems ProblemsOf(const DataLensSettings& s, int dimensions);
// kInvalidArgument unless there is an example for every teacher.
absl::Status CheckExamples(const DataLensSettings& s, size_t examples);

// L2 sensitivity of the vote sum: one example is in one shard, and one teacher
// can turn all its k votes around.
double VoteSensitivity(const DataLensSettings& s);

// The steps, each of one batch, that the whole budget pays for.  The settings
// have no problem.
uint64_t AllowedSteps(const DataLensSettings& s);

// The first teacher of group 0 .. groups - 1; for group `groups`, one past the
// last.
constexpr int FirstTeacher(int teachers, int group, int groups) {
  return static_cast<int>(int64_t{teachers} * group / groups);
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_SETTINGS_H_
