// A report of the lab's network, for people and programs.
//
// This header knows nothing of what used the network.

#ifndef GOSSAMER_RUNTIME_CLI_LAB_REPORT_H_
#define GOSSAMER_RUNTIME_CLI_LAB_REPORT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "runtime/lab/packet_switch.h"

namespace gossamer {

// Returns a few lines: "network  1.2 GB in 81,231 packets; ...".
std::string NetworkText(const SwitchReport& report);

// Returns the keys seconds, cpu_seconds, real_time, mean_late_us, p99_late_us,
// worst_late_us, unroutable, refused, and links (from, to, carried, bytes,
// queue_full, outage, lost) between the `hosts`, without unused links.
nlohmann::ordered_json NetworkJson(const SwitchReport& report, size_t hosts);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_LAB_REPORT_H_
