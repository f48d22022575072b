#include "tests/simulation/end_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "algorithms/compress/codec.h"
#include "topology/mixing_matrix.h"
#include "topology/view.h"

namespace gossamer::simulation {
namespace {

// Of the mean square of all parameters.
constexpr double kFloor = 1e-4;
// Of codecs that mix few bits of each value.
constexpr double kFloorOfSlow = 5e-3;
// What is quantized by itself, not as a difference to a replica, keeps an error
// of the values' size.  So do replicas that follow by a bit a value, or by a
// few values a round, until they have arrived, which may take longer than a
// seed: an edge takes what one end's replica still lacks for a difference.
constexpr double kFloorOfQuantized = 0.3;
// What is left, at most, of the distance of peers that mix with a step size of
// so much, however many deadlines they miss; less where they are equally fast.
// All of it would be left of peers that do not mix.
constexpr double kLeft = 0.95;
constexpr double kLeftOfEquals = 0.9;
constexpr double kLeftOfClipped = 0.99;  // a step of one length may be short
// And shorter where payloads are many rounds old (StableStepSize).
constexpr double kLeftOfOldClipped = 1;
constexpr int kManyRounds = 4;
constexpr float kLargeStep = 0.3f;

// Of the squared distance, per round, in the worst direction:
// ‖(1 − γ)x + γWx‖² <= (1 − γ)‖x‖² + γ‖Wx‖².
double FactorOf(const Scenario& s, const Codec& codec) {
  const auto schedule = *MakeSchedule(s.schedule, s.peers, s.seed);
  const int h = s.overlap == kAutoOverlap ? kMaxOverlap : s.overlap;
  double gamma = codec.gamma();
  if (h > 1) gamma = std::min(gamma, StableStepSize(*schedule, h - 1) * 2 / 3);
  const double mixed = ExpectedContraction(*schedule).factor;
  return 1 - gamma * (1 - mixed);
}

// Codecs that keep nearly all of a difference.
bool KeepsAll(const Scenario& s, const Codec& codec) {
  return !s.quantized ||
         (codec.memory() == EdgeMemory::kReplicas && codec.choices().empty() &&
          (codec.format() == WireFormat::kInt8 ||
           codec.format() == WireFormat::kInt4));
}

}  // namespace

Mixing MixingOf(const Scenario& s, const Codec& codec) {
  // A dual has to stay finite while the game stands still, and that is all.
  if (s.centralized() || s.optimizer.name == "cold") return Mixing::kNone;
  const bool waits = s.deadline.kind == DeadlinePolicy::Kind::kNone;
  const bool clips = s.clip_radius > 0;
  if (waits && !clips && KeepsAll(s, codec)) return Mixing::kWaits;
  if (codec.gamma() < kLargeStep) return Mixing::kSmallSteps;
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

// One optimizer has the same bits everywhere.  Payloads of small models travel
// in bf16, which a stateless codec makes the floor.  Where peers wait for each
// other, mixing contracts as its matrices say (the root of it: momentum, delay
// and rounds apart take their share).  Where they do not, an edge mixes when
// both ends are in time, which is often among equals; between a slow and a fast
// one it is now and then, and several corrections at once may go too far.
// Clipped, peers that are far apart come closer by steps of one length; and
// what keeps or mixes small parts of a difference hardly gets anywhere in so
// many rounds.
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
  // Replicas follow within some exchanges of the same edge: more of two bits a
  // value, and fewer there are where partners change.
  const bool fixed = (*MakeSchedule(s.schedule, s.peers, s.seed))->fixed();
  const bool slow =
      codec.format() == WireFormat::kLm2 ||
      (s.quantized && codec.memory() == EdgeMemory::kReplicas && !fixed);
  const double floor = coarse ? kFloorOfQuantized
                       : slow ? kFloorOfSlow
                              : kFloor;
  if (mixing == Mixing::kWaits) {
    // An exchange has one fragment of so many.
    const double mixed =
        std::pow(FactorOf(s, codec),
                 static_cast<double>(s.calm_rounds) / (2 * codec.fragments()));
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

// Of a random schedule a pair may not be drawn in so few rounds.  With
// deadlines two groups of a fleet that were apart come closer round by round,
// and their edges have nothing to mix meanwhile; but not where rounds are short
// and equal.
std::string FindSilence(const Scenario& s, const View& view,
                        const CorrectionLedger& ledger, uint64_t since) {
  const auto schedule = view.MakeSchedule();
  if (s.centralized() || !schedule.ok() || !(*schedule)->fixed()) return "";
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
