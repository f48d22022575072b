#include "algorithms/collective/collective_message.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"

namespace gossamer {
namespace {

constexpr uint32_t kMagic = 0x434d5347;  // "GSMC"
// The checksum covers all that is before it; the body is the transport's to
// check.
constexpr size_t kChecked = kCollectiveHeadBytes - sizeof(uint32_t);

}  // namespace

// The bytes are pinned by tests/golden/wire/collective.
std::vector<std::byte> EncodeCollectiveHead(const CollectiveHead& head) {
  std::vector<std::byte> out(kCollectiveHeadBytes);
  Put(out, 0, kMagic);
  Put(out, 4, kCollectiveVersion);
  Put(out, 8, head.operation);
  Put(out, 16, head.step);
  Put(out, 20, head.body_bytes);
  Put(out, kChecked, Crc32c(std::span(out).first(kChecked)));
  return out;
}

absl::StatusOr<CollectiveHead> DecodeCollectiveHead(
    std::span<const std::byte> bytes, size_t body_bytes) {
  if (bytes.size() < 8 || Get<uint32_t>(bytes, 0) != kMagic) {
    return absl::DataLossError("collective head does not begin with GSMC");
  }
  // Before all else that another version may have changed.
  const auto version = Get<uint32_t>(bytes, 4);
  if (version != kCollectiveVersion) {
    return absl::UnimplementedError(
        absl::StrCat("collective protocol version ", version, " there, ",
                     kCollectiveVersion, " here: update the older peer"));
  }
  if (bytes.size() != kCollectiveHeadBytes) {
    return absl::DataLossError(absl::StrCat("collective head of ", bytes.size(),
                                            " bytes, not ",
                                            kCollectiveHeadBytes));
  }
  if (Crc32c(bytes.first(kChecked)) != Get<uint32_t>(bytes, kChecked)) {
    return absl::DataLossError("collective head fails its checksum");
  }
  const CollectiveHead head = {.operation = Get<uint64_t>(bytes, 8),
                               .step = Get<uint32_t>(bytes, 16),
                               .body_bytes = Get<uint64_t>(bytes, 20)};
  // The length is in the head too, so that a body that was cut is noticed
  // whatever carries it.
  if (head.body_bytes != body_bytes) {
    return absl::DataLossError(
        absl::StrCat("collective message of ", body_bytes,
                     " bytes, its head says ", head.body_bytes));
  }
  return head;
}

}  // namespace gossamer
