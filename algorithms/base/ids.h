// Names that every layer agrees on: who, and which exchange.
//
// This header knows nothing of addresses, ranks or views: a PeerId is for ever,
// a rank is a position in one view.

#ifndef GOSSAMER_ALGORITHMS_BASE_IDS_H_
#define GOSSAMER_ALGORITHMS_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace gossamer {

// A peer of a run, for all of its incarnations: it keeps its id over a restart.
// 0 is no peer.
struct PeerId {
  uint64_t value = 0;
  friend auto operator<=>(const PeerId&, const PeerId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, PeerId id) {
    return H::combine(std::move(h), id.value);
  }
};

// An exchange of an edge: round << 8 | phase, from round 1.  0 is none.
// Ids are compared, never enumerated (PROTOCOL.md 1).
using ExchangeId = uint64_t;

inline constexpr int kPhaseBits = 8;
inline constexpr int kMaxPhases = 1 << kPhaseBits;

constexpr ExchangeId MakeExchangeId(uint64_t round, uint32_t phase = 0) {
  return round << kPhaseBits | phase;
}
constexpr uint64_t RoundOf(ExchangeId id) { return id >> kPhaseBits; }

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_IDS_H_
