#include "runtime/checkpoint/snapshot.h"

#include <openssl/evp.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/little_endian.h"

namespace gossamer {
namespace {

// An entry: kind u8, name length u16, name, value length u64 in bytes, value.
enum class Kind : uint8_t { kFloats = 1, kBytes = 2, kCounter = 3 };
constexpr size_t kFixed = 1 + 2 + 8;

void Append(Kind kind, const std::string& name, const void* data, size_t size,
            std::vector<std::byte>& out) {
  const size_t at = out.size();
  out.resize(at + kFixed + name.size() + size);
  const std::span<std::byte> entry = std::span(out).subspan(at);
  Put(entry, 0, static_cast<uint8_t>(kind));
  Put(entry, 1, static_cast<uint16_t>(name.size()));
  std::memcpy(entry.data() + 3, name.data(), name.size());
  Put(entry, 3 + name.size(), static_cast<uint64_t>(size));
  if (size > 0) std::memcpy(entry.data() + kFixed + name.size(), data, size);
}

absl::Status Damaged(const char* what) {
  return absl::DataLossError(absl::StrCat("a snapshot ", what));
}

// Reads one entry and moves `bytes` past it.
absl::Status ReadEntry(std::span<const std::byte>& bytes, Checkpoint& state) {
  if (bytes.size() < kFixed) return Damaged("ends within an entry");
  const auto kind = static_cast<Kind>(Get<uint8_t>(bytes, 0));
  const size_t length = Get<uint16_t>(bytes, 1);
  if (bytes.size() < kFixed + length) return Damaged("ends within a name");
  const std::string name(reinterpret_cast<const char*>(bytes.data() + 3),
                         length);
  const auto size = Get<uint64_t>(bytes, 3 + length);
  bytes = bytes.subspan(kFixed + length);
  if (size > bytes.size()) return Damaged("ends within a value");
  const std::span<const std::byte> value = bytes.first(size);
  bytes = bytes.subspan(size);
  switch (kind) {
    case Kind::kFloats: {
      if (size % sizeof(float) != 0) return Damaged("has part of a number");
      std::vector<float>& floats = state.floats[name];
      floats.resize(size / sizeof(float));
      if (size > 0) std::memcpy(floats.data(), value.data(), size);
      return absl::OkStatus();
    }
    case Kind::kBytes:
      state.bytes[name].assign(value.begin(), value.end());
      return absl::OkStatus();
    case Kind::kCounter:
      if (size != sizeof(uint64_t)) return Damaged("has part of a counter");
      state.counters[name] = Get<uint64_t>(value, 0);
      return absl::OkStatus();
  }
  return Damaged("has an entry of no kind");
}

}  // namespace

std::vector<std::byte> EncodeSnapshot(const Checkpoint& state) {
  std::vector<std::byte> out;
  for (const auto& [name, values] : state.floats) {
    Append(Kind::kFloats, name, values.data(), values.size() * sizeof(float),
           out);
  }
  for (const auto& [name, bytes] : state.bytes) {
    Append(Kind::kBytes, name, bytes.data(), bytes.size(), out);
  }
  for (const auto& [name, count] : state.counters) {
    Append(Kind::kCounter, name, &count, sizeof count, out);
  }
  return out;
}

absl::StatusOr<Checkpoint> DecodeSnapshot(std::span<const std::byte> bytes) {
  Checkpoint state;
  while (!bytes.empty()) {
    const absl::Status read = ReadEntry(bytes, state);
    if (!read.ok()) return read;
  }
  return state;
}

absl::Status AddSnapshot(const Checkpoint& state, int before, Checkpoint& sum) {
  if (before == 0) {
    sum = state;
    return absl::OkStatus();
  }
  bool same = sum.floats.size() == state.floats.size();
  for (const auto& [name, values] : state.floats) {
    const auto it = sum.floats.find(name);
    same = same && it != sum.floats.end() && it->second.size() == values.size();
  }
  if (!same) return Damaged("is not of the shape of another member's");
  for (const auto& [name, values] : state.floats) {
    std::vector<float>& total = sum.floats.at(name);
    for (size_t i = 0; i < values.size(); ++i) total[i] += values[i];
  }
  return absl::OkStatus();
}

void DivideSnapshot(int count, Checkpoint& sum) {
  for (auto& [name, values] : sum.floats) {
    for (float& v : values) v /= static_cast<float>(count);
  }
}

std::string Sha256(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

}  // namespace gossamer
