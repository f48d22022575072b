// What the lab's network did, for people and programs.
//
// Knows nothing of what used it.

#ifndef GOSSAMER_RUNTIME_CLI_LAB_REPORT_H_
#define GOSSAMER_RUNTIME_CLI_LAB_REPORT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "runtime/lab/packet_switch.h"

namespace gossamer {

// A few lines: "network  1.2 GB in 81,231 packets; ...".
std::string NetworkText(const SwitchReport& report);

// Keys: seconds, cpu_seconds, real_time, mean_late_us, p99_late_us,
// worst_late_us, unroutable, refused, links (from, to, carried, bytes,
// queue_full, outage, lost) between the `hosts`, without unused ones.
nlohmann::ordered_json NetworkJson(const SwitchReport& report, size_t hosts);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_LAB_REPORT_H_
