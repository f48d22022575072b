// A peer's state as bytes, for a peer that joins: encoded by a member, checked
// and the middle of several, for the one that joins.
//
// Knows nothing of how bytes travel.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_SNAPSHOT_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <map>
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

// Bytes of its floats and bytes, without names and counters.
size_t SizeOf(const Checkpoint& state);
// kDataLoss unless `state` has the very names and sizes of `like`.
absl::Status CheckShape(const Checkpoint& state, const Checkpoint& like);
// The middle of up to three states, float by float and counter by counter: one
// of three that lies moves no value beyond those of the two others (Yin, Chen,
// Ramchandran, Bartlett, 2018).
class StateMiddle {
 public:
  static constexpr int kMost = 3;

  // Of fewer than kMost.  kDataLoss, and nothing changes, if it is not of the
  // shape of those before.
  absl::Status Add(Checkpoint state);
  int given() const { return given_; }
  // Bytes of what is kept of them.
  size_t held() const;
  // Of three the median, of two the mean of the floats and the first one's
  // counters, of one itself; bytes are the first one's unless both others agree
  // on others.  Once, of at least one.
  Checkpoint Take();

 private:
  int given_ = 0;
  Checkpoint low_, high_;  // of two; bytes: of the first, of the second
  std::map<std::string, uint64_t> first_counters_;
};

// 32 bytes.
std::string Sha256(std::span<const std::byte> bytes);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_SNAPSHOT_H_
