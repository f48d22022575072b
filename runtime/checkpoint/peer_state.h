// A peer's state as bytes for a joining peer: encoding at a member, checks and
// the median of several states at the joining peer.
//
// This header knows nothing of how bytes travel.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_PEER_STATE_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_PEER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {

// Encodes floats, bytes and counters as safetensors, without the id.
std::vector<std::byte> EncodeState(const Checkpoint& state);
// Returns kDataLoss if EncodeState did not make the bytes, or if a float is
// not finite.
absl::StatusOr<Checkpoint> DecodeState(std::span<const std::byte> bytes);

// Returns the bytes of the floats and bytes, without names and counters.
size_t SizeOf(const Checkpoint& state);
// Returns kDataLoss unless `state` has exactly the names and sizes of `like`.
absl::Status CheckShape(const Checkpoint& state, const Checkpoint& like);
// The median of up to three states, float by float and counter by counter.  One
// false state of three moves no value beyond those of the two others (Yin,
// Chen, Ramchandran, Bartlett, 2018).
class StateMedian {
 public:
  static constexpr int kMax = 3;

  // Adds a state; at most kMax.  Returns kDataLoss, and changes nothing, if
  // its shape differs from the earlier ones'.
  absl::Status Add(Checkpoint state);
  int given() const { return given_; }
  // Bytes of the states that are kept.
  size_t held() const;
  // Returns the median of three states; of two, the mean of the floats with the
  // counters of the first; of one, the state itself.  Bytes are the first
  // state's unless the two others agree on different ones.  Called once, after
  // Add.
  Checkpoint Take();

 private:
  int given_ = 0;
  // The smaller and the larger values; bytes: of the first, of the second.
  Checkpoint low_, high_;
  std::map<std::string, uint64_t> first_counters_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_PEER_STATE_H_
