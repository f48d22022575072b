#include "runtime/telemetry/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/plain_text.h"

namespace gossamer {
namespace {

// The most peers that are listed one by one; the others are counted in a line.
constexpr size_t kMaxShownPeers = 16;
// Several heartbeats have to be missing before a peer is called silent.
constexpr absl::Duration kSilent = absl::Seconds(10);
// The most players whose losses have a column: a third one would push the end
// of a row over the edge of a terminal of 80 columns.  The logs and `status
// --json` have all.
constexpr size_t kMaxLosses = 2;
constexpr size_t kLossWidth = 10;
constexpr size_t kMaxNameBytes = 16;

double MeanRate(const FleetProgress& p) {
  double sum = 0;
  int n = 0;
  for (const PeerProgress& peer : p.peers) {
    // A peer that has finished has no rate any more.
    if (peer.finished || !(peer.rounds_per_second > 0)) continue;
    sum += peer.rounds_per_second;
    ++n;
  }
  return n == 0 ? 0 : sum / n;
}

double Fraction(const FleetProgress& p) {
  if (p.rounds == 0) return 0;
  return std::min(
      1.0, static_cast<double>(FleetRound(p)) / static_cast<double>(p.rounds));
}

std::optional<double> MeanScore(const FleetProgress& p) {
  double sum = 0;
  int n = 0;
  for (const PeerProgress& peer : p.peers) {
    if (!peer.score) continue;
    sum += *peer.score;
    ++n;
  }
  if (n == 0) return std::nullopt;
  return sum / n;
}

std::vector<std::string> PlayersOf(const FleetProgress& p) {
  std::vector<std::string> players;
  for (const PeerProgress& peer : p.peers) AddPlayers(peer.losses, players);
  return players;
}

// Returns the mean over the peers that know it.
std::optional<double> MeanLoss(const FleetProgress& p,
                               const std::string& player) {
  double sum = 0;
  int n = 0;
  for (const PeerProgress& peer : p.peers) {
    const double loss = ValueOf(peer.losses, player);
    if (!std::isfinite(loss)) continue;
    sum += loss;
    ++n;
  }
  if (n == 0) return std::nullopt;
  return sum / n;
}

// Returns the letters that papers have for the players of a GAN, and other
// names as they are.  Names may come from another machine.
std::string ShortName(const std::string& player) {
  if (player == "generator") return "G";
  if (player == "discriminator") return "D";
  return PlainText(player, kMaxNameBytes);
}

// Returns "loss G", or the name alone where both do not fit.
std::string LossHeading(const std::string& player) {
  const std::string name = ShortName(player);
  const std::string heading = absl::StrCat("loss ", name);
  return heading.size() <= kLossWidth ? heading : name.substr(0, kLossWidth);
}

double BytesSent(const FleetProgress& p) {
  double sum = 0;
  for (const PeerProgress& peer : p.peers) {
    sum += static_cast<double>(peer.bytes_sent);
  }
  return sum;
}

std::string Bar(double fraction, int width) {
  const int full = static_cast<int>(std::floor(fraction * width));
  return absl::StrCat("[", std::string(full, '#'),
                      std::string(width - full, '.'), "]");
}

std::string Headline(const FleetProgress& p) {
  const std::optional<absl::Duration> left = TimeLeft(p);
  const double rate = MeanRate(p);
  return absl::StrFormat(
      "round %d/%d (%.0f %%)%s%s", FleetRound(p), p.rounds, 100 * Fraction(p),
      rate > 0 ? absl::StrFormat("  %.2f rounds/s", rate) : "",
      left ? absl::StrCat("  ETA ", HumanDuration(*left)) : "");
}

std::string Row(const PeerProgress& peer,
                std::span<const std::string> players) {
  const std::string state = peer.finished ? "done"
                            : peer.silent > kSilent
                                ? "silent " + HumanDuration(peer.silent)
                                : "";
  std::string row = absl::StrFormat("%5d %9d %9.2f", peer.id, peer.round,
                                    peer.rounds_per_second);
  for (const std::string& player : players) {
    const double loss = ValueOf(peer.losses, player);
    // A loss that the game does not say is no number.
    const std::string text =
        std::isnan(loss) ? "-" : absl::StrFormat("%.4f", loss);
    absl::StrAppendFormat(&row, " %*s", kLossWidth, text);
  }
  absl::StrAppendFormat(
      &row, " %10s %10s  %s", HumanBytes(static_cast<double>(peer.bytes_sent)),
      peer.score ? absl::StrFormat("%.4g", *peer.score) : "-", state);
  return row;
}

}  // namespace

// The fleet is as far as its slowest peer: only what all have done is done.
uint64_t FleetRound(const FleetProgress& progress) {
  uint64_t least = progress.peers.empty() ? 0 : progress.peers[0].round;
  for (const PeerProgress& peer : progress.peers) {
    least = std::min(least, peer.round);
  }
  return least;
}

std::optional<absl::Duration> TimeLeft(const FleetProgress& progress) {
  std::optional<absl::Duration> longest;
  for (const PeerProgress& peer : progress.peers) {
    if (peer.finished || peer.round >= progress.rounds) continue;
    // Without one peer's rate its end is unknown, and so is the fleet's.
    if (!(peer.rounds_per_second > 0)) return std::nullopt;
    const absl::Duration left =
        absl::Seconds(static_cast<double>(progress.rounds - peer.round) /
                      peer.rounds_per_second);
    longest = std::max(longest.value_or(left), left);
  }
  return longest;
}

std::string HumanBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  // 999.5 would be rounded to 1000.
  while (bytes >= 999.5 && unit < 5) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f B", bytes)
                   : absl::StrFormat("%.3g %s", bytes, kUnits[unit]);
}

std::string HumanDuration(absl::Duration duration) {
  // The duration is rounded first, so that 59.9 s is 1m00s and not 60s.
  const int64_t s = absl::ToInt64Seconds(duration + absl::Milliseconds(500));
  if (s < 60) return absl::StrFormat("%ds", s);
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  if (s < 48 * 3600) return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
  return absl::StrFormat("%dd%02dh", s / 86400, s / 3600 % 24);
}

std::vector<std::string> FormatPeers(const FleetProgress& p, int width) {
  std::vector<std::string> players = PlayersOf(p);
  if (players.size() > kMaxLosses) players.resize(kMaxLosses);
  std::string headings =
      absl::StrFormat("%5s %9s %9s", "peer", "round", "rounds/s");
  for (const std::string& player : players) {
    absl::StrAppendFormat(&headings, " %*s", kLossWidth, LossHeading(player));
  }
  absl::StrAppendFormat(&headings, " %10s %10s", "sent", "score");
  std::vector<std::string> lines = {
      absl::StrCat(p.title, p.note.empty() ? "" : "  - ", p.note), headings};
  for (size_t i = 0; i < std::min(p.peers.size(), kMaxShownPeers); ++i) {
    lines.push_back(Row(p.peers[i], players));
  }
  if (p.peers.size() > kMaxShownPeers) {
    lines.push_back(
        absl::StrCat("      and ", p.peers.size() - kMaxShownPeers, " more"));
  }
  lines.push_back(absl::StrCat("sent ", HumanBytes(BytesSent(p))));
  if (p.consensus) {
    absl::StrAppendFormat(&lines.back(), "   consensus distance %.3e",
                          p.consensus->distance);
    for (const auto& [player, distance] : p.consensus->players) {
      absl::StrAppendFormat(&lines.back(), "  %s %.1e", ShortName(player),
                            distance);
    }
  }
  // A line that wraps would break the redrawing in place.
  for (std::string& line : lines) {
    if (line.size() > static_cast<size_t>(width)) line.resize(width);
  }
  return lines;
}

std::vector<std::string> FormatTable(const FleetProgress& p, int width) {
  std::vector<std::string> lines = FormatPeers(p, width);
  const std::string headline =
      absl::StrCat(Bar(Fraction(p), 24), " ", Headline(p));
  lines.insert(lines.begin() + 1, headline.substr(0, width));
  return lines;
}

std::string FormatLine(const FleetProgress& p) {
  std::vector<std::string> parts = {Headline(p)};
  for (const std::string& player : PlayersOf(p)) {
    const std::optional<double> loss = MeanLoss(p, player);
    if (!loss) continue;
    parts.push_back(absl::StrFormat("%s %.4g", ShortName(player), *loss));
  }
  if (p.consensus) {
    parts.push_back(absl::StrFormat("consensus %.2e", p.consensus->distance));
  }
  if (const std::optional<double> score = MeanScore(p)) {
    parts.push_back(absl::StrFormat("score %.4g", *score));
  }
  parts.push_back(absl::StrCat("sent ", HumanBytes(BytesSent(p))));
  if (!p.note.empty()) parts.push_back(p.note);
  return absl::StrJoin(parts, "  ");
}

ProgressDisplay::ProgressDisplay(std::FILE* out, absl::Duration interval)
    : out_(out), terminal_(::isatty(::fileno(out)) == 1), interval_(interval) {}

int ProgressDisplay::Width() const {
  winsize size = {};
  // A terminal may say a width of 0, or one that holds no row.
  const bool known =
      ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
  return known ? size.ws_col : 80;
}

void ProgressDisplay::Erase() {
  // The cursor goes up to the first drawn line, and the screen below is
  // cleared.
  if (!drawn_.empty()) absl::FPrintF(out_, "\x1b[%dA\x1b[J", drawn_.size());
  drawn_.clear();
}

void ProgressDisplay::Show(const FleetProgress& progress, absl::Time now) {
  // A log file gets a line only now and then; a terminal is redrawn in place.
  if (!terminal_) {
    if (now - shown_ < interval_) return;
    shown_ = now;
    absl::FPrintF(out_, "%s\n", FormatLine(progress));
  } else {
    Erase();
    drawn_ = FormatTable(progress, Width());
    for (const std::string& line : drawn_) absl::FPrintF(out_, "%s\n", line);
  }
  std::fflush(out_);
}

void ProgressDisplay::Finish(const FleetProgress& progress) {
  Show(progress, absl::InfiniteFuture());
  drawn_.clear();
}

void ProgressDisplay::Print(std::string_view line) {
  // The table is drawn again below the message, which stays above it for good.
  const std::vector<std::string> table = drawn_;
  Erase();
  absl::FPrintF(out_, "%s\n", std::string(line));
  for (const std::string& row : table) absl::FPrintF(out_, "%s\n", row);
  drawn_ = table;
  std::fflush(out_);
}

}  // namespace gossamer
