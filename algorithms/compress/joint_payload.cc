#include "algorithms/compress/joint_payload.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

constexpr size_t kAlignment = 16;

constexpr size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

absl::Status Malformed(const char* what) {
  return absl::DataLossError(absl::StrCat(
      "joint payload ", what, "; both ends need the same mixing.codec"));
}

bool AllZero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes,
                             [](std::byte b) { return b == std::byte{0}; });
}

absl::StatusOr<PartPayloads> SplitJoint(const Codec& codec,
                                        const Encoded& whole) {
  if (whole.format != WireFormat::kJoint) {
    return Malformed("expected, and another format found");
  }
  const DueParts due = codec.Due(RoundOf(whole.key));
  if (due.empty()) return Malformed("in a round in which no part is due");
  const std::span<const std::byte> bytes = whole.bytes;
  size_t end = due.size();
  size_t at = Aligned(end);
  if (bytes.size() < at) return Malformed("too short for its formats");
  PartPayloads payloads;
  for (size_t i = 0; i < due.size(); ++i) {
    const auto format = static_cast<WireFormat>(bytes[i]);
    const size_t size = codec.part(due[i]).codec->EncodedSize(format);
    if (size == 0) return Malformed("with a part of an unknown format");
    if (bytes.size() - at < size) return Malformed("too short");
    if (!AllZero(bytes.subspan(end, at - end))) {
      return Malformed("with padding that is not zero");
    }
    payloads.push_back({format, bytes.subspan(at, size), whole.key});
    end = at + size;
    at = std::min(Aligned(end), bytes.size());
  }
  if (end != bytes.size()) return Malformed("too long");
  return payloads;
}

}  // namespace

absl::StatusOr<PartPayloads> SplitPayload(const Codec& codec,
                                          const Encoded& whole) {
  if (codec.joint()) return SplitJoint(codec, whole);
  return PartPayloads{whole};
}

absl::Status ValidateParts(const Codec& codec, const Encoded& whole) {
  GOSSAMER_ASSIGN_OR_RETURN(const PartPayloads payloads,
                            SplitPayload(codec, whole));
  const DueParts due = codec.Due(RoundOf(whole.key));
  for (size_t i = 0; i < due.size(); ++i) {
    GOSSAMER_RETURN_IF_ERROR(codec.part(due[i]).codec->Validate(payloads[i]));
  }
  return absl::OkStatus();
}

float MagnitudeBoundOfParts(const Codec& codec, const Encoded& whole,
                            float limit) {
  const auto payloads = SplitPayload(codec, whole);
  const DueParts due = codec.Due(RoundOf(whole.key));
  float bound = 0;
  for (size_t i = 0; i < due.size(); ++i) {
    bound = std::max(
        bound, codec.part(due[i]).codec->MagnitudeBound((*payloads)[i], limit));
  }
  return bound;
}

size_t PayloadSize(const Codec& codec, const DueParts& due,
                   const PartFormats& formats) {
  size_t size = codec.joint() ? due.size() : 0;
  for (size_t i = 0; i < due.size(); ++i) {
    size = Aligned(size) + codec.part(due[i]).codec->EncodedSize(formats[i]);
  }
  return size;
}

void EncodeParts(const Codec& codec, const DueParts& due,
                 const PartFormats& formats, DeviceSpan<const float> x,
                 DeviceSpan<float> memory, uint64_t key,
                 DeviceSpan<std::byte> out) {
  const DeviceQueue& queue = codec.queue();
  size_t at = 0;
  if (codec.joint()) {
    // The formats, and the zeros behind them.
    std::array<std::byte, Aligned(kMaxPlayers)> head = {};
    std::ranges::transform(formats, head.begin(), [](WireFormat format) {
      return static_cast<std::byte>(format);
    });
    at = Aligned(due.size());
    queue.Upload(std::span<const std::byte>(head).first(at), out.first(at));
  }
  for (size_t i = 0; i < due.size(); ++i) {
    const CodecPart part = codec.part(due[i]);
    const auto [offset, n] = part.extent;
    const size_t size = part.codec->EncodedSize(formats[i]);
    DeviceSpan<float> kept;
    if (part.codec->memory() == EdgeMemory::kShared) kept = memory;
    if (part.codec->needs_replica()) kept = memory.subspan(offset, n);
    part.codec->Encode(formats[i], x.subspan(offset, n), kept, key,
                       out.subspan(at, size));
    const size_t end = at + size;
    at = std::min(Aligned(end), out.size);
    queue.Clear(out.subspan(end, at - end));
  }
}

}  // namespace gossamer
