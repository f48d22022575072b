// The state of one peer at a round's boundary, in memory: taken from the
// objects that have state, or given back to them.
//
// Taking copies the state, so that it can be written elsewhere while training
// goes on.  This header knows nothing of files.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "algorithms/base/state.h"
#include "runtime/base/safetensors.h"
#include "runtime/checkpoint/deferred_copy.h"

namespace gossamer {

// Names that other programs look for in state.safetensors: the flat parameters
// and, if there is one, the moving average of the generator's.
inline constexpr std::string_view kParametersName = "parameters";
inline constexpr std::string_view kEmaName = "ema";

struct CheckpointId {
  std::string run_id;
  uint64_t peer_id = 0;
  uint64_t round = 0;  // the next round to emit
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

// Returns a view of the floats and bytes, which the checkpoint owns.
SafetensorsView ViewOf(const Checkpoint& checkpoint);

// Floats of a checkpoint that `copy` copies later: those whose names begin with
// `prefix`.
struct DeferredFloats {
  std::string_view prefix;
  DeferredCopy* copy = nullptr;  // null: none
};

// Copies all state that `visit` shows, into the memory of `spare` as far as
// that fits: pages that are new cost as much as the copy.  The deferred floats
// are whole behind DeferredCopy::Finish().  Returns kInvalidArgument for a name
// that is shown twice, empty, or not printable ASCII.
absl::StatusOr<Checkpoint> TakeCheckpoint(
    CheckpointId id, absl::FunctionRef<void(StateVisitor&)> visit,
    Checkpoint spare = {}, DeferredFloats deferred = {});

// Overwrites all state that `visit` shows.  kDataLoss names the first state
// that is missing, of another size, or in the checkpoint but not asked for.
// The state is then partly overwritten and must not be used.
absl::Status RestoreCheckpoint(const Checkpoint& checkpoint,
                               absl::FunctionRef<void(StateVisitor&)> visit);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_
