// The progress of a run as text for people: a table that redraws in place on a
// terminal, a line every few seconds anywhere else.
//
// Formatting is pure; the shell at the end writes.  This header knows nothing
// of where the numbers come from.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_PROGRESS_H_
#define GOSSAMER_RUNTIME_TELEMETRY_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/game/player_losses.h"
#include "topology/fleet/consensus.h"

namespace gossamer {

struct PeerProgress {
  uint64_t id = 0;
  uint64_t round = 0;  // finished
  double rounds_per_second = 0;
  PlayerLosses losses = {};
  uint64_t bytes_sent = 0;
  std::optional<double> score = {};
  absl::Duration silent = {};  // since its last heartbeat
  bool finished = false;
};

struct FleetProgress {
  std::string title;    // "quickstart  dp-oadam  4 peers"
  uint64_t rounds = 0;  // to do
  std::vector<PeerProgress> peers = {};
  std::optional<Consensus> consensus = {};
  std::string note = "";  // "stopping at round 512"; may be empty
};

// Returns the round of the fleet, which is that of its slowest peer.
uint64_t FleetRound(const FleetProgress& progress);
// Returns the time until the slowest peer is done; nothing before there is a
// rate.
std::optional<absl::Duration> TimeLeft(const FleetProgress& progress);

// Lines of at most `width` columns, without line ends.  The table shows the
// losses of two players at most, the line the means of all.  FormatPeers leaves
// out what needs to know how many rounds there will be.
std::vector<std::string> FormatTable(const FleetProgress& progress, int width);
std::vector<std::string> FormatPeers(const FleetProgress& progress, int width);
std::string FormatLine(const FleetProgress& progress);

// "49.2 MB" (powers of 1000), "2m09s", "1h05m".
std::string HumanBytes(double bytes);
std::string HumanDuration(absl::Duration duration);

// Shows one state after another on a stream.
class ProgressDisplay {
 public:
  // A table if `out` is a terminal, else lines at least `interval` apart.
  explicit ProgressDisplay(std::FILE* out,
                           absl::Duration interval = absl::Seconds(5));
  void Show(const FleetProgress& progress, absl::Time now);
  // The last state, whatever the interval, and the cursor below it.
  void Finish(const FleetProgress& progress);
  // A message that stays, above the table.
  void Print(std::string_view line);

 private:
  void Erase();
  int Width() const;

  std::FILE* const out_;
  const bool terminal_;
  const absl::Duration interval_;
  absl::Time shown_ = absl::InfinitePast();
  std::vector<std::string> drawn_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_PROGRESS_H_
