#include "tests/simulation/hosts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gossamer::simulation {

uint64_t MaxRound(const std::vector<SimHost>& hosts) {
  uint64_t round = 0;
  for (const SimHost& host : hosts) {
    if (host.process) round = std::max(round, host.process->round());
  }
  return round;
}

uint64_t MinRound(const std::vector<SimHost>& hosts) {
  uint64_t round = UINT64_MAX;
  for (const SimHost& host : hosts) {
    round = std::min(round, host.process ? host.process->round() : 0);
  }
  return round;
}

std::string DescribeRounds(const std::vector<SimHost>& hosts) {
  return absl::StrJoin(hosts, " ", [](std::string* out, const SimHost& host) {
    absl::StrAppend(out, host.ended     ? "ended"
                         : host.process ? absl::StrCat(host.process->round())
                                        : "down");
  });
}

bool AllEnded(const std::vector<SimHost>& hosts) {
  return std::ranges::all_of(hosts, [](const SimHost& s) { return s.ended; });
}

bool AllJoined(const std::vector<SimHost>& hosts, const Fleet& fleet,
               absl::Time now) {
  const FleetRecord& record = fleet.record();
  if (record.stop.round != 0 || record.view.members.size() != hosts.size()) {
    return false;
  }
  return std::ranges::all_of(hosts, [&](const SimHost& s) {
    return s.process && !s.older.process && s.process->joined() &&
           s.process->view().epoch == record.view.epoch &&
           s.process->loop().frozen_until() <= now;
  });
}

}  // namespace gossamer::simulation
