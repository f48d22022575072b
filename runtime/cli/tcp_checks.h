// Checks whether the kernel's TCP suits peers that are far apart, and which
// settings root could improve.
//
// CheckTcp judges only its argument; neither function changes anything.  This
// header knows nothing of the transport, which tunes its sockets as far as it
// may.

#ifndef GOSSAMER_RUNTIME_CLI_TCP_CHECKS_H_
#define GOSSAMER_RUNTIME_CLI_TCP_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cli/machine_checks.h"

namespace gossamer {

// Sizes in bytes; 0 where the kernel gives none.
struct TcpFacts {
  int64_t tuned_receive = 0;  // tcp_rmem, the last number
  int64_t tuned_send = 0;     // tcp_wmem, the last number
  int64_t asked_send = 0;     // net.core.wmem_max
  std::string slow_start_after_idle = "";
  std::string congestion = "";  // the default of a socket
  // The algorithms that this user may choose for a socket.
  bool may_cubic = false;
  bool may_bbr = false;
};
TcpFacts ReadTcpFacts();

// Returns "tcp buffers", "tcp idle" and "tcp congestion".
std::vector<CheckResult> CheckTcp(const TcpFacts& facts);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_TCP_CHECKS_H_
