// Moves bytes around a ring by the kernel alone, or by OpenSSL and the kernel:
// sockets to the two neighbours, everything sent and received at once.
//
// This header knows nothing of frames, of gRPC, or of time.

#ifndef GOSSAMER_TESTS_BENCHMARKS_RAW_RING_H_
#define GOSSAMER_TESTS_BENCHMARKS_RAW_RING_H_

#include <openssl/ssl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

struct RawRingOptions {
  int rank = 0;
  std::vector<std::string> hosts;  // addresses by rank, at least 3
  int port = 0;
  // Sets SO_SNDBUF and SO_RCVBUF, as far as the kernel allows; 0 leaves its own
  // tuning.
  int buffer_bytes = 0;
  // Sets TCP_CONGESTION; empty leaves the machine's.
  std::string congestion;
  // PEM files of a certificate and its key: what is sent goes through TLS 1.3,
  // where each end takes any certificate.  Empty: nothing is encrypted.
  std::string certificate, key;
};

class RawRing {
 public:
  // Connects to both neighbours; all ranks must do so at about the same time.
  static absl::StatusOr<std::unique_ptr<RawRing>> Connect(
      const RawRingOptions& options);
  ~RawRing();

  // Sends `bytes` to both neighbours.  Returns once as many have come from
  // both, and the kernel has taken all.
  absl::Status Exchange(std::span<const std::byte> bytes);

 private:
  RawRing() = default;
  absl::Status AddTls(const RawRingOptions& options);
  // Send or receive what the socket takes or has; 0: nothing now.
  absl::StatusOr<size_t> Send(size_t i, std::span<const std::byte> bytes);
  absl::StatusOr<size_t> Receive(size_t i, std::span<std::byte> bytes);

  std::array<int, 2> sockets_ = {-1, -1};  // to the right and to the left
  std::array<SSL*, 2> tls_ = {};           // null: none
  std::array<std::vector<std::byte>, 2> received_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_BENCHMARKS_RAW_RING_H_
