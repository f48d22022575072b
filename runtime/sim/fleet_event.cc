#include "runtime/sim/fleet_event.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/config/run_config.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr std::string_view kForms =
    "write \"30s join 1000\", \"60s lose 100\", \"90s service-down 20s\" or "
    "\"60s links ocean\"";
// A fleet of one peer mixes with nobody.
constexpr uint32_t kMinPeers = 2;

absl::Status Refuse(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("event \"", std::string(text), "\" ", std::string(why)));
}

}  // namespace

absl::StatusOr<FleetEvent> ParseFleetEvent(std::string_view text) {
  const std::vector<std::string> words =
      absl::StrSplit(std::string(text), ' ', absl::SkipEmpty());
  if (words.size() != 3) {
    return Refuse(text, absl::StrCat("is not one: ", std::string(kForms)));
  }
  FleetEvent event;
  event.text = std::string(text);
  const auto at = ParsePositiveDuration(words[0]);
  if (!at.ok()) {
    return Refuse(text, absl::StrCat("has no time: ", std::string(kForms)));
  }
  event.at = *at;
  if (words[1] == "service-down") {
    const auto down = ParsePositiveDuration(words[2]);
    if (!down.ok()) {
      return Refuse(text, absl::StrCat("does not say for how long: ",
                                       std::string(kForms)));
    }
    event.kind = FleetEvent::Kind::kServiceDown;
    event.down = *down;
    return event;
  }
  if (words[1] == "links") {
    event.kind = FleetEvent::Kind::kLinks;
    event.preset = FindLinkPreset(words[2]);
    if (event.preset != nullptr) return event;
    std::string names;
    for (const LinkPreset& preset : kLinkPresets) {
      absl::StrAppend(&names, names.empty() ? "" : ", ",
                      std::string(preset.name));
    }
    return Refuse(text,
                  absl::StrCat("is of no link preset; there are ", names));
  }
  if (words[1] != "join" && words[1] != "lose") {
    return Refuse(text, absl::StrCat("has an unknown word, \"", words[1],
                                     "\": ", std::string(kForms)));
  }
  event.kind =
      words[1] == "join" ? FleetEvent::Kind::kJoin : FleetEvent::Kind::kLose;
  if (!absl::SimpleAtoi(words[2], &event.peers) || event.peers < 1 ||
      event.peers > kMaxPeers) {
    return Refuse(
        text, absl::StrCat("is of \"", words[2], "\" peers; there can be 1 to ",
                           kMaxPeers));
  }
  return event;
}

uint32_t Joiners(const std::vector<FleetEvent>& events) {
  uint32_t joiners = 0;
  for (const FleetEvent& event : events) {
    if (event.kind == FleetEvent::Kind::kJoin) joiners += event.peers;
  }
  return joiners;
}

absl::Status CheckFleetEvents(const std::vector<FleetEvent>& events,
                              uint32_t peers, bool elastic) {
  std::vector<FleetEvent> in_order = events;
  std::ranges::stable_sort(in_order, {}, &FleetEvent::at);
  uint64_t living = peers;
  for (const FleetEvent& event : in_order) {
    if (event.kind == FleetEvent::Kind::kServiceDown ||
        event.kind == FleetEvent::Kind::kLinks) {
      continue;
    }
    if (event.kind == FleetEvent::Kind::kJoin) {
      if (!elastic) {
        return Refuse(event.text,
                      "is of a centralized algorithm, which takes no peers "
                      "under way");
      }
      living += event.peers;
      continue;
    }
    if (living < event.peers + kMinPeers) {
      return Refuse(event.text, absl::StrCat("leaves fewer than ", kMinPeers,
                                             " of ", living, " peers"));
    }
    living -= event.peers;
  }
  return absl::OkStatus();
}

}  // namespace gossamer
