// The three ways to run DataLens: all in this process, or a student and groups
// of teachers in processes of their own.
//
// Knows nothing of command lines.

#ifndef GOSSAMER_RUNTIME_DATALENS_RUN_H_
#define GOSSAMER_RUNTIME_DATALENS_RUN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "algorithms/privacy/settings.h"

namespace gossamer {

struct DataLensRun {
  DataLensSettings settings;
  std::string data = "data/digits/digits.csv";
  int groups = 1;      // of teachers
  uint64_t steps = 0;  // over all restarts; 0: until the budget is spent
  // For tests: a reader who knows it can remove the noise.  Without it the
  // noise is drawn from the system and kept nowhere.
  std::optional<uint64_t> noise_seed;
  std::string checkpoints;         // a folder; empty: nothing is kept
  uint64_t checkpoint_every = 10;  // steps; 0: only when stopped and at the end
  std::string samples;             // a PNG; empty: none
  double patience = 60;            // seconds
  bool json = false;
  bool quiet = false;
  // Used by student and teachers in processes of their own.
  std::string listen = "127.0.0.1:7900";
  std::string port_file;
  std::string student;
  int group = 0;
  std::string certificates;
  bool insecure = false;
};

// Trains in this process, with a thread for every group, and prints the
// results.  SIGINT and SIGTERM end each of the three in good order, after the
// step or answer under way.  With checkpoints each goes on from its last state.
absl::Status TrainHere(const DataLensRun& run);
// Runs the student alone, at run.listen, or the teachers of run.group, who dial
// run.student.
absl::Status RunStudent(const DataLensRun& run);
absl::Status RunTeachers(const DataLensRun& run);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_RUN_H_
