#include "runtime/checkpoint/peer_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/safetensors.h"

namespace gossamer {
namespace {

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("a state ", what));
}

void Sort(std::vector<float>& low, std::vector<float>& high) {
  for (size_t i = 0; i < low.size(); ++i) {
    if (low[i] > high[i]) std::swap(low[i], high[i]);
  }
}

}  // namespace

std::vector<std::byte> EncodeState(const Checkpoint& state) {
  SafetensorsView view = ViewOf(state);
  for (const auto& [name, count] : state.counters) {
    // Counters are few and small: text in the header is enough.
    view.metadata[name] = absl::StrCat(count);
  }
  // The names passed TakeCheckpoint, so formatting cannot fail.
  const std::string text = *FormatSafetensors(view);
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

absl::StatusOr<Checkpoint> DecodeState(std::span<const std::byte> bytes) {
  GOSSAMER_ASSIGN_OR_RETURN(Safetensors file, ParseSafetensors(bytes));
  Checkpoint state;
  for (auto& [name, tensor] : file.floats) {
    // A member with spoilt parameters does not offer them, so such a value is
    // damage or a lie.
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

size_t SizeOf(const Checkpoint& state) {
  size_t bytes = 0;
  for (const auto& [name, values] : state.floats) {
    bytes += values.size() * sizeof(float);
  }
  for (const auto& [name, values] : state.bytes) bytes += values.size();
  return bytes;
}

absl::Status CheckShape(const Checkpoint& state, const Checkpoint& like) {
  const auto same_name = [](const auto& a, const auto& b) {
    return a.first == b.first;
  };
  // Maps are ordered, so equal names stand at equal places.
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

absl::Status StateMedian::Add(Checkpoint state) {
  if (given_ == 0) {
    low_ = std::move(state);
    // Of two states no counter is in the middle: the first one's are taken.
    first_counters_ = low_.counters;
    given_ = 1;
    return absl::OkStatus();
  }
  GOSSAMER_RETURN_IF_ERROR(CheckShape(state, low_));
  if (++given_ == 2) {
    high_ = std::move(state);
    // Two states are kept as the smaller and the larger of each value, so a
    // third one is only clamped between them: the median needs no third vector.
    for (auto& [name, values] : high_.floats) {
      Sort(low_.floats.at(name), values);
    }
    for (auto& [name, count] : high_.counters) {
      uint64_t& low = low_.counters.at(name);
      if (low > count) std::swap(low, count);
    }
    return absl::OkStatus();
  }
  for (const auto& [name, values] : state.floats) {
    std::vector<float>& low = low_.floats.at(name);
    const std::vector<float>& high = high_.floats.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      low[i] = std::clamp(values[i], low[i], high[i]);
    }
  }
  for (const auto& [name, count] : state.counters) {
    uint64_t& low = low_.counters.at(name);
    low = std::clamp(count, low, high_.counters.at(name));
  }
  for (auto& [name, bytes] : state.bytes) {
    // Bytes have no order: two that agree outvote the first.
    if (bytes == high_.bytes.at(name)) low_.bytes.at(name) = std::move(bytes);
  }
  return absl::OkStatus();
}

size_t StateMedian::held() const { return SizeOf(low_) + SizeOf(high_); }

Checkpoint StateMedian::Take() {
  if (given_ == 2) low_.counters = std::move(first_counters_);
  for (auto& [name, low] : low_.floats) {
    if (given_ == 1 || (given_ == 3 && !SeededBug("sum-of-states"))) break;
    const std::vector<float>& high = high_.floats.at(name);
    // The values are halved before they are added, so the sum of two large ones
    // does not overflow.
    const float part = SeededBug("sum-of-states") ? 1 : 0.5f;
    for (size_t i = 0; i < low.size(); ++i) {
      low[i] = part * low[i] + part * high[i];
    }
  }
  return std::move(low_);
}

}  // namespace gossamer
