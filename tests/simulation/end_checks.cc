#include "tests/simulation/end_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/compress/codec.h"
#include "topology/mixing_matrix.h"
#include "topology/view.h"

namespace gossamer::simulation {
namespace {

// The floor of a distance, as a share of the mean square of all parameters.
constexpr double kFloor = 1e-4;
// The floor of codecs that mix few bits of each value.
constexpr double kFloorOfSlow = 5e-3;
// The floor of codecs that quantize a value itself, not its difference to a
// replica: their error is of the values' size.  A replica that follows by one
// bit a value, or by a few values a round, has the same floor until it has
// arrived, which may take longer than a seed: the edge takes what one end's
// replica lacks for a difference.
constexpr double kFloorOfQuantized = 0.3;
// The share that is left, at most, of the distance of peers that mix with a
// step size of at least kLargeStep, however many deadlines they miss; less is
// left if they are equally fast.  Peers that do not mix keep all of it.
constexpr double kLeft = 0.95;
constexpr double kLeftOfEquals = 0.9;
constexpr double kLeftOfClipped = 0.99;  // a step of one length may be short
// Clipped payloads that are many rounds old are shorter still (StableStepSize).
constexpr double kLeftOfOldClipped = 1;
constexpr int kManyRounds = 4;
constexpr float kLargeStep = 0.3f;

// Returns γ of the part that is mixed by the smallest.
double LeastGamma(const Codec& codec) {
  float least = 1;
  for (int i = 0; i < codec.parts(); ++i) {
    least = std::min(least, codec.gamma() * codec.part(i).gamma);
  }
  return least;
}

// Returns how many rounds lie between exchanges of the part that is mixed
// least.
double RoundsApart(const Codec& codec) {
  constexpr int kRounds = 1024;
  std::vector<int> times(static_cast<size_t>(codec.parts()));
  for (int round = 0; round < kRounds; ++round) {
    for (const int part : codec.Due(static_cast<uint64_t>(round))) {
      ++times[static_cast<size_t>(part)];
    }
  }
  return static_cast<double>(kRounds) / *std::ranges::min_element(times);
}

// Returns the factor on the squared distance per round, in the worst direction:
// ‖(1 − γ)x + γWx‖² <= (1 − γ)‖x‖² + γ‖Wx‖².
double FactorOf(const Scenario& s, const Codec& codec) {
  const auto schedule = *MakeSchedule(s.schedule, s.peers, s.seed);
  const int h = s.overlap == kAutoOverlap ? kMaxOverlap : s.overlap;
  double gamma = LeastGamma(codec);
  if (h > 1) gamma = std::min(gamma, StableStepSize(*schedule, h - 1) * 2 / 3);
  double mixed = ExpectedContraction(*schedule).factor;
  // A player that is mixed in drawn rounds meets the matrices of a period in a
  // drawn order: one in so many is the one that a direction needs.
  if (RoundsApart(codec) > 1 && schedule->period() > 1) {
    mixed = std::max(mixed, 1 - 1 / static_cast<double>(schedule->period()));
  }
  return 1 - gamma * (1 - mixed);
}

// Returns whether a codec keeps nearly all of a difference.
bool KeepsAll(const Scenario& s, const Codec& codec) {
  return !s.quantized ||
         (codec.memory() == EdgeMemory::kReplicas && codec.choices().empty() &&
          (codec.format() == WireFormat::kInt8 ||
           codec.format() == WireFormat::kInt4));
}

}  // namespace

Mixing MixingOf(const Scenario& s, const Codec& codec) {
  // A dual has only to stay finite while the game stands still.
  if (s.centralized() || s.optimizer.name == "cold") return Mixing::kNone;
  const bool waits = s.deadline.kind == DeadlinePolicy::Kind::kNone;
  const bool clips = s.clip_radius > 0;
  if (waits && !clips && KeepsAll(s, codec)) return Mixing::kWaits;
  if (LeastGamma(codec) < kLargeStep) return Mixing::kSmallSteps;
  if (clips) return Mixing::kClipped;
  return waits ? Mixing::kCoarse : Mixing::kDeadlines;
}

std::string_view NameOf(Mixing mixing) {
  switch (mixing) {
    case Mixing::kNone:
      return "";
    case Mixing::kWaits:
      return "waits";
    case Mixing::kCoarse:
      return "coarse";
    case Mixing::kDeadlines:
      return "deadlines";
    case Mixing::kClipped:
      return "clipped";
    case Mixing::kSmallSteps:
      return "small_steps";
  }
  return "";
}

double ConsensusDistance(const std::vector<std::span<const float>>& all) {
  std::vector<double> mean(all[0].size());
  for (const auto& x : all) {
    for (size_t k = 0; k < mean.size(); ++k) {
      mean[k] += x[k];
    }
  }
  for (double& m : mean) m /= static_cast<double>(all.size());
  double sum = 0;
  for (const auto& x : all) {
    for (size_t k = 0; k < mean.size(); ++k) {
      sum += (x[k] - mean[k]) * (x[k] - mean[k]);
    }
  }
  return sum / static_cast<double>(all.size());
}

// Reasons for the bounds.  One optimizer has the same bits everywhere.
// Payloads of small models travel in bf16, which is the floor of a stateless
// codec.  Peers that wait for each other contract as their matrices say, to the
// root: momentum, delay and rounds apart take their share.  Without waiting, an
// edge mixes when both ends are in time.  That is often so among equals;
// between a slow peer and a fast one it is rare, and several corrections at
// once may overshoot.  Clipped peers that are far apart come closer by steps of
// one length.  A codec that keeps or mixes small parts of a difference hardly
// gets anywhere in so many rounds.
double DistanceBound(const Scenario& s, const Codec& codec, double before,
                     const std::vector<std::span<const float>>& all) {
  if (s.centralized()) return 0;
  const Mixing mixing = MixingOf(s, codec);
  if (mixing == Mixing::kNone) return std::numeric_limits<double>::max();
  double squares = 0;
  for (const auto& x : all) {
    for (const float v : x) squares += static_cast<double>(v) * v;
  }
  squares /= static_cast<double>(all.size());
  const bool coarse = s.quantized && (codec.memory() != EdgeMemory::kReplicas ||
                                      codec.format() == WireFormat::kTopK ||
                                      codec.format() == WireFormat::kSign);
  // A replica follows within some exchanges of the same edge.  Two bits a value
  // need more of them, and an edge has fewer where neighbours change.
  const bool fixed = (*MakeSchedule(s.schedule, s.peers, s.seed))->is_static();
  const bool slow =
      codec.format() == WireFormat::kLm2 ||
      (s.quantized && codec.memory() == EdgeMemory::kReplicas && !fixed);
  const double floor = coarse ? kFloorOfQuantized
                       : slow ? kFloorOfSlow
                              : kFloor;
  if (mixing == Mixing::kWaits) {
    const double mixed =
        std::pow(FactorOf(s, codec),
                 static_cast<double>(s.calm_rounds) / (2 * RoundsApart(codec)));
    return 10 * before * mixed + floor * squares;
  }
  const double left_of_clipped =
      s.overlap < kManyRounds ? kLeftOfClipped : kLeftOfOldClipped;
  const double left = mixing == Mixing::kSmallSteps ? 2
                      : mixing == Mixing::kClipped  ? left_of_clipped
                      : s.slowness == 1             ? kLeftOfEquals
                                                    : kLeft;
  return left * before + floor * squares;
}

// A random schedule may not draw a pair in so few rounds.  With deadlines, two
// groups that were rounds apart come closer round by round, and their edges
// have nothing to mix meanwhile; short and equal rounds have no such groups.
std::string FindSilence(const Scenario& s, const View& view,
                        const CorrectionLedger& ledger, uint64_t since) {
  const auto schedule = view.MakeSchedule();
  if (s.centralized() || !schedule.ok() || !(*schedule)->is_static()) return "";
  const bool all =
      s.clockwork || s.deadline.kind == DeadlinePolicy::Kind::kNone;
  int edges = 0, silent = 0;
  for (int rank = 0; rank < (*schedule)->size(); ++rank) {
    const PeerId self = view.members[static_cast<size_t>(rank)].id;
    for (const Neighbor& n :
         (*schedule)->Row(rank, view.from_round).neighbors) {
      const PeerId other = view.members[static_cast<size_t>(n.rank)].id;
      ++edges;
      silent += ledger.NewestRound(self, other) < since;
    }
  }
  if (silent <= (all ? 0 : edges / 2)) return "";
  return absl::StrFormat(
      "%d of %d neighbours have not mixed from round %d on, in which it is "
      "calm",
      silent, edges, since);
}

}  // namespace gossamer::simulation
