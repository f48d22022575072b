// The program whose power power_loss_test.py cuts.  It saves one checkpoint
// after the other and reports each, or says which one is there and whether it
// is whole.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "algorithms/base/rng.h"
#include "algorithms/base/seeded_bug.h"
#include "runtime/checkpoint/checkpoint_store.h"

namespace gossamer {
namespace {

constexpr int kKept = 2;

Checkpoint CheckpointOf(uint64_t round) {
  Checkpoint c;
  c.id = {.run_id = "power", .peer_id = 1, .round = round};
  // The size differs each time, from one block of the disk to many.
  std::vector<float>& x = c.floats["parameters"];
  x.resize(100 + 4000 * (round % 7));
  RngKey(round).FillGaussian(x);
  c.counters["round"] = round;
  return c;
}

// Saves until the disk is gone.
int Write(const std::string& folder, uint64_t from) {
  CheckpointStore store(folder, kKept);
  for (uint64_t round = from;; ++round) {
    const absl::Status saved = store.Save(CheckpointOf(round));
    if (!saved.ok()) {
      std::printf("failed: %s\n", std::string(saved.message()).c_str());
      return 0;
    }
    std::printf("saved %llu\n", static_cast<unsigned long long>(round));
    std::fflush(stdout);
  }
}

int Read(const std::string& folder) {
  const CheckpointStore store(folder, kKept);
  const absl::StatusOr<Checkpoint> newest = store.LoadNewest();
  if (!newest.ok()) {
    std::printf("none: %s\n", std::string(newest.status().message()).c_str());
    return 0;
  }
  const Checkpoint expected = CheckpointOf(newest->id.round);
  const bool same = newest->id == expected.id &&
                    newest->floats == expected.floats &&
                    newest->counters == expected.counters;
  std::printf("%s %llu\n", same ? "newest" : "wrong",
              static_cast<unsigned long long>(newest->id.round));
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
#ifdef GOSSAMER_SEEDED_BUGS
  if (const char* bug = std::getenv("GOSSAMER_BUG")) gossamer::PlantBug(bug);
#endif
  if (argc == 4 && std::strcmp(argv[1], "write") == 0) {
    return gossamer::Write(argv[2], std::strtoull(argv[3], nullptr, 10));
  }
  if (argc == 3 && std::strcmp(argv[1], "read") == 0) {
    return gossamer::Read(argv[2]);
  }
  std::fprintf(stderr,
               "usage: checkpoint_writer write FOLDER FROM | read "
               "FOLDER\n");
  return 2;
}
