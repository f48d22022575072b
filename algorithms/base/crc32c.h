// CRC-32C (Castagnoli; RFC 3720 appendix B.4), the checksum of everything that
// crosses a wire: finds accidents, not attacks.
//
// This header knows nothing of frames or chunks.

#ifndef GOSSAMER_ALGORITHMS_BASE_CRC32C_H_
#define GOSSAMER_ALGORITHMS_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

// The checksum of A followed by `bytes`, where `crc` is the checksum of A; 0 is
// the checksum of nothing.
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes);

inline uint32_t Crc32c(std::span<const std::byte> bytes) {
  return ExtendCrc32c(0, bytes);
}

// The two implementations behind ExtendCrc32c, for tests: tables, and the
// processor's instruction where `HasCrc32cInstruction()`.
uint32_t ExtendCrc32cWithTables(uint32_t crc, std::span<const std::byte> bytes);
bool HasCrc32cInstruction();
uint32_t ExtendCrc32cWithInstruction(uint32_t crc,
                                     std::span<const std::byte> bytes);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_CRC32C_H_
