// Scenarios as `gossamer lab --show` prints them.

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/lab/scenario.h"
#include "runtime/lab/units.h"

namespace gossamer {
namespace {

using Value = std::function<std::string(size_t from, size_t to)>;

std::string Millis(Nanos nanos) {
  return absl::StrFormat("%.6g", static_cast<double>(nanos) * 1e-6);
}

std::string RateNumber(uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return "-";
  return absl::StrFormat("%.6g", static_cast<double>(bytes_per_second) * 8e-6);
}

// Returns a table whose rows send to its columns.
std::string Matrix(const std::string& title, const Scenario& scenario,
                   const Value& value) {
  const size_t n = scenario.hosts.size();
  // The widest cell sets the width of all, so that columns stand below their
  // numbers.
  size_t name_width = 0, width = 6;
  for (size_t i = 0; i < n; ++i) {
    name_width = std::max(name_width, scenario.hosts[i].name.size());
    for (size_t j = 0; j < n; ++j) {
      if (i != j) width = std::max(width, value(i, j).size());
    }
  }
  std::string out = absl::StrCat("\n", title, "\n");
  absl::StrAppend(&out, std::string(name_width + 4, ' '));
  for (size_t j = 0; j < n; ++j) absl::StrAppendFormat(&out, " %*d", width, j);
  for (size_t i = 0; i < n; ++i) {
    absl::StrAppendFormat(&out, "\n%3d %-*s", i, name_width,
                          scenario.hosts[i].name);
    for (size_t j = 0; j < n; ++j) {
      absl::StrAppendFormat(&out, " %*s", width, i == j ? "" : value(i, j));
    }
  }
  return out + "\n";
}

bool Any(const Scenario& scenario,
         const std::function<bool(const LinkSpec&)>& has) {
  for (size_t i = 0; i < scenario.hosts.size(); ++i) {
    for (size_t j = 0; j < scenario.hosts.size(); ++j) {
      if (i != j && has(scenario.links.At(i, j))) return true;
    }
  }
  return false;
}

nlohmann::ordered_json BitsOrNull(uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return {};
  return 8 * bytes_per_second;
}

std::string OutageLines(const Scenario& scenario) {
  std::string out;
  for (size_t i = 0; i < scenario.hosts.size(); ++i) {
    for (size_t j = i + 1; j < scenario.hosts.size(); ++j) {
      for (const Outage& o : scenario.links.At(i, j).outages) {
        absl::StrAppendFormat(&out, "  %s and %s: from %.6g s to %.6g s",
                              scenario.hosts[i].name, scenario.hosts[j].name,
                              static_cast<double>(o.from) * 1e-9,
                              static_cast<double>(o.to) * 1e-9);
        if (o.every > 0) {
          absl::StrAppendFormat(&out, ", every %.6g s",
                                static_cast<double>(o.every) * 1e-9);
        }
        absl::StrAppend(&out, "\n");
      }
    }
  }
  return out;
}

}  // namespace

std::string ScenarioText(const Scenario& scenario) {
  const auto& links = scenario.links;
  std::string out =
      absl::StrFormat("%s: %d hosts, %s to %s, MTU %d, TCP %s\n", scenario.name,
                      scenario.hosts.size(), LabAddress(0),
                      LabAddress(scenario.hosts.size() - 1), scenario.mtu,
                      scenario.stock_tcp ? "stock" : "wan");
  absl::StrAppend(
      &out, Matrix("RTT without queues, ms", scenario, [&](size_t i, size_t j) {
        return Millis(links.At(i, j).delay + links.At(j, i).delay);
      }));
  absl::StrAppend(
      &out, Matrix("rate from row to column, Mbit/s (-: unlimited)", scenario,
                   [&](size_t i, size_t j) {
                     return RateNumber(links.At(i, j).bytes_per_second);
                   }));
  if (Any(scenario, [](const LinkSpec& s) { return s.jitter > 0; })) {
    absl::StrAppend(&out, Matrix("jitter from row to column, up to ms",
                                 scenario, [&](size_t i, size_t j) {
                                   return Millis(links.At(i, j).jitter);
                                 }));
  }
  if (Any(scenario, [](const LinkSpec& s) { return s.loss > 0; })) {
    absl::StrAppend(&out, Matrix("packets lost from row to column, %", scenario,
                                 [&](size_t i, size_t j) {
                                   return absl::StrFormat(
                                       "%.4g", 100 * links.At(i, j).loss);
                                 }));
  }
  if (Any(scenario, [](const LinkSpec& s) { return s.loss_burst > 1; })) {
    absl::StrAppend(&out, Matrix("packets in a row that are lost, mean",
                                 scenario, [&](size_t i, size_t j) {
                                   return absl::StrFormat(
                                       "%.4g", links.At(i, j).loss_burst);
                                 }));
  }
  if (Any(scenario, [](const LinkSpec& s) { return s.reorder > 0; })) {
    absl::StrAppend(&out, Matrix("packets that others overtake, %", scenario,
                                 [&](size_t i, size_t j) {
                                   return absl::StrFormat(
                                       "%.4g", 100 * links.At(i, j).reorder);
                                 }));
  }
  std::string uplinks;
  for (const Scenario::Host& host : scenario.hosts) {
    if (host.uplink == 0) continue;
    absl::StrAppendFormat(&uplinks, "  %s: %s to all others together\n",
                          host.name, RateText(host.uplink));
  }
  if (!uplinks.empty()) absl::StrAppend(&out, "\nuplinks\n", uplinks);
  const std::string outages = OutageLines(scenario);
  if (!outages.empty()) absl::StrAppend(&out, "\noutages\n", outages);
  return out;
}

namespace {

// The first host of each kind.
std::vector<size_t> FirstOfKinds(const Scenario& scenario) {
  std::vector<size_t> firsts;
  for (size_t i = 0; i < scenario.hosts.size(); ++i) {
    if (scenario.links.KindOf(i) == firsts.size()) firsts.push_back(i);
  }
  return firsts;
}

nlohmann::ordered_json LinkJson(const LinkSpec& s) {
  nlohmann::ordered_json link = {
      {"delay_ms", static_cast<double>(s.delay) * 1e-6},
      {"bits_per_second", BitsOrNull(s.bytes_per_second)},
      {"jitter_ms", static_cast<double>(s.jitter) * 1e-6},
      {"loss", s.loss},
      {"loss_burst", s.loss_burst},
      {"reorder", s.reorder},
      {"reorder_delay_ms", static_cast<double>(s.reorder_delay) * 1e-6},
      {"queue_bytes", s.queue_bytes},
      {"outages", nlohmann::ordered_json::array()}};
  for (const Outage& o : s.outages) {
    link["outages"].push_back(
        {{"from_s", static_cast<double>(o.from) * 1e-9},
         {"to_s", static_cast<double>(o.to) * 1e-9},
         {"every_s", static_cast<double>(o.every) * 1e-9}});
  }
  return link;
}

}  // namespace

std::string ScenarioJson(const Scenario& scenario) {
  nlohmann::ordered_json json = {{"name", scenario.name},
                                 {"seed", scenario.seed},
                                 {"mtu", scenario.mtu},
                                 {"tcp", scenario.stock_tcp ? "stock" : "wan"},
                                 {"hosts", nlohmann::ordered_json::array()},
                                 {"links", nlohmann::ordered_json::array()}};
  const size_t hosts = scenario.hosts.size();
  const bool whole = hosts <= kMaxLabHosts;
  std::vector<size_t> shown = FirstOfKinds(scenario);
  if (whole) {
    shown.resize(hosts);
    std::iota(shown.begin(), shown.end(), 0);
  } else {
    json["hosts_in_all"] = hosts;
  }
  for (const size_t i : shown) {
    json["hosts"].push_back(
        {{"rank", i},
         {"name", scenario.hosts[i].name},
         {"region", scenario.hosts[i].region},
         {"address", whole ? LabAddress(i) : ""},
         {"uplink_bits_per_second", BitsOrNull(scenario.hosts[i].uplink)}});
    for (const size_t j : shown) {
      // Of a kind with several hosts the link between two of them counts.
      if (i == j && whole) continue;
      nlohmann::ordered_json link = {{"from", i}, {"to", j}};
      link.update(LinkJson(scenario.links.At(i, j)));
      json["links"].push_back(std::move(link));
    }
  }
  return json.dump(2);
}

}  // namespace gossamer
