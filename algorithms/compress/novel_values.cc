#include "algorithms/compress/novel_values.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

ParameterLayout OneSegment(size_t values) {
  return ParameterLayout(
      {{"values", Player::kGenerator, {static_cast<int64_t>(values)}, {}}});
}

}  // namespace

NovelValues::NovelValues(size_t values, size_t rate, size_t small,
                         const Kernels& kernels)
    : values_(values),
      small_(small),
      choice_(OneSegment(values), rate, /*flat=*/true),
      kernels_(kernels) {}

SharedBytes NovelValues::Write(std::span<const float> head,
                               std::span<float> rest,
                               std::span<const float> small) const {
  std::vector<uint32_t> indices(choice_.chosen());
  choice_.Choose(kernels_, rest, {}, indices);
  std::vector<std::byte> bytes(choice_.bytes() + sent() * sizeof(float));
  choice_.Pack(indices, std::span(bytes).first(choice_.bytes()));
  size_t at = choice_.bytes();
  const auto put = [&](float value) {
    Put(bytes, std::exchange(at, at + sizeof(float)),
        std::clamp(value, -kMaxMagnitude, kMaxMagnitude));
  };
  for (const float h : head) put(h);
  for (const uint32_t index : indices) put(std::exchange(rest[index], 0.0f));
  for (const float s : small) put(s);
  return SharedBytes::FromVector(std::move(bytes));
}

absl::StatusOr<SharedBytes> NovelValues::Accept(SharedBytes bytes) const {
  const size_t size = choice_.bytes() + sent() * sizeof(float);
  if (bytes.size() != size) {
    return absl::DataLossError(absl::StrCat(
        "an lgc payload has ", bytes.size(), " bytes, not ", size,
        "; all need the same game and gradient_codec, and the same past"));
  }
  GOSSAMER_RETURN_IF_ERROR(choice_.Check(bytes.bytes().first(choice_.bytes())));
  if (!kernels_.valid(Coding::kF32, sent(),
                      bytes.bytes().subspan(choice_.bytes()))) {
    return absl::DataLossError(
        "an lgc payload has a value that is not finite or too large; the "
        "sender is broken or hostile");
  }
  return bytes;
}

void NovelValues::Add(std::span<const std::byte> payload,
                      std::span<float> sum) const {
  std::vector<uint32_t> indices(choice_.chosen());
  choice_.Unpack(payload.first(choice_.bytes()), indices);
  size_t at = choice_.bytes();
  const auto next = [&] {
    return Get<float>(payload, std::exchange(at, at + sizeof(float)));
  };
  for (size_t i = 0; i < kHead; ++i) sum[i] += next();
  for (const uint32_t index : indices) sum[kHead + index] += next();
  for (float& s : sum.last(small_)) s += next();
}

}  // namespace gossamer
