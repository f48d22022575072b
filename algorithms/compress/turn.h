// Turns: which of an edge's exchanges a payload was made for, of codecs whose
// ends go on from what the last exchange left.
//
// Knows nothing of what it was.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_TURN_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_TURN_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gossamer {

// They count modulo this, which floats hold exactly.
inline constexpr uint32_t kTurns = uint32_t{1} << 24;
inline constexpr size_t kTurnBytes = 4;  // at the beginning of a payload

inline uint32_t TurnOf(std::span<const std::byte> payload) {
  uint32_t turn;
  std::memcpy(&turn, payload.data(), sizeof(turn));
  return turn;
}
inline void PutTurn(uint32_t turn, std::span<std::byte> payload) {
  std::memcpy(payload.data(), &turn, sizeof(turn));
}

// A whole number below `limit` that memory keeps as a float; 0 if it is none,
// which only a damaged checkpoint can have.
inline uint32_t Whole(float value, size_t limit) {
  return value >= 0 && value < static_cast<float>(limit)
             ? static_cast<uint32_t>(value)
             : 0;
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_TURN_H_
