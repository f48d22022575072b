#include "runtime/cli/lab_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/telemetry/progress.h"

namespace gossamer {

std::string NetworkText(const SwitchReport& report) {
  const LinkCounters total = report.Total();
  std::string text = absl::StrFormat(
      // Lateness is the lab's own error: how much later than the links demand
      // the switch delivered.  A run whose figures are to be believed has
      // little of it.
      "network  %s in %d packets; %d lost, %d in outages, %d from full "
      "queues\n"
      "         late by %.0f us on average, 99 %% within %.0f us, %.1f ms at "
      "worst; the switch took %.1f %% of a core\n",
      HumanBytes(static_cast<double>(total.bytes)), total.carried, total.lost,
      total.outage, total.queue_full, report.mean_late_us, report.p99_late_us,
      report.worst_late_us * 1e-3,
      report.seconds > 0 ? 100 * report.cpu_seconds / report.seconds : 0.0);
  if (report.refused > 0) {
    absl::StrAppend(&text, "         warning: ", report.refused,
                    " packets found no room on this machine\n");
  }
  // The switch asks for real-time priority and goes on without it, so a report
  // says whether it had it.
  if (!report.real_time) {
    absl::StrAppend(&text,
                    "         warning: without CAP_SYS_NICE other work on this "
                    "machine can make packets late\n");
  }
  return text;
}

nlohmann::ordered_json NetworkJson(const SwitchReport& report, size_t hosts) {
  nlohmann::ordered_json json = {{"seconds", report.seconds},
                                 {"cpu_seconds", report.cpu_seconds},
                                 {"real_time", report.real_time},
                                 {"mean_late_us", report.mean_late_us},
                                 {"p99_late_us", report.p99_late_us},
                                 {"worst_late_us", report.worst_late_us},
                                 {"unroutable", report.unroutable},
                                 {"refused", report.refused},
                                 {"links", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < hosts; ++i) {
    for (size_t j = 0; j < hosts; ++j) {
      const LinkCounters& link = report.links[i][j];
      // Most pairs of a sparse graph never speak.
      if (link.carried + link.queue_full + link.outage + link.lost == 0) {
        continue;
      }
      json["links"].push_back({{"from", i},
                               {"to", j},
                               {"carried", link.carried},
                               {"bytes", link.bytes},
                               {"queue_full", link.queue_full},
                               {"outage", link.outage},
                               {"lost", link.lost}});
    }
  }
  return json;
}

}  // namespace gossamer
