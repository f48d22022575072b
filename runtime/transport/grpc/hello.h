// The first message of a stream, each way: who speaks, to whom, in which run.
//
// Little-endian: u32 magic "GSMR", u32 version, u64 self, u64 target, u64
// attempt, u32 lane, u32 length of the run id, the run id, u32 CRC-32C of the
// rest. Proves nothing: identity is the business of certificates.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/ids.h"

namespace gossamer {

inline constexpr uint32_t kTransportVersion = 2;
inline constexpr size_t kMaxRunIdBytes = 128;

struct TransportHello {
  uint32_t version = kTransportVersion;
  PeerId self;
  PeerId target;
  uint64_t attempt = 0;  // of the dialling end, counted over its life
  // 0: this stream is a connection.  Otherwise a further lane of the one whose
  // hello had this attempt.
  uint32_t lane = 0;
  std::string run_id;
};

std::vector<std::byte> EncodeHello(const TransportHello& hello);

// kDataLoss if these are not the bytes of a hello.  One of another version is
// returned with what can be read: its version.
absl::StatusOr<TransportHello> DecodeHello(std::span<const std::byte> bytes);

// kFailedPrecondition, with both sides of it, if `hello` does not come from a
// peer of this run and version that means to reach `self`.
absl::Status CheckHello(const TransportHello& hello, PeerId self,
                        const std::string& run_id);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_HELLO_H_
