// The first message of a stream in each direction: who speaks, to whom, in
// which run.
//
// Little-endian: u32 magic "GSMR", u16 newest and u16 oldest version (0: the
// same), u64 self, u64 target, u64 attempt, u32 lane, u32 length of the run id,
// the run id, u32 CRC-32C of the rest.  This layout is the same in all
// versions.  A hello proves nothing: certificates prove the identity.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/version_range.h"

namespace gossamer {

// The versions of what follows the hello: chunks, and the frames in them.
// Version 3 adds Channel::kNotice.
inline constexpr VersionRange kTransportVersions = {2, 3};
inline constexpr uint32_t kNoticeVersion = 3;
inline constexpr size_t kMaxHelloRunIdBytes = 128;

struct TransportHello {
  VersionRange versions = kTransportVersions;
  PeerId self;
  PeerId target;
  uint64_t attempt = 0;  // counted by the dialling end since its start
  // 0: this stream is the first of a connection.  Otherwise it is a further
  // lane of the connection whose hello had this attempt.
  uint32_t lane = 0;
  std::string run_id;
};

std::vector<std::byte> EncodeHello(const TransportHello& hello);

// Returns kDataLoss if the bytes are not those of a hello.
absl::StatusOr<TransportHello> DecodeHello(std::span<const std::byte> bytes);

// Returns the newest version that both ends speak.  Returns
// kFailedPrecondition, naming both sides, if `hello` does not come from a peer
// of this run that means to reach `self`, or if no version is common.
absl::StatusOr<uint32_t> CheckHello(const TransportHello& hello, PeerId self,
                                    const std::string& run_id,
                                    VersionRange own = kTransportVersions);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_
