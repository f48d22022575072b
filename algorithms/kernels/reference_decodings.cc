#include <algorithm>
#include <cstdint>

#include "algorithms/kernels/reference_kernels.h"

namespace gossamer {

void ApplyFrom(size_t start, const CodedSpan* theirs, const CodedSpan* mine,
               float c, std::span<float> difference, std::span<float> x) {
  const bool both = theirs != nullptr && mine != nullptr;
  if (difference.empty() && !both) return;
  const size_t n = difference.empty() ? x.size() : difference.size();
  for (size_t i = start; i < n; ++i) {
    ApplyValue(theirs != nullptr ? DecodeValue(*theirs, i, n) : 0.0f,
               mine != nullptr ? DecodeValue(*mine, i, n) : 0.0f, c,
               difference.empty() ? nullptr : &difference[i],
               both ? &x[i] : nullptr);
  }
}

bool ValidTopK(Coding coding, size_t n, std::span<const std::byte> codes) {
  for (size_t start = 0; start < n; start += kChunkSize) {
    const size_t size = std::min(kChunkSize, n - start);
    const size_t kept = KeptOf(coding, size);
    for (size_t i = 0; i < kept; ++i) {
      if (!TopKCodeIsValid(&codes[CodeBytes(coding, start)], i, kept, size)) {
        return false;
      }
    }
  }
  return true;
}

bool ValidCodes(Coding coding, std::span<const std::byte> codes,
                float largest) {
  const size_t bytes = ValueBytes(coding);
  if (codes.size() % bytes != 0) return false;
  for (size_t i = 0; i < codes.size(); i += bytes) {
    if (!CodeIsValid(coding, &codes[i], largest)) return false;
  }
  return true;
}

}  // namespace gossamer
