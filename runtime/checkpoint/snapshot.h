// A peer's state as bytes, for a peer that joins: encoded by a member, checked
// and averaged by the one that joins.
//
// Knows nothing of how bytes travel.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_SNAPSHOT_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_SNAPSHOT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {

// Floats, bytes and counters as safetensors; the id stays behind.
std::vector<std::byte> EncodeSnapshot(const Checkpoint& state);
// kDataLoss if the bytes are none that EncodeSnapshot made, or have a float
// that is not finite.
absl::StatusOr<Checkpoint> DecodeSnapshot(std::span<const std::byte> bytes);

// kDataLoss unless `state` has the very names and sizes of `like`.
absl::Status CheckShape(const Checkpoint& state, const Checkpoint& like);
// sum += state, float by float; the first one gives bytes and counters.
// kDataLoss, and nothing changes, if the two are not of one shape or the sum is
// not finite.
absl::Status AddSnapshot(const Checkpoint& state, int before, Checkpoint& sum);
// sum /= count.
void DivideSnapshot(int count, Checkpoint& sum);

// 32 bytes.
std::string Sha256(std::span<const std::byte> bytes);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_SNAPSHOT_H_
