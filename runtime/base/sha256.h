// SHA-256 of bytes in memory.

#ifndef GOSSAMER_RUNTIME_BASE_SHA256_H_
#define GOSSAMER_RUNTIME_BASE_SHA256_H_

#include <cstddef>
#include <span>
#include <string>

namespace gossamer {

// Returns 32 bytes.
std::string Sha256(std::span<const std::byte> bytes);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_SHA256_H_
