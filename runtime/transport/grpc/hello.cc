#include "runtime/transport/grpc/hello.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"

namespace gossamer {
namespace {

constexpr uint32_t kMagic = 0x524d5347;  // "GSMR"
constexpr size_t kFixedBytes = 40;
constexpr size_t kCrcBytes = 4;

template <typename T>
void Append(std::vector<std::byte>& out, T value) {
  const auto* p = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), p, p + sizeof value);
}

}  // namespace

std::vector<std::byte> EncodeHello(const TransportHello& hello) {
  std::vector<std::byte> out;
  Append(out, kMagic);
  const VersionRange v = hello.versions;
  Append(out, static_cast<uint16_t>(v.newest));
  // A range of one version is written as the newest and 0, the form that
  // releases with a single version wrote.
  Append(out, static_cast<uint16_t>(v.oldest == v.newest ? 0 : v.oldest));
  Append(out, hello.self.value);
  Append(out, hello.target.value);
  Append(out, hello.attempt);
  Append(out, hello.lane);
  Append(out, static_cast<uint32_t>(hello.run_id.size()));
  for (char c : hello.run_id) Append(out, c);
  Append(out, Crc32c(out));
  return out;
}

absl::StatusOr<TransportHello> DecodeHello(std::span<const std::byte> bytes) {
  TransportHello hello;
  // The magic number comes first: a wrong program at the port is a likelier
  // cause than damage, and deserves its own message.
  if (bytes.size() < 8 || Get<uint32_t>(bytes, 0) != kMagic) {
    return absl::DataLossError(
        "what answers is not a gossamer peer: the first bytes of the stream "
        "are not those of its hello");
  }
  if (bytes.size() < kFixedBytes + kCrcBytes ||
      bytes.size() > kFixedBytes + kMaxHelloRunIdBytes + kCrcBytes) {
    return absl::DataLossError(
        absl::StrFormat("a hello has %d bytes", bytes.size()));
  }
  // The checksum comes before the fields, so that damage is not taken for
  // another version or run.
  const size_t run_bytes = Get<uint32_t>(bytes, 36);
  const size_t crc_at = bytes.size() - kCrcBytes;
  if (run_bytes != crc_at - kFixedBytes ||
      Get<uint32_t>(bytes, crc_at) != Crc32c(bytes.first(crc_at))) {
    return absl::DataLossError("a hello is damaged");
  }
  const auto newest = Get<uint16_t>(bytes, 4), oldest = Get<uint16_t>(bytes, 6);
  // An equal oldest is written as 0 (EncodeHello).
  if (newest == 0 || oldest >= newest) {
    return absl::DataLossError(
        absl::StrFormat("a hello has versions %d to %d", oldest, newest));
  }
  hello.versions = VersionRange::Stated(oldest, newest);
  hello.self = PeerId{Get<uint64_t>(bytes, 8)};
  hello.target = PeerId{Get<uint64_t>(bytes, 16)};
  hello.attempt = Get<uint64_t>(bytes, 24);
  hello.lane = Get<uint32_t>(bytes, 32);
  hello.run_id.assign(reinterpret_cast<const char*>(&bytes[kFixedBytes]),
                      run_bytes);
  return hello;
}

absl::StatusOr<uint32_t> CheckHello(const TransportHello& hello, PeerId self,
                                    const std::string& run_id,
                                    VersionRange own) {
  const std::optional<uint32_t> version = own.Agree(hello.versions);
  if (!version) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer speaks version %s of the transport, this end version %s; "
        "run releases that have one in common",
        hello.versions.Text(), own.Text()));
  }
  if (hello.run_id != run_id) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer belongs to run \"%s\", this end to run \"%s\"",
        absl::CEscape(hello.run_id), absl::CEscape(run_id)));
  }
  // A wrong list of addresses is the usual cause: without the target a peer
  // would mix with a neighbour that it takes for another.
  if (hello.target != self || hello.self == self || hello.self == PeerId{}) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "peer %d means to reach peer %d, but this is peer %d; check its list "
        "of addresses",
        hello.self.value, hello.target.value, self.value));
  }
  return *version;
}

}  // namespace gossamer
