// The first message of a stream, each way: who speaks, to whom, in which run.
//
// Little-endian: u32 magic "GSMR", u16 newest and u16 oldest version (0: the
// same), u64 self, u64 target, u64 attempt, u32 lane, u32 length of the run id,
// the run id, u32 CRC-32C of the rest.  This stays, whatever the versions.
// Proves nothing: identity is the business of certificates.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/version_range.h"

namespace gossamer {

// Of what follows the hello: chunks, and the frames in them.
// 3 knows Channel::kNotice.
inline constexpr VersionRange kTransportVersions = {2, 3};
inline constexpr uint32_t kNoticeVersion = 3;
inline constexpr size_t kMaxHelloRunIdBytes = 128;

struct TransportHello {
  VersionRange versions = kTransportVersions;
  PeerId self;
  PeerId target;
  uint64_t attempt = 0;  // of the dialling end, counted over its life
  // 0: this stream is a connection.  Otherwise a further lane of the one whose
  // hello had this attempt.
  uint32_t lane = 0;
  std::string run_id;
};

std::vector<std::byte> EncodeHello(const TransportHello& hello);

// kDataLoss if these are not the bytes of a hello.
absl::StatusOr<TransportHello> DecodeHello(std::span<const std::byte> bytes);

// The version that both ends speak from here on.  kFailedPrecondition, with
// both sides of it, if `hello` does not come from a peer of this run that means
// to reach `self`, or there is no such version.
absl::StatusOr<uint32_t> CheckHello(const TransportHello& hello, PeerId self,
                                    const std::string& run_id,
                                    VersionRange own = kTransportVersions);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_
