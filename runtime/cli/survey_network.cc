#include "runtime/cli/survey_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "topology/fleet/link_survey.h"

namespace gossamer {
namespace {

constexpr double kMillisPerSecond = 1e3;
// These lie within the bounds of a scenario (scenario_check.cc).
constexpr double kMaxMillis = 60'000;
constexpr double kMinMbit = 1e-3;
constexpr double kMaxMbit = 1e6;
// Of a link's rate, what is payload: a packet of 1500 bytes carries 1448 of TCP
// (40 bytes of IPv4 and TCP headers, 12 of timestamps).  A scenario counts
// whole packets, peers measure payload.
constexpr double kPayloadShare = 1448.0 / 1500.0;

double MbitOf(double bytes_per_second) {
  const double mbit = 8e-6 * bytes_per_second / kPayloadShare;
  // A rate beyond what a scenario takes is no limit.
  if (mbit <= 0 || mbit > kMaxMbit) return 0;
  return std::max(mbit, kMinMbit);
}

std::string RateOf(double mbit) {
  return mbit == 0 ? "unlimited" : absl::StrFormat("%.3fmbit", mbit);
}

}  // namespace

absl::StatusOr<MeasuredNetwork> NetworkOf(
    const wire::LinkSurveyStatus& status) {
  const int n = status.member_id_size();
  const auto cells = static_cast<int64_t>(n) * n;
  const std::set<uint64_t> members(status.member_id().begin(),
                                   status.member_id().end());
  // The answer is checked before any of it is used as an index.
  if (n < 2 || n > static_cast<int>(kMaxSurveyed) ||
      members.size() != static_cast<size_t>(n) ||
      status.rtt_seconds_size() != cells ||
      status.bytes_per_second_size() != cells) {
    return absl::InternalError("the service's answer is no matrix");
  }
  MeasuredNetwork network;
  network.busy_seconds = status.busy_seconds();
  std::vector<std::string> missing;
  for (int i = 0; i < n; ++i) {
    network.names.push_back(absl::StrCat("peer-", status.member_id(i)));
    std::vector<double>& rtt = network.rtt_ms.emplace_back();
    std::vector<double>& mbit = network.mbit.emplace_back();
    for (int j = 0; j < n; ++j) {
      const double there = kMillisPerSecond * status.rtt_seconds(i * n + j);
      const double back = kMillisPerSecond * status.rtt_seconds(j * n + i);
      const double rate = status.bytes_per_second(i * n + j);
      const bool measured =
          there >= 0 && there <= kMaxMillis && std::isfinite(rate);
      if (i != j && !measured) {
        missing.push_back(absl::StrCat("peer ", status.member_id(i), " to ",
                                       status.member_id(j)));
      }
      // Both ends time the same way there and back.
      rtt.push_back(i == j ? 0 : std::min(there, back));
      mbit.push_back(i == j ? 0 : MbitOf(rate));
    }
  }
  if (missing.empty()) return network;
  return absl::UnavailableError(absl::StrCat(
      "not measured: ", absl::StrJoin(missing, ", "),
      "; do these peers reach each other?  See their events.jsonl, and "
      "measure again"));
}

std::string ScenarioFileOf(const MeasuredNetwork& network) {
  std::string text =
      "# Measured by gossamer measure: round trips, and the rate that each\n"
      "# direction had left beside the fleet's own traffic.\n";
  if (network.busy_seconds > 0) {
    absl::StrAppendFormat(&text,
                          "#\n# A round without its waiting took %.3f ms.\n",
                          kMillisPerSecond * network.busy_seconds);
  }
  absl::StrAppend(&text, "#\n");
  const size_t n = network.names.size();
  for (size_t i = 0; i < n; ++i) {
    absl::StrAppend(&text, "# host-", i, " is ", network.names[i], "\n");
  }
  // Hosts of a scenario are named by number; the lines above say which peer
  // each is.
  absl::StrAppend(&text, "name: \"measured\"\nhosts: ", n, "\n");
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      absl::StrAppendFormat(
          &text,
          "link { a: \"host-%d\" b: \"host-%d\" rtt: \"%.3fms\" "
          "a_to_b { rate: \"%s\" } b_to_a { rate: \"%s\" } }\n",
          i, j, network.rtt_ms[i][j], RateOf(network.mbit[i][j]),
          RateOf(network.mbit[j][i]));
    }
  }
  return text;
}

}  // namespace gossamer
