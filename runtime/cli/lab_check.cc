#include "runtime/cli/lab_check.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/lab/link_meter.h"
#include "runtime/lab/units.h"

namespace gossamer {
namespace {

// So many are enough for a median beside jitter.
constexpr int kPings = 20;
// Answers may be late by this much beyond the links' own delay, since the
// machine may be busy.
constexpr absl::Duration kAnswerTimeout = absl::Seconds(3);
// A link shows its full rate only when it has a queue, so the meter sends more
// than the rate.
constexpr double kOverdrive = 1.2;
// The bytes of a measurement: some forty packets on a slow link, bounded by
// time on a fast one.
constexpr double kPacketsForRate = 40 * 1500;

struct PairResult {
  size_t from, to;
  double asked_rtt_ms;
  double jitter_ms;  // the mean of both directions
  RoundTrips trips;
  double rate_there, rate_back;  // measured, bytes a second; 0: not measured

  // A link adds a delay between 0 and its jitter to each packet, so a round
  // trip takes longer by half of both on average.
  double RttError() const { return trips.median_ms - asked_rtt_ms - jitter_ms; }
};

// Returns nothing without an answer or without a demanded rate.
std::optional<double> RateError(double measured, uint64_t asked) {
  if (asked == 0 || measured == 0) return std::nullopt;
  return measured / static_cast<double>(asked) - 1;
}

// A link without a limit has no rate to compare with.
double MeasureRate(LinkMeter& meter, const Scenario& scenario, size_t from,
                   size_t to) {
  const LinkSpec& link = scenario.links.At(from, to);
  if (link.bytes_per_second == 0) return 0;
  const auto rate = static_cast<double>(link.bytes_per_second);
  const double seconds = std::clamp(kPacketsForRate / rate, 0.5, 5.0);
  return meter.MeasureRate(
      from, to, kOverdrive * rate, absl::Seconds(seconds),
      // Packets that are still in the link's queue count, so the meter waits
      // for the last one.
      kAnswerTimeout + absl::Nanoseconds(link.delay + link.jitter));
}

PairResult MeasurePair(LinkMeter& meter, const Scenario& scenario, size_t from,
                       size_t to) {
  const LinkSpec& there = scenario.links.At(from, to);
  const LinkSpec& back = scenario.links.At(to, from);
  const Nanos rtt = there.delay + back.delay;
  PairResult result = {};
  result.from = from;
  result.to = to;
  result.asked_rtt_ms = static_cast<double>(rtt) * 1e-6;
  result.jitter_ms = static_cast<double>(there.jitter + back.jitter) * 0.5e-6;
  result.trips = meter.MeasureRoundTrips(
      from, to, kPings,
      absl::Nanoseconds(rtt + there.jitter + back.jitter) + kAnswerTimeout);
  result.rate_there = MeasureRate(meter, scenario, from, to);
  result.rate_back = MeasureRate(meter, scenario, to, from);
  return result;
}

std::string RateCell(double measured, uint64_t asked) {
  if (asked == 0) return "unlimited";
  if (measured == 0) return "nothing arrived";
  const std::optional<double> error = RateError(measured, asked);
  const std::string rate =
      RateText(static_cast<uint64_t>(std::llround(measured)));
  return absl::StrFormat("%s (%+.2f %%)", rate, 100 * *error);
}

void PrintPair(const PairResult& r, const Scenario& scenario) {
  const RoundTrips& t = r.trips;
  absl::PrintF(
      "%-16s %-16s %9.3f %9.3f %+8.3f %+8.3f %4d/%d  %-24s %s\n",
      scenario.hosts[r.from].name, scenario.hosts[r.to].name, r.asked_rtt_ms,
      t.median_ms, r.RttError(), t.max_ms - r.asked_rtt_ms, t.answered, t.sent,
      RateCell(r.rate_there, scenario.links.At(r.from, r.to).bytes_per_second),
      RateCell(r.rate_back, scenario.links.At(r.to, r.from).bytes_per_second));
  // People watch the lines come.
  std::fflush(stdout);
}

nlohmann::ordered_json RateJson(double measured) {
  return measured == 0 ? nlohmann::ordered_json()
                       : nlohmann::ordered_json(8 * measured);
}

void PrintJson(const std::vector<PairResult>& results,
               const Scenario& scenario) {
  const auto asked = [&](size_t i, size_t j) {
    const uint64_t rate = scenario.links.At(i, j).bytes_per_second;
    return RateJson(static_cast<double>(rate));
  };
  nlohmann::ordered_json json = {{"pairs", nlohmann::ordered_json::array()}};
  for (const PairResult& r : results) {
    json["pairs"].push_back(
        {{"from", r.from},
         {"to", r.to},
         {"rtt_ms", r.asked_rtt_ms},
         {"least_ms", r.trips.min_ms},
         {"median_ms", r.trips.median_ms},
         {"most_ms", r.trips.max_ms},
         {"sent", r.trips.sent},
         {"answered", r.trips.answered},
         {"bits_per_second", asked(r.from, r.to)},
         {"measured_bits_per_second", RateJson(r.rate_there)},
         {"back_bits_per_second", asked(r.to, r.from)},
         {"back_measured_bits_per_second", RateJson(r.rate_back)}});
  }
  std::cout << json.dump(2) << "\n";
}

void PrintWorst(const std::vector<PairResult>& results,
                const Scenario& scenario) {
  double delay = 0, rate = 0;
  for (const PairResult& r : results) {
    if (r.trips.answered > 0) {
      delay = std::max(delay, std::abs(r.RttError()));
    }
    for (const auto& error :
         {RateError(r.rate_there,
                    scenario.links.At(r.from, r.to).bytes_per_second),
          RateError(r.rate_back,
                    scenario.links.At(r.to, r.from).bytes_per_second)}) {
      if (error) rate = std::max(rate, std::abs(*error));
    }
  }
  absl::PrintF(
      "\nworst error of a median round trip %.3f ms, of a rate %.2f %%\n"
      "(error: of the median, beside RTT and average jitter; worst: of the "
      "longest, beside the\nRTT alone.  Rates are measured with UDP; above "
      "1 Gbit/s that may be what limits them)\n",
      delay, 100 * rate);
}

}  // namespace

absl::Status CheckLab(const Lab& lab, const Scenario& scenario,
                      SignalWaiter& signals, bool json) {
  GOSSAMER_ASSIGN_OR_RETURN(LinkMeter meter, LinkMeter::Make(lab));
  if (!json) {
    absl::PrintF("%-16s %-16s %9s %9s %8s %8s %7s  %-24s %s\n", "from", "to",
                 "RTT ms", "median", "error", "worst", "answers", "rate there",
                 "rate back");
  }
  std::vector<PairResult> results;
  for (size_t i = 0; i < lab.hosts(); ++i) {
    for (size_t j = i + 1; j < lab.hosts(); ++j) {
      // A pair takes up to seconds, so a signal is looked for between two.
      if (signals.Wait(absl::ZeroDuration())) {
        return absl::AbortedError("stopped by a signal");
      }
      results.push_back(MeasurePair(meter, scenario, i, j));
      const PairResult& r = results.back();
      if (!json) PrintPair(r, scenario);
      if (r.trips.answered == 0 && scenario.links.At(i, j).loss == 0 &&
          scenario.links.At(j, i).loss == 0) {
        return absl::InternalError(absl::StrCat(
            scenario.hosts[i].name, " and ", scenario.hosts[j].name,
            " do not reach each other; this machine's firewall may drop what "
            "its namespaces send"));
      }
    }
  }
  if (json) {
    PrintJson(results, scenario);
  } else {
    PrintWorst(results, scenario);
  }
  return absl::OkStatus();
}

}  // namespace gossamer
