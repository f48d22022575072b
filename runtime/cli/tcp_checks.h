// Whether the kernel's TCP suits peers far apart, and what a root could set.
//
// Judges only what it is given, and looks only where asked; changes nothing.
// Knows nothing of the transport, which helps itself as far as it may.

#ifndef GOSSAMER_RUNTIME_CLI_TCP_CHECKS_H_
#define GOSSAMER_RUNTIME_CLI_TCP_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cli/machine_checks.h"

namespace gossamer {

// In bytes; 0 where the kernel does not say.
struct TcpFacts {
  int64_t tuned_receive = 0;  // tcp_rmem, the last
  int64_t tuned_send = 0;     // tcp_wmem, the last
  int64_t asked_send = 0;     // net.core.wmem_max
  std::string slow_start_after_idle = "";
  std::string congestion = "";  // of a socket that nobody told
  // What a socket may be told by this user.
  bool may_cubic = false;
  bool may_bbr = false;
};
TcpFacts ReadTcpFacts();

// "tcp buffers", "tcp idle" and "tcp congestion".
std::vector<CheckResult> CheckTcp(const TcpFacts& facts);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_TCP_CHECKS_H_
