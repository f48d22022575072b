// The progress of a run as text for people: a table that redraws in place on a
// terminal, a line every few seconds anywhere else.
//
// Formatting is pure; ProgressDisplay writes.  Knows nothing of where the
// numbers come from.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_PROGRESS_H_
#define GOSSAMER_RUNTIME_TELEMETRY_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace gossamer {

struct PeerProgress {
  int rank = 0;
  uint64_t round = 0;  // the last finished one
  double rounds_per_second = 0;
  double generator_loss = 0;
  double discriminator_loss = 0;
  uint64_t bytes_sent = 0;
  std::optional<double> score = {};
  absl::Duration silent = {};  // since its last heartbeat
  bool finished = false;
};

struct FleetProgress {
  std::string title;    // "quickstart  dp-oadam  4 peers"
  uint64_t rounds = 0;  // the rounds of the whole run
  std::vector<PeerProgress> peers = {};
  std::optional<double> consensus_distance = {};
  std::string note = "";  // "stopping at round 512"; may be empty
};

// Returns the round of the fleet, which is that of its slowest peer.
uint64_t FleetRound(const FleetProgress& progress);
// Returns the time until the slowest peer is done; nothing before a rate is
// known.
std::optional<absl::Duration> TimeLeft(const FleetProgress& progress);

// Return lines of at most `width` columns, without line ends.  FormatPeers
// leaves out what needs the number of rounds of the run.
std::vector<std::string> FormatTable(const FleetProgress& progress, int width);
std::vector<std::string> FormatPeers(const FleetProgress& progress, int width);
std::string FormatLine(const FleetProgress& progress);

// Return texts such as "49.2 MB" (powers of 1000), "2m09s" and "1h05m".
std::string HumanBytes(double bytes);
std::string HumanDuration(absl::Duration duration);

// Shows one state of the run after another on a stream.
class ProgressDisplay {
 public:
  // Shows a table if `out` is a terminal, else lines at least `interval` apart.
  explicit ProgressDisplay(std::FILE* out,
                           absl::Duration interval = absl::Seconds(5));
  void Show(const FleetProgress& progress, absl::Time now);
  // Shows the last state, whatever the interval, and leaves the cursor below
  // it.
  void Finish(const FleetProgress& progress);
  // Prints a message above the table, where it stays.
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
