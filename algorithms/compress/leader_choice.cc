#include "algorithms/compress/leader_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// So small a layer has no unit of its own.
constexpr float kMinScale = 0x1p-60f;

}  // namespace

LeaderChoice::LeaderChoice(const ParameterLayout& layout, size_t rate,
                           bool flat, const Kernels& kernels)
    : choice_(layout, rate, flat), kernels_(kernels) {
  size_t end = 0;
  for (const Extent& e : choice_.large()) {
    end += (e.size + rate - 1) / rate;
    ends_.push_back(end);
  }
}

void LeaderChoice::FindUnits(std::span<const float> values,
                             std::span<float> units) const {
  size_t begin = 0;
  for (const size_t end : ends_) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += std::abs(values[i]);
    const float scale =
        std::clamp(static_cast<float>(sum / static_cast<double>(end - begin)),
                   kMinScale, kMaxMagnitude);
    for (; begin < end; ++begin) {
      units[begin] = std::copysign(scale, values[begin]);
    }
  }
}

SharedBytes LeaderChoice::Pack(std::span<const uint32_t> indices,
                               std::span<const float> units,
                               std::span<const float> code) const {
  std::vector<std::byte> message(code_at() + code.size_bytes());
  choice_.Pack(indices, std::span(message).first(choice_.bytes()));
  for (size_t i = 0; i < values(); ++i) {
    if (std::signbit(units[i])) {
      message[signs_at() + i / 8] |= std::byte{1} << i % 8;
    }
  }
  size_t at = scales_at();
  for (const size_t end : ends_) {
    Put(message, std::exchange(at, at + sizeof(float)),
        std::abs(units[end - 1]));
  }
  for (const float c : code) {
    Put(message, std::exchange(at, at + sizeof(float)), c);
  }
  return SharedBytes::FromVector(std::move(message));
}

absl::Status LeaderChoice::Check(std::span<const std::byte> message,
                                 size_t code) const {
  const auto broken = [](const char* what) {
    return absl::DataLossError(absl::StrCat(
        "a leader's message ", what, "; the sender is broken or hostile"));
  };
  if (message.size() != code_at() + code * sizeof(float)) {
    return absl::DataLossError(absl::StrCat(
        "a leader's message has ", message.size(), " bytes, not ",
        code_at() + code * sizeof(float),
        "; all need the same game and gradient_codec, and the same past"));
  }
  GOSSAMER_RETURN_IF_ERROR(choice_.Check(message.first(choice_.bytes())));
  const size_t used = values() % 8;
  if (used != 0 &&
      std::to_integer<uint32_t>(message[scales_at() - 1]) >> used) {
    return broken("has signs of no values");
  }
  for (size_t l = 0; l < ends_.size(); ++l) {
    const auto scale = Get<float>(message, scales_at() + l * sizeof(float));
    if (!(scale >= kMinScale && scale <= kMaxMagnitude)) {
      return broken("has a scale that is not one");
    }
  }
  if (!kernels_.valid(Coding::kF32, code, message.subspan(code_at()))) {
    return broken("has a code that is not finite or too large");
  }
  return absl::OkStatus();
}

void LeaderChoice::Unpack(std::span<const std::byte> message,
                          std::span<uint32_t> indices, std::span<float> units,
                          std::span<float> code) const {
  choice_.Unpack(message.first(choice_.bytes()), indices);
  size_t i = 0;
  for (size_t l = 0; l < ends_.size(); ++l) {
    const auto scale = Get<float>(message, scales_at() + l * sizeof(float));
    for (; i < ends_[l]; ++i) {
      const uint32_t bits =
          std::to_integer<uint32_t>(message[signs_at() + i / 8]) >> i % 8;
      units[i] = (bits & 1) != 0 ? -scale : scale;
    }
  }
  for (size_t c = 0; c < code.size(); ++c) {
    code[c] = Get<float>(message, code_at() + c * sizeof(float));
  }
}

}  // namespace gossamer
