#include "tests/simulation/seats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gossamer::simulation {

uint64_t MaxRound(const std::vector<Seat>& seats) {
  uint64_t round = 0;
  for (const Seat& seat : seats) {
    if (seat.life) round = std::max(round, seat.life->round());
  }
  return round;
}

uint64_t MinRound(const std::vector<Seat>& seats) {
  uint64_t round = UINT64_MAX;
  for (const Seat& seat : seats) {
    round = std::min(round, seat.life ? seat.life->round() : 0);
  }
  return round;
}

std::string DescribeRounds(const std::vector<Seat>& seats) {
  return absl::StrJoin(seats, " ", [](std::string* out, const Seat& seat) {
    absl::StrAppend(out, seat.ended  ? "ended"
                         : seat.life ? absl::StrCat(seat.life->round())
                                     : "down");
  });
}

bool AllEnded(const std::vector<Seat>& seats) {
  return std::ranges::all_of(seats, [](const Seat& s) { return s.ended; });
}

bool AllJoined(const std::vector<Seat>& seats, const Fleet& fleet,
               absl::Time now) {
  const FleetRecord& record = fleet.record();
  if (record.stop.round != 0 || record.view.members.size() != seats.size()) {
    return false;
  }
  return std::ranges::all_of(seats, [&](const Seat& s) {
    return s.life && s.life->joined() &&
           s.life->view().epoch == record.view.epoch &&
           s.life->loop().frozen_until() <= now;
  });
}

}  // namespace gossamer::simulation
