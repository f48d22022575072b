#include "runtime/lab/scenario_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/spelling.h"
#include "runtime/lab/link_presets.h"
#include "runtime/lab/units.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr double kMaxDelaySeconds = 60;
constexpr double kMaxTimeSeconds = 1e7;

constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

class Checker {
 public:
  // `config` outlives this.
  Checker(const ScenarioConfig& config,
          const std::vector<Scenario::Host>& hosts);

  void CheckLink(int index);
  Problems TakeProblems() { return std::move(problems_); }

 private:
  template <typename... Parts>
  void Refuse(const std::string& field, const Parts&... what) {
    problems_.Refuse(field, what...);
  }
  template <typename T>
  bool Take(const std::string& field, const absl::StatusOr<T>& parsed) {
    if (!parsed.ok()) Refuse(field, parsed.status().message());
    return parsed.ok();
  }
  void CheckName(const std::string& field, const std::string& name);
  void CheckEnds(const LinkConfig& link, const std::string& at);
  void CheckShare(const std::string& field, double share);
  void CheckDelays(const LinkConfig& link, const std::string& at);
  // `config` is a LinkConfig or a DirectionConfig.
  template <typename Config>
  void CheckValues(const Config& config, const std::string& at);
  void CheckOutages(const LinkConfig& link, const std::string& at);

  const ScenarioConfig& config_;
  std::set<std::string> hosts_;
  std::set<std::string> regions_;
  std::map<std::pair<std::string, std::string>, int> seen_;
  Problems problems_;
};

Checker::Checker(const ScenarioConfig& config,
                 const std::vector<Scenario::Host>& hosts)
    : config_(config) {
  for (const Scenario::Host& h : hosts) hosts_.insert(h.name);
  for (const RegionConfig& r : config.region()) regions_.insert(r.name());
}

void Checker::CheckName(const std::string& field, const std::string& name) {
  if (hosts_.contains(name) || regions_.contains(name)) return;
  std::vector<std::string_view> known(regions_.begin(), regions_.end());
  known.insert(known.end(), hosts_.begin(), hosts_.end());
  Refuse(field, absl::StrCat("is \"", name, "\", neither a host nor a region; ",
                             Suggestion(name, known)));
}

void Checker::CheckEnds(const LinkConfig& link, const std::string& at) {
  if (link.has_b() && !link.has_a()) {
    Refuse(at + ".b", "needs an a: a alone means all links of that one");
    return;
  }
  if (link.has_a()) CheckName(at + ".a", link.a());
  if (link.has_b()) CheckName(at + ".b", link.b());
  if (link.has_b() && link.a() == link.b() && hosts_.contains(link.a())) {
    Refuse(at + ".b",
           absl::StrCat("is \"", link.b(),
                        "\", as a is; a host has no link to itself"));
  }
  const bool directed = link.has_a_to_b() || link.has_b_to_a();
  const bool has_direction =
      link.has_b() ? link.a() != link.b() : hosts_.contains(link.a());
  if (directed && !has_direction) {
    Refuse(at + (link.has_a_to_b() ? ".a_to_b" : ".b_to_a"),
           "needs to know which way is which: give a and b that differ, or one "
           "host as a");
  }
  // A link holds for both directions, so the order of its ends makes no other
  // pair.
  const auto ends = std::minmax(link.a(), link.b());
  const auto [it, fresh] = seen_.emplace(ends, 0);
  if (!fresh) {
    Refuse(at, absl::StrCat("is for the same pair as an earlier link: put all "
                            "of it in one"));
  }
}

void Checker::CheckShare(const std::string& field, double share) {
  if (share >= 0 && share <= 1) return;  // false for NaN
  Refuse(field, absl::StrCat("is ", share,
                             "; a probability lies between 0 and 1 (1 % is "
                             "0.01)"));
}

template <typename Config>
void Checker::CheckValues(const Config& config, const std::string& at) {
  if (config.has_delay()) {
    Take(at + ".delay", ParseNanos(config.delay(), kMaxDelaySeconds));
  }
  if (config.has_rate()) Take(at + ".rate", ParseRate(config.rate()));
  if (config.has_jitter()) {
    Take(at + ".jitter", ParseNanos(config.jitter(), kMaxDelaySeconds));
  }
  if (config.has_loss()) CheckShare(at + ".loss", config.loss());
  if (config.has_loss_burst() &&
      !(config.loss_burst() >= 1 && config.loss_burst() <= 1e6)) {
    Refuse(at + ".loss_burst",
           absl::StrCat("is ", config.loss_burst(),
                        "; it is a number of packets, from 1 on"));
  }
  if (config.has_reorder()) CheckShare(at + ".reorder", config.reorder());
  if (config.has_reorder_delay()) {
    Take(at + ".reorder_delay",
         ParseNanos(config.reorder_delay(), kMaxDelaySeconds));
  }
  if (config.has_queue()) Take(at + ".queue", ParseQueueSize(config.queue()));
}

void Checker::CheckDelays(const LinkConfig& link, const std::string& at) {
  if (!link.has_rtt()) return;
  Take(at + ".rtt", ParseNanos(link.rtt(), 2 * kMaxDelaySeconds));
  if (link.has_delay() || link.a_to_b().has_delay() ||
      link.b_to_a().has_delay()) {
    Refuse(at + ".rtt",
           "and delay say the same thing twice; delay is one way, "
           "rtt there and back: leave one out");
  }
}

void Checker::CheckOutages(const LinkConfig& link, const std::string& at) {
  std::vector<std::pair<int64_t, int64_t>> windows;
  for (int i = 0; i < link.outage_size(); ++i) {
    const OutageConfig& outage = link.outage(i);
    const std::string field = absl::StrCat(at, ".outage[", i, "]");
    if (!outage.has_from() || !outage.has_to()) {
      Refuse(field, "needs from and to, such as from: \"10s\" to: \"12s\"");
      continue;
    }
    const auto from = ParseNanos(outage.from(), kMaxTimeSeconds);
    const auto to = ParseNanos(outage.to(), kMaxTimeSeconds);
    const bool from_ok = Take(field + ".from", from);
    if (!Take(field + ".to", to) || !from_ok) continue;
    if (*to <= *from) {
      Refuse(field + ".to",
             absl::StrCat("is \"", outage.to(), "\", not after from"));
      continue;
    }
    if (outage.has_every()) {
      const auto every = ParseNanos(outage.every(), kMaxTimeSeconds);
      if (!Take(field + ".every", every)) continue;
      if (*every <= *to - *from) {
        Refuse(field + ".every",
               absl::StrCat("is \"", outage.every(),
                            "\", so the link would never be up: it must be "
                            "longer than the outage"));
      }
      if (link.outage_size() > 1) {
        Refuse(field + ".every",
               "is set, so this must be the link's only outage");
      }
    }
    windows.emplace_back(*from, *to);
  }
  // The windows are sorted by their beginnings, so only neighbours can overlap.
  std::sort(windows.begin(), windows.end());
  for (size_t i = 1; i < windows.size(); ++i) {
    if (windows[i].first >= windows[i - 1].second) continue;
    Refuse(at + ".outage",
           absl::StrCat("has two that overlap, at ",
                        MillisText(windows[i].first), ": make them one"));
  }
}

void Checker::CheckLink(int index) {
  const LinkConfig& link = config_.link(index);
  const std::string at = absl::StrCat("link[", index, "]");
  // All checks run, so that a person sees every error of a file at once.
  CheckEnds(link, at);
  if (link.has_like() && FindLinkPreset(link.like()) == nullptr) {
    std::vector<std::string_view> known;
    for (const LinkPreset& preset : kLinkPresets) known.push_back(preset.name);
    Refuse(at + ".like",
           absl::StrCat("is \"", link.like(), "\", no link preset; ",
                        Suggestion(link.like(), known)));
  }
  CheckDelays(link, at);
  CheckValues(link, at);
  CheckValues(link.a_to_b(), at + ".a_to_b");
  CheckValues(link.b_to_a(), at + ".b_to_a");
  CheckOutages(link, at);
}

std::string TooMany(uint64_t hosts) {
  return absl::StrCat("makes ", hosts, " hosts; there can be 2 to ", kMaxPeers);
}

}  // namespace

Problems FindHostProblems(const ScenarioConfig& config) {
  Problems problems;
  uint64_t total = 0;
  std::set<std::string> names;
  for (int i = 0; i < config.region_size(); ++i) {
    const RegionConfig& region = config.region(i);
    const std::string at = absl::StrCat("region[", i, "]");
    const std::string& name = region.name();
    if (name.empty() || name.size() > 40 ||
        name.find_first_not_of(kNameLetters) != std::string::npos) {
      problems.Refuse(at + ".name", "is \"", name,
                      "\"; a region's name is 1 to 40 letters, digits and _-");
    } else if (!names.insert(name).second) {
      problems.Refuse(at + ".name", "is \"", name, "\" a second time");
    }
    problems.Range(at + ".hosts", uint64_t{region.hosts()}, uint64_t{1},
                   uint64_t{kMaxPeers});
    total += region.hosts();
  }
  if (config.region_size() > 0 && config.has_hosts()) {
    problems.Refuse("hosts",
                    "and regions cannot both be: regions say how many hosts "
                    "each has");
  } else if (config.has_hosts() &&
             (config.hosts() < 2 || config.hosts() > kMaxPeers)) {
    problems.Refuse("hosts", TooMany(config.hosts()));
  }
  // A sum of wrong numbers would only repeat the error.
  if (problems.empty() && config.region_size() > 0 &&
      (total < 2 || total > kMaxPeers)) {
    problems.Refuse("region", TooMany(total));
  }
  // Hosts of a region are named by number, so "paris-0" is the first host of
  // "paris".
  for (int i = 0; i < config.region_size(); ++i) {
    for (uint32_t k = 0; problems.empty() && k < config.region(i).hosts();
         ++k) {
      const std::string host = absl::StrCat(config.region(i).name(), "-", k);
      if (!names.contains(host)) continue;
      problems.Refuse(absl::StrCat("region[", i, "].name"), "makes a host \"",
                      host, "\", which is also a region");
    }
  }
  return problems;
}

Problems FindLinkProblems(const ScenarioConfig& config,
                          const std::vector<Scenario::Host>& hosts) {
  Checker check(config, hosts);
  for (int i = 0; i < config.link_size(); ++i) check.CheckLink(i);
  Problems problems = check.TakeProblems();
  const auto check_uplink = [&](const std::string& field,
                                const std::string& text) {
    const auto rate = ParseRate(text);
    if (!rate.ok()) problems.Refuse(field, rate.status().message());
  };
  check_uplink("uplink", config.uplink());
  for (int i = 0; i < config.region_size(); ++i) {
    if (!config.region(i).has_uplink()) continue;
    check_uplink(absl::StrCat("region[", i, "].uplink"),
                 config.region(i).uplink());
  }
  problems.Range("mtu", config.mtu(), uint32_t{576}, uint32_t{65'000});
  static constexpr std::string_view kTcp[] = {"wan", "stock"};
  problems.OneOf("tcp", config.tcp(), kTcp);
  return problems;
}

}  // namespace gossamer
