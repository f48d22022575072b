// The state of one peer at a round's boundary, in memory: taken from the things
// that have state, or given back to them.
//
// Taking copies, so that writing can go on elsewhere while training does.
// Knows nothing of files.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "algorithms/base/state.h"
#include "runtime/base/safetensors.h"

namespace gossamer {

// Names that other programs look for in state.safetensors: the flat parameters
// and, where there is one, the moving average of the generator's.
inline constexpr std::string_view kParametersName = "parameters";
inline constexpr std::string_view kEmaName = "ema";

struct CheckpointId {
  std::string run_id;
  uint64_t peer_id = 0;
  uint64_t round = 0;  // the next to emit
  uint64_t layout_fingerprint = 0;
  uint64_t configuration_hash = 0;
  friend bool operator==(const CheckpointId&, const CheckpointId&) = default;
};

struct Checkpoint {
  CheckpointId id;
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, std::vector<std::byte>> bytes;
  std::map<std::string, uint64_t> counters;
};

// Its floats and bytes, of which it is the owner.
SafetensorsView ViewOf(const Checkpoint& checkpoint);

// Copies all state that `visit` shows.  kInvalidArgument: a name shown twice,
// empty, or not printable ASCII.
absl::StatusOr<Checkpoint> TakeCheckpoint(
    CheckpointId id, absl::FunctionRef<void(StateVisitor&)> visit);

// Overwrites all state that `visit` shows.  kDataLoss names the first thing
// that is missing, of another size, or in the checkpoint but not asked for; the
// state is then partly overwritten and must not be used.
absl::Status RestoreCheckpoint(const Checkpoint& checkpoint,
                               absl::FunctionRef<void(StateVisitor&)> visit);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_
