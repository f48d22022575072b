#include "runtime/cli/tcp_checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/proc_file.h"
#include "runtime/telemetry/progress.h"
#include "runtime/transport/grpc/congestion.h"

namespace gossamer {
namespace {

// The bytes in flight on a link of 200 ms that carries a message of some
// megabytes.
constexpr int64_t kLongFatWindow = 16 << 20;

CheckResult Buffers(const TcpFacts& facts) {
  CheckResult r{.name = "tcp buffers",
                .why =
                    "over a long link what is in flight must fit: two "
                    "messages of some megabytes at 200 ms"};
  // The kernel doubles the size that a socket asks for.
  const int64_t send = std::max(facts.tuned_send, 2 * facts.asked_send);
  r.found = absl::StrCat(
      "up to ", HumanBytes(static_cast<double>(facts.tuned_receive)),
      " to receive, ", HumanBytes(static_cast<double>(send)), " to send");
  if (std::min(facts.tuned_receive, send) < kLongFatWindow) {
    r.level = CheckLevel::kWarn;
    r.advice =
        "only for peers far apart: sysctl -w net.ipv4.tcp_rmem=\"4096 131072 "
        "67108864\" net.ipv4.tcp_wmem=\"4096 65536 67108864\" "
        "net.core.rmem_max=16777216 net.core.wmem_max=16777216";
  }
  return r;
}

CheckResult Idle(const TcpFacts& facts) {
  CheckResult r{.name = "tcp idle",
                .why =
                    "after a pause a connection starts slowly again, which "
                    "costs round trips in every round"};
  const std::string& value = facts.slow_start_after_idle;
  r.found = absl::StrCat("tcp_slow_start_after_idle = ",
                         value.empty() ? "unknown" : value);
  if (value == "1") {
    r.level = CheckLevel::kWarn;
    r.advice =
        "only for peers far apart: sysctl -w "
        "net.ipv4.tcp_slow_start_after_idle=0";
  }
  return r;
}

// An edge has CUBIC, and BBR as long as its pauses, its losses or its window
// ask for it (congestion.h).
CheckResult Congestion(const TcpFacts& facts) {
  CheckResult r{.name = "tcp congestion"};
  const bool slow = facts.slow_start_after_idle != "0";
  r.why = absl::StrCat(
      "cubic sends a message in one burst, and starts slowly ",
      slow ? "after a pause or a loss" : "after a loss",
      "; bbr does not, and spreads every message over a part of a round trip");
  const std::string kernels =
      facts.congestion.empty() ? "unknown" : facts.congestion;
  const std::string usual = facts.may_cubic ? "cubic" : kernels;
  r.found = absl::StrCat(usual, " for edges");
  if (usual != "bbr") {
    absl::StrAppend(&r.found, facts.may_bbr ? ", bbr" : ", four connections",
                    " for those that lose packets or have too small a "
                    "window on a long link",
                    slow && facts.may_bbr
                        ? ", or pause longer than two of TCP's time-outs"
                        : "");
  }
  if (usual != kernels) {
    absl::StrAppend(&r.found, ", ", kernels, " for others");
  }
  if (!facts.may_cubic || !facts.may_bbr) {
    r.level = CheckLevel::kWarn;
    r.advice = absl::StrCat(
        "only for peers far apart: ",
        slow ? "set tcp_slow_start_after_idle (above), for pauses; " : "",
        facts.may_bbr ? "" : "modprobe tcp_bbr, and ",
        "sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno cubic bbr\"");
  }
  return r;
}

}  // namespace

TcpFacts ReadTcpFacts() {
  TcpFacts facts;
  facts.tuned_receive = LargestOfNetSysctl("ipv4/tcp_rmem");
  facts.tuned_send = LargestOfNetSysctl("ipv4/tcp_wmem");
  facts.asked_send = LargestOfNetSysctl("core/wmem_max");
  facts.slow_start_after_idle = ReadNetSysctl("ipv4/tcp_slow_start_after_idle");
  facts.congestion = ReadNetSysctl("ipv4/tcp_congestion_control");
  facts.may_cubic = KernelAllows("cubic");
  facts.may_bbr = KernelAllows("bbr");
  return facts;
}

std::vector<CheckResult> CheckTcp(const TcpFacts& facts) {
  return {Buffers(facts), Idle(facts), Congestion(facts)};
}

}  // namespace gossamer
