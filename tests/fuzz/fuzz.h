// Every decoder of bytes from outside, as a function that must survive any
// bytes.
//
// libFuzzer runs the targets (preset `fuzz`, run.sh), and a test runs them over
// kept inputs.

#ifndef GOSSAMER_TESTS_FUZZ_FUZZ_H_
#define GOSSAMER_TESTS_FUZZ_FUZZ_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"

namespace gossamer::fuzz {

using Bytes = std::span<const std::byte>;

// Ends the process if a claim about a decoder's result is false.
inline void Require(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", claim);
  std::abort();
}

// Cuts an input into the parts that a target needs; past its end come zeros.
class Input {
 public:
  explicit Input(Bytes bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  // Returns whether the input has one more step of a conversation.  Interesting
  // states are reached within few steps, and longer conversations cost
  // executions.
  bool AnotherStep() { return !rest_.empty() && steps_++ < kMaxSteps; }
  uint8_t Byte() {
    const Bytes one = Take(1);
    return one.empty() ? 0 : static_cast<uint8_t>(one[0]);
  }
  uint64_t Number() {
    uint64_t number = 0;
    const Bytes eight = Take(sizeof number);
    std::memcpy(&number, eight.data(), eight.size());
    return number;
  }
  Bytes Take(size_t size) {
    const Bytes taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  // Takes as many bytes as the next two say.
  Bytes TakePiece() {
    const size_t low = Byte();
    return Take(low | static_cast<size_t>(Byte()) << 8);
  }
  Bytes Rest() { return Take(rest_.size()); }

 private:
  static constexpr int kMaxSteps = 64;
  Bytes rest_;
  int steps_ = 0;
};

inline std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// Abseil's string_view, where it differs from the standard's.
inline absl::string_view AbslText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::vector<std::byte> Copy(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

// An input is at most 4 KiB, so a decoder that allocates more than this
// believes a false number.
inline constexpr size_t kSmallAllocation = 256 << 10;
// Protobuf believes the length of a text inside a message that claims to be
// longer than its input, up to this size (kSafeStringSize).  It reserves the
// memory without touching it, and frees it as it refuses the message. gRPC
// parses a request before any check of ours; our own parsing goes through
// topology/fleet/parse_message.h.
inline constexpr size_t kProtobufReserve = 50'000'000 + 1;  // with its zero

// A decoder under test, by name.
struct Target {
  std::string_view name;
  void (*run)(Bytes);
  // The largest single allocation that is allowed, whatever the bytes say: the
  // decoder's own limits, as the target sets them.
  size_t largest_allocation = kSmallAllocation;
};

// The targets, by the source of their bytes.
std::span<const Target> TransportTargets();
std::span<const Target> EdgeTargets();
std::span<const Target> CollectiveTargets();
std::span<const Target> GradientTargets();
std::span<const Target> PeerTargets();
std::span<const Target> ControlTargets();
std::span<const Target> ServiceTargets();
std::span<const Target> IdentityTargets();
std::span<const Target> TrustTargets();
std::span<const Target> FileTargets();
std::span<const Target> PictureTargets();
std::span<const Target> RunTargets();
std::span<const Target> VoteTargets();

// Returns libFuzzer's -malloc_limit_mb for a target, with room for libFuzzer's
// own allocations.
inline size_t MallocLimitMib(const Target& target) {
  return (target.largest_allocation >> 20) + 2;
}

inline std::vector<Target> AllTargets() {
  std::vector<Target> all;
  for (const auto part :
       {TransportTargets(), EdgeTargets(), CollectiveTargets(),
        GradientTargets(), PeerTargets(), ControlTargets(), ServiceTargets(),
        IdentityTargets(), TrustTargets(), FileTargets(), PictureTargets(),
        RunTargets(), VoteTargets()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace gossamer::fuzz

#endif  // GOSSAMER_TESTS_FUZZ_FUZZ_H_
