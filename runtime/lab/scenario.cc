#include "runtime/lab/scenario.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "proto/lab.pb.h"
#include "runtime/config/config_text.h"
#include "runtime/lab/link_presets.h"
#include "runtime/lab/scenario_check.h"
#include "runtime/lab/units.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr uint32_t kDefaultHosts = 4;
constexpr double kAnySeconds = 1e9;  // the ranges have been checked

// The uplinks have not been checked yet: one that cannot be read is none, and
// FindLinkProblems refuses it.
std::vector<Scenario::Host> HostsOf(const ScenarioConfig& config,
                                    uint32_t wanted) {
  std::vector<Scenario::Host> hosts;
  const auto rate = [](const std::string& text) {
    return ParseRate(text).value_or(0);
  };
  for (const RegionConfig& region : config.region()) {
    for (uint32_t k = 0; k < region.hosts(); ++k) {
      hosts.push_back(
          {absl::StrCat(region.name(), "-", k), region.name(),
           rate(region.has_uplink() ? region.uplink() : config.uplink())});
    }
  }
  if (!hosts.empty()) return hosts;
  const uint32_t count = config.has_hosts() ? config.hosts() : wanted;
  for (uint32_t k = 0; k < count; ++k) {
    hosts.push_back({absl::StrCat("host-", k), "", rate(config.uplink())});
  }
  return hosts;
}

bool Names(const std::string& end, const Scenario::Host& host) {
  return end == host.name || (!host.region.empty() && end == host.region);
}

// Returns the weight of a link's ends.  A region counts 1 and a host 3, so two
// regions (2) are less than a host (3), and that less than a host and a region
// (4).
int Specificity(const LinkConfig& link,
                const std::vector<Scenario::Host>& hosts) {
  const auto of = [&hosts](bool has, const std::string& end) {
    if (!has) return 0;
    return std::any_of(hosts.begin(), hosts.end(),
                       [&end](const auto& h) { return h.name == end; })
               ? 3
               : 1;
  };
  return of(link.has_a(), link.a()) + of(link.has_b(), link.b());
}

template <typename Config>
void ApplyValues(const Config& config, LinkSpec& spec) {
  if (config.has_delay()) spec.delay = *ParseNanos(config.delay(), kAnySeconds);
  if (config.has_rate()) spec.bytes_per_second = *ParseRate(config.rate());
  if (config.has_jitter()) {
    spec.jitter = *ParseNanos(config.jitter(), kAnySeconds);
  }
  if (config.has_loss()) spec.loss = config.loss();
  if (config.has_loss_burst()) spec.loss_burst = config.loss_burst();
  if (config.has_reorder()) spec.reorder = config.reorder();
  if (config.has_reorder_delay()) {
    spec.reorder_delay = *ParseNanos(config.reorder_delay(), kAnySeconds);
  }
  if (config.has_queue()) spec.queue_bytes = *ParseQueueSize(config.queue());
}

void ApplyLink(const LinkConfig& link, LinkSpec& spec) {
  if (const LinkPreset* const preset = FindLinkPreset(link.like())) {
    // A preset has no outages.
    std::vector<Outage> outages = std::move(spec.outages);
    spec = SpecOf(*preset);
    spec.outages = std::move(outages);
  }
  if (link.has_rtt()) spec.delay = *ParseNanos(link.rtt(), kAnySeconds) / 2;
  ApplyValues(link, spec);
  // Outages replace those of a more general link as a whole: two lists would
  // overlap.
  if (link.outage_size() == 0) return;
  spec.outages.clear();
  for (const OutageConfig& o : link.outage()) {
    spec.outages.push_back(
        {*ParseNanos(o.from(), kAnySeconds), *ParseNanos(o.to(), kAnySeconds),
         o.has_every() ? *ParseNanos(o.every(), kAnySeconds) : 0});
  }
}

LinkSpec DefaultLink() {
  LinkConfig defaults;
  FillDefaults(defaults);
  LinkSpec spec;
  ApplyLink(defaults, spec);
  return spec;
}

// Hosts that links name differ from all others; the others are told apart by
// their regions.  The first host of each kind comes with it.
std::vector<size_t> KindsOf(const ScenarioConfig& config,
                            const std::vector<Scenario::Host>& hosts,
                            std::vector<Scenario::Host>& firsts) {
  std::set<std::string> named;
  for (const LinkConfig& link : config.link()) {
    named.insert(link.a());
    named.insert(link.b());
  }
  std::map<std::pair<std::string, std::string>, size_t> kinds;
  std::vector<size_t> of;
  for (const Scenario::Host& host : hosts) {
    const bool own = named.contains(host.name);
    const auto [kind, fresh] = kinds.try_emplace(
        {own ? host.name : std::string(), host.region}, kinds.size());
    if (fresh) firsts.push_back(host);
    of.push_back(kind->second);
  }
  return of;
}

// `hosts`: one of each kind.
void ApplyToPairs(const LinkConfig& link,
                  const std::vector<Scenario::Host>& hosts, LinkMatrix& links) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    for (size_t j = 0; j < hosts.size(); ++j) {
      // Every pair comes in both orders, so each call sets only one direction.
      const Scenario::Host& from = hosts[i];
      const Scenario::Host& to = hosts[j];
      const bool forth = (!link.has_a() || Names(link.a(), from)) &&
                         (!link.has_b() || Names(link.b(), to));
      const bool back = (!link.has_a() || Names(link.a(), to)) &&
                        (!link.has_b() || Names(link.b(), from));
      if (!forth && !back) continue;
      LinkSpec& spec = links.specs()[i][j];
      ApplyLink(link, spec);
      if (forth && !back) ApplyValues(link.a_to_b(), spec);
      if (back && !forth) ApplyValues(link.b_to_a(), spec);
    }
  }
}

void ResolveLinks(const ScenarioConfig& config, Scenario& scenario) {
  std::vector<Scenario::Host> firsts;
  scenario.links =
      LinkMatrix(KindsOf(config, scenario.hosts, firsts), DefaultLink());
  std::vector<int> order(static_cast<size_t>(config.link_size()));
  std::iota(order.begin(), order.end(), 0);
  // General links come first, so that a more specific one overrides them.  The
  // sort is stable: among equals the later one in the file wins.
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
    return Specificity(config.link(x), scenario.hosts) <
           Specificity(config.link(y), scenario.hosts);
  });
  for (int index : order) {
    ApplyToPairs(config.link(index), firsts, scenario.links);
  }
}

// The two may come from different links of the file.
absl::Status CheckBursts(const Scenario& scenario, std::string_view file) {
  const auto name_of = [&scenario](size_t kind) {
    size_t host = 0;
    while (scenario.links.KindOf(host) != kind) ++host;
    return scenario.hosts[host].name;
  };
  const auto& specs = scenario.links.specs();
  for (size_t i = 0; i < specs.size(); ++i) {
    for (size_t j = 0; j < specs.size(); ++j) {
      const LinkSpec& link = specs[i][j];
      const double most = link.loss_burst / (1 + link.loss_burst);
      if (link.loss_burst <= 1 || link.loss <= most || link.loss == 1) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(file), ": ", name_of(i), " to ", name_of(j), " loses ",
          link.loss, " of its packets, ", link.loss_burst,
          " in a row: at least one packet comes through between two runs, so "
          "loss is at most ",
          most, ", or raise loss_burst"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

LinkMatrix::LinkMatrix(std::vector<size_t> kinds, const LinkSpec& link)
    : kind_of_(std::move(kinds)) {
  const size_t most =
      kind_of_.empty() ? 0 : 1 + *std::ranges::max_element(kind_of_);
  specs_.assign(most, std::vector<LinkSpec>(most, link));
}

absl::StatusOr<Scenario> ParseScenario(std::string_view text,
                                       std::string_view file,
                                       std::optional<uint32_t> hosts) {
  ScenarioConfig config;
  FieldOrigins origins;
  GOSSAMER_RETURN_IF_ERROR(ParseTextProto(text, file, config, origins));
  // Hosts are checked before any is made: their number is the file's claim.
  GOSSAMER_RETURN_IF_ERROR(AtOrigins(FindHostProblems(config), origins, file));
  const uint32_t wanted = hosts.value_or(kDefaultHosts);
  if (wanted < 1 || wanted > kMaxPeers) {
    return absl::InvalidArgumentError(absl::StrCat(
        wanted, " hosts are asked for; there can be 1 to ", kMaxPeers));
  }
  Scenario scenario;
  scenario.hosts = HostsOf(config, wanted);
  GOSSAMER_RETURN_IF_ERROR(
      AtOrigins(FindLinkProblems(config, scenario.hosts), origins, file));
  if (hosts && *hosts > scenario.hosts.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(file), ": has ", scenario.hosts.size(), " hosts, but ",
        *hosts, " are needed; give it more, or take fewer peers ",
        "(--set peers=", scenario.hosts.size(), ")"));
  }
  scenario.name = config.name();
  scenario.seed = config.seed();
  scenario.mtu = config.mtu();
  scenario.stock_tcp = config.tcp() == "stock";
  ResolveLinks(config, scenario);
  GOSSAMER_RETURN_IF_ERROR(CheckBursts(scenario, file));
  // The links are resolved for all hosts of the file first, so a name of a host
  // that is left out is no error.
  if (hosts) {
    scenario.hosts.resize(*hosts);
    scenario.links.KeepFirst(*hosts);
  }
  return scenario;
}

absl::StatusOr<Scenario> LoadScenario(const std::string& path,
                                      std::optional<uint32_t> hosts) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::string text,
      ReadConfigText(path, "a scenario",
                     "deploy/lab/ has scenarios to start from"));
  return ParseScenario(text, path, hosts);
}

// One byte is enough: kMaxLabHosts is below 254.
std::string LabAddress(size_t rank) {
  return absl::StrCat("10.77.0.", rank + 1);
}

}  // namespace gossamer
