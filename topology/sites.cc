#include "topology/sites.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr uint64_t kLargestId = 1 << 20;  // what a list may name, not a fleet

// Names go into messages and reports, so they are short and plain.
bool IsName(absl::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') {
      return false;
    }
  }
  return true;
}

// "3" or "1-8".
bool ParseRange(absl::string_view text, uint64_t& first, uint64_t& last) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  const bool one = text.find('-') == absl::string_view::npos;
  return absl::SimpleAtoi(ends.first, &first) &&
         absl::SimpleAtoi(one ? ends.first : ends.second, &last) &&
         // A range comes from a configuration or a view: its length is bounded
         // before ids are inserted one by one.
         first >= 1 && first <= last && last <= kLargestId &&
         last - first < kMaxPeers;
}

}  // namespace

absl::StatusOr<Sites> Sites::Parse(const std::string& text) {
  Sites sites;
  // At most 80 characters of a token are quoted, since the text may come from
  // another machine.
  const auto refuse = [](absl::string_view token, size_t at,
                         absl::string_view fault) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "sites: \"%s\" at character %d %s; peers have ids from 1 on, for "
        "example \"paris:1-8 sydney:9-16,20\"",
        token.substr(0, 80), at + 1, fault));
  };
  size_t at = text.find_first_not_of(kBlanks);
  while (at != std::string::npos) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    const absl::string_view token(text.data() + at, end - at);
    const size_t colon = token.find(':');
    if (colon == absl::string_view::npos || !IsName(token.substr(0, colon))) {
      return refuse(token, at, "is not NAME:IDS");
    }
    const std::string name(token.substr(0, colon));
    if (std::ranges::find(sites.names_, name) != sites.names_.end()) {
      return refuse(token, at, "is a site that is there twice");
    }
    const auto site = static_cast<int>(sites.names_.size());
    sites.names_.push_back(name);
    for (absl::string_view range :
         absl::StrSplit(token.substr(colon + 1), ',')) {
      uint64_t first = 0, last = 0;
      if (!ParseRange(range, first, last)) {
        return refuse(token, at, "has ids that are not like 3 or 1-8");
      }
      for (uint64_t id = first; id <= last; ++id) {
        if (!sites.site_of_.emplace(PeerId{id}, site).second) {
          return refuse(token, at, "names a peer that is there twice");
        }
      }
    }
    at = text.find_first_not_of(kBlanks, end);
  }
  if (sites.names_.size() >= 2) return sites;
  return absl::InvalidArgumentError(absl::StrFormat(
      "sites: \"%s\" names %s; nothing is far from anything then: name two or "
      "more, for example \"paris:1-8 sydney:9-16\", or take graph "
      "random-matching",
      text.substr(0, 80), sites.names_.empty() ? "no site" : "one site"));
}

std::vector<int> Sites::Of(std::span<const PeerId> members) const {
  std::vector<int> sites;
  // Numbers from here on belong to peers that no site names, one each.
  auto next = static_cast<int>(names_.size());
  for (const PeerId id : members) {
    const auto it = site_of_.find(id);
    sites.push_back(it == site_of_.end() ? next++ : it->second);
  }
  return sites;
}

std::vector<PeerId> FoundingMembers(int size) {
  std::vector<PeerId> ids;
  for (int i = 1; i <= size; ++i) ids.push_back({static_cast<uint64_t>(i)});
  return ids;
}

}  // namespace gossamer
