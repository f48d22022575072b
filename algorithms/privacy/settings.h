// The settings of a DataLens run: the numbers that student and teachers share.
//
// Wang et al., "DataLens", CCS 2021, arXiv 2103.11109.  Knows nothing of
// networks or processes.

#ifndef GOSSAMER_ALGORITHMS_PRIVACY_SETTINGS_H_
#define GOSSAMER_ALGORITHMS_PRIVACY_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
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
  double average = 0.9;  // of the student's parameters over steps; 0: none
  int teacher_width = 16;
  int student_width = 128;
  int latent = 4;
  uint64_t seed = 1;  // of everything but the noise
};

// kInvalidArgument, naming the number, unless a run of images of `dimensions`
// values can be: k at most `dimensions`, a budget for at least one batch.
absl::Status CheckSettings(const DataLensSettings& s, int dimensions);
// kInvalidArgument unless there is an example for every teacher.
absl::Status CheckExamples(const DataLensSettings& s, size_t examples);

// L2 sensitivity of the vote sum: one example is in one shard, and one teacher
// can turn all its k votes around.
double VoteSensitivity(const DataLensSettings& s);

// The settings on which student and teachers must agree: a line "name value"
// for each.
std::string SettingsText(const DataLensSettings& s);
// The first line in which two such texts differ, for people; empty: none.
std::string DifferenceOf(std::string_view here, std::string_view there);
// The settings as 64 bits.
uint64_t FingerprintOf(const DataLensSettings& s);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_SETTINGS_H_
