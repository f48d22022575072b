#include "runtime/checkpoint/snapshot.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/seeded_bug.h"
#include "runtime/base/status_macros.h"

namespace gossamer {
namespace {

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("a snapshot ", what));
}

}  // namespace

std::vector<std::byte> EncodeSnapshot(const Checkpoint& state) {
  SafetensorsView view = ViewOf(state);
  for (const auto& [name, count] : state.counters) {
    view.metadata[name] = absl::StrCat(count);
  }
  // Names are those that TakeCheckpoint lets pass.
  const std::string text = *FormatSafetensors(view);
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

absl::StatusOr<Checkpoint> DecodeSnapshot(std::span<const std::byte> bytes) {
  GOSSAMER_ASSIGN_OR_RETURN(Safetensors file, ParseSafetensors(bytes));
  Checkpoint state;
  for (auto& [name, tensor] : file.floats) {
    if (!std::ranges::all_of(tensor.values,
                             [](float v) { return std::isfinite(v); })) {
      return Damaged(absl::StrCat("has a \"", name, "\" that is not finite"));
    }
    state.floats[name] = std::move(tensor.values);
  }
  state.bytes = std::move(file.bytes);
  for (const auto& [name, count] : file.metadata) {
    if (!absl::SimpleAtoi(count, &state.counters[name])) {
      return Damaged(absl::StrCat("has a \"", name, "\" that is no count"));
    }
  }
  return state;
}

absl::Status CheckShape(const Checkpoint& state, const Checkpoint& like) {
  const auto same_name = [](const auto& a, const auto& b) {
    return a.first == b.first;
  };
  const bool same =
      std::ranges::equal(state.floats, like.floats,
                         [](const auto& a, const auto& b) {
                           return a.first == b.first &&
                                  a.second.size() == b.second.size();
                         }) &&
      std::ranges::equal(state.counters, like.counters, same_name) &&
      std::ranges::equal(state.bytes, like.bytes, same_name);
  if (same) return absl::OkStatus();
  return Damaged("is not of this run's shape: other names or sizes");
}

absl::Status AddSnapshot(const Checkpoint& state, int before, Checkpoint& sum) {
  if (before == 0) {
    sum = state;
    return absl::OkStatus();
  }
  GOSSAMER_RETURN_IF_ERROR(CheckShape(state, sum));
  for (const auto& [name, values] : state.floats) {
    const std::vector<float>& total = sum.floats.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(total[i] + values[i])) {
        return Damaged(absl::StrCat("has a \"", name,
                                    "\" that is too large to be averaged"));
      }
    }
  }
  for (const auto& [name, values] : state.floats) {
    std::vector<float>& total = sum.floats.at(name);
    for (size_t i = 0; i < values.size(); ++i) total[i] += values[i];
  }
  return absl::OkStatus();
}

void DivideSnapshot(int count, Checkpoint& sum) {
  for (auto& [name, values] : sum.floats) {
    if (SeededBug("sum-of-states")) continue;
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
