// Every decoder of bytes from outside as a function that must survive them all:
// run by libFuzzer (preset `fuzz`, run.sh) and over kept inputs by a test.

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

// What a target claims of what a decoder has let through.
inline void Require(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", claim);
  std::abort();
}

// Cuts an input into what a target needs; zeros past its end.
class Input {
 public:
  explicit Input(Bytes bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  // Whether something is left for one more step of a conversation.  The states
  // that matter are met within a few: longer ones cost executions.
  bool AnotherStep() { return !rest_.empty() && steps_++ < kMostSteps; }
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
  // As many as the next two bytes say.
  Bytes TakePiece() {
    const size_t low = Byte();
    return Take(low | static_cast<size_t>(Byte()) << 8);
  }
  Bytes Rest() { return Take(rest_.size()); }

 private:
  static constexpr int kMostSteps = 64;
  Bytes rest_;
  int steps_ = 0;
};

inline std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// Abseil's own, where it is not the standard's.
inline absl::string_view AbslText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::vector<std::byte> Copy(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

// An input is at most 4 KiB: who asks for more than this believes a number that
// it was sent.
inline constexpr size_t kSmallAllocation = 256 << 10;
// Protobuf believes the length of a text inside a message that claims to be
// longer than its input, up to this (kSafeStringSize): it reserves, never
// touches what it has reserved, and gives it back as it refuses the message.
// gRPC parses before we see a request, so no check of ours would spare it; what
// we parse ourselves goes through topology/fleet/parse_message.h.
inline constexpr size_t kProtobufReserve = 50'000'000 + 1;  // with its zero

struct Target {
  std::string_view name;
  void (*run)(Bytes);
  // The most that is asked for at once, whatever the bytes say: of the
  // decoder's own limits, as the target sets them.
  size_t largest_allocation = kSmallAllocation;
};

// By where the bytes come from.
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
std::span<const Target> RunTargets();
std::span<const Target> VoteTargets();

// libFuzzer's -malloc_limit_mb, at which it ends a target; it needs a little
// itself.
inline size_t MallocLimitMib(const Target& target) {
  return (target.largest_allocation >> 20) + 2;
}

inline std::vector<Target> AllTargets() {
  std::vector<Target> all;
  for (const auto part :
       {TransportTargets(), EdgeTargets(), CollectiveTargets(),
        GradientTargets(), PeerTargets(), ControlTargets(), ServiceTargets(),
        IdentityTargets(), TrustTargets(), FileTargets(), RunTargets(),
        VoteTargets()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace gossamer::fuzz

#endif  // GOSSAMER_TESTS_FUZZ_FUZZ_H_
