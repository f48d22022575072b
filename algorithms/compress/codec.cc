#include "algorithms/compress/codec.h"

#include "algorithms/base/rng.h"

namespace gossamer {

// The draw shifts a cycle as a whole, so that each part comes once in as many
// rounds while the order differs between cycles.
int DuePart(uint64_t round, int parts) {
  const auto p = static_cast<uint64_t>(parts);
  return static_cast<int>((round + RngKey(round / p).Below(p, 0)) % p);
}

}  // namespace gossamer
