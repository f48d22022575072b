#include "runtime/plan/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/frame.h"
#include "topology/consensus_model.h"
#include "topology/mixing_matrix.h"
#include "topology/ring_order.h"
#include "topology/view.h"

namespace gossamer {
namespace {

constexpr const char* kCodecs[] = {"dense-f32", "innov-int8", "innov-int4",
                                   "innov-lm2", "innov-sign"};
constexpr int64_t kSampleSize = 1 << 16;
constexpr size_t kMostParameters = size_t{1} << 34;
constexpr double kMostSeconds = 3600;
// Of the bound, what the runtime takes with overlap (PROTOCOL.md 9).
constexpr double kOfStable = 2.0 / 3;

ParameterLayout LayoutOf(int64_t parameters) {
  const int64_t half = parameters / 2;
  return ParameterLayout({{.name = "generator",
                           .player = Player::kGenerator,
                           .shape = {parameters - half, 1},
                           .extent = {}},
                          {.name = "discriminator",
                           .player = Player::kDiscriminator,
                           .shape = {half, 1},
                           .extent = {}}});
}

struct CodecTraits {
  std::string name;
  bool replica = false;
  double gamma = 1;
  double bytes = 0;  // of a payload with its frame
  double error = 0;  // of the square of what it codes, lost
};

// ‖v − C(v)‖² / ‖v‖² of a Gaussian, which innovations resemble.
absl::StatusOr<double> ErrorOf(const std::string& name) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto codec,
                            Codec::Create(name, LayoutOf(kSampleSize)));
  if (!codec->needs_replica()) return 0;
  std::vector<float> v(kSampleSize), coded(kSampleSize);
  RngKey(1).Fold("plan").FillGaussian(v);
  std::vector<std::byte> out(codec->EncodedSize(codec->format()));
  codec->Encode(codec->format(), v, coded, 0, out);
  double lost = 0, all = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    lost += (double{v[i]} - coded[i]) * (double{v[i]} - coded[i]);
    all += double{v[i]} * v[i];
  }
  return lost / all;
}

absl::StatusOr<CodecTraits> TraitsOf(const std::string& name,
                                     size_t parameters) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const auto codec,
      Codec::Create(name, LayoutOf(static_cast<int64_t>(parameters))));
  if (codec->fragments() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec ", name, ": the model of mixing knows no fragments"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const double error, ErrorOf(name));
  return CodecTraits{
      .name = name,
      .replica = codec->needs_replica(),
      .gamma = codec->gamma(),
      .bytes = static_cast<double>(codec->EncodedSize(codec->format()) +
                                   kEdgeHeaderBytes),
      .error = error};
}

// Streams: encoding reads x and x̂ and writes x̂ and the payload; completing
// reads two payloads and updates D and x.  Stateless codecs have neither x̂ nor
// D, and encode once for all neighbours.
RoundCosts CostsOf(const PlanRequest& request, const CodecTraits& codec) {
  const double floats = 4 * static_cast<double>(request.parameters);
  const double rate = request.codec_bytes_per_second;
  RoundCosts costs{.step = request.step_seconds, .bytes = codec.bytes};
  if (codec.replica) {
    costs.encode_edge = (3 * floats + codec.bytes) / rate;
    costs.apply_edge = (4 * floats + 2 * codec.bytes) / rate;
  } else {
    costs.encode_once = (floats + codec.bytes) / rate;
    costs.apply_edge = (2 * floats + 2 * codec.bytes) / rate;
  }
  return costs;
}

// A graph or schedule with all that does not depend on codec and overlap.
class Mixing {
 public:
  static absl::StatusOr<std::unique_ptr<Mixing>> Create(
      std::string name, const ScheduleSpec& spec, int size, uint64_t seed) {
    GOSSAMER_ASSIGN_OR_RETURN(auto schedule, MakeSchedule(spec, size, seed));
    return std::unique_ptr<Mixing>(
        new Mixing(std::move(name), spec, std::move(schedule)));
  }

  bool Same(const Mixing& other) const {
    if (!schedule_->fixed() || !other.schedule_->fixed()) return false;
    for (int i = 0; i < schedule_->size(); ++i) {
      if (schedule_->Row(i, 1).neighbors !=
          other.schedule_->Row(i, 1).neighbors) {
        return false;
      }
    }
    return true;
  }

  // As Peer::StepSize takes it.
  double Gamma(const CodecTraits& codec, int overlap) const {
    if (overlap <= 1) return codec.gamma;
    return std::min(codec.gamma, kOfStable * stable_[overlap]);
  }

  // Seconds of a round if the network cost nothing.  Of any overlap: what a
  // peer does itself comes one after the other.
  double Busy(const PlanRequest& request, const CodecTraits& codec) const {
    return PredictRound(LinkTimes(request.links.size), rounds_,
                        CostsOf(request, codec), 1)
        .round;
  }

  Candidate Predict(const PlanRequest& request, const CodecTraits& codec,
                    double busy, int overlap) const {
    const RoundTimes times =
        PredictRound(request.links, rounds_, CostsOf(request, codec), overlap);
    const double gamma = Gamma(codec, overlap);
    return {.name = name_,
            .schedule = spec_,
            .codec = codec.name,
            .overlap = overlap,
            .gamma = gamma,
            .seconds_per_round = times.round,
            .busy_seconds = busy,
            .exchange_seconds = times.exchange,
            .consensus_distance =
                model_.Distance(gamma, std::max(0, overlap - 1), codec.error),
            .contraction = contraction_,
            .bytes_per_round = times.sent};
  }

 private:
  Mixing(std::string name, ScheduleSpec spec,
         std::unique_ptr<MixingSchedule> schedule)
      : name_(std::move(name)),
        spec_(std::move(spec)),
        schedule_(std::move(schedule)),
        rounds_(*schedule_),
        model_(*schedule_),
        contraction_(ExpectedContraction(*schedule_).factor),
        stable_(kMaxOverlap + 1) {
    for (int h = 2; h <= kMaxOverlap; ++h) {
      stable_[h] = StableStepSize(*schedule_, h - 1);
    }
  }

  const std::string name_;
  const ScheduleSpec spec_;
  const std::unique_ptr<MixingSchedule> schedule_;
  const ScheduleRounds rounds_;
  const ConsensusModel model_;
  const double contraction_;
  std::vector<double> stable_;  // by overlap
};

using Mixings = std::vector<std::unique_ptr<Mixing>>;

void AddUnlessThere(std::unique_ptr<Mixing> mixing, Mixings& all) {
  for (const auto& other : all) {
    if (mixing->Same(*other)) return;
  }
  all.push_back(std::move(mixing));
}

// What has a name.  Graphs that this number of peers cannot form are left out.
Mixings NamedMixings(int size, uint64_t seed) {
  Mixings all;
  for (const char* graph : {"ring", "torus", "complete"}) {
    auto mixing =
        Mixing::Create(graph, {.graph = graph, .edges = ""}, size, seed);
    if (mixing.ok()) AddUnlessThere(*std::move(mixing), all);
  }
  for (const char* schedule :
       {"permuted-ring", "random-matching", "one-peer-exponential"}) {
    auto mixing = Mixing::Create(schedule, {.schedule = schedule, .edges = ""},
                                 size, seed);
    if (mixing.ok()) AddUnlessThere(*std::move(mixing), all);
  }
  return all;
}

// The best ring for messages of so many bytes; an edge is as slow as its slower
// direction.
absl::StatusOr<std::unique_ptr<Mixing>> BestRing(const PlanRequest& request,
                                                 double bytes) {
  const int m = request.links.size;
  std::vector<double> costs(static_cast<size_t>(m) * m);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < m; ++j) {
      if (i == j) continue;
      costs[static_cast<size_t>(i) * m + j] =
          std::max(request.links.Transfer(i, j, bytes),
                   request.links.Transfer(j, i, bytes));
    }
  }
  GOSSAMER_ASSIGN_OR_RETURN(const RingOrder ring, BestRingOrder(m, costs));
  return Mixing::Create("best ring",
                        {.graph = "edge-list", .edges = RingEdges(ring.order)},
                        m, request.seed);
}

absl::Status CheckRequest(const PlanRequest& request) {
  if (request.links.size < 2) {
    return absl::InvalidArgumentError("a plan needs 2 peers or more");
  }
  if (request.parameters < 2 || request.parameters > kMostParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model has 2 to ", kMostParameters, " parameters, not ",
                     request.parameters));
  }
  if (!(request.step_seconds > 0 && request.step_seconds <= kMostSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a step takes more than 0 and at most %g s, not %g",
                        kMostSeconds, request.step_seconds));
  }
  if (!(request.codec_bytes_per_second >= 1e6) ||
      !std::isfinite(request.codec_bytes_per_second)) {
    return absl::InvalidArgumentError(
        "a codec handles at least 1 MB of memory a second");
  }
  for (int i = 0; i < request.links.size; ++i) {
    for (int j = 0; j < request.links.size; ++j) {
      const LinkTimes::Link& l = request.links(i, j);
      if (i == j || (l.latency >= 0 && l.latency <= kMostSeconds &&
                     l.seconds_per_byte >= 0 && l.seconds_per_byte <= 1)) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrFormat(
          "the link from %d to %d has a latency of %g s and %g s per byte; "
          "both must be 0 or more",
          i, j, l.latency, l.seconds_per_byte));
    }
  }
  return absl::OkStatus();
}

// In place: best first, as Plan::candidates says.
void Rank(std::vector<Candidate>& all) {
  for (auto first = all.begin(); first != all.end(); ++first) {
    double fastest = std::numeric_limits<double>::infinity();
    for (auto c = first; c != all.end(); ++c) {
      fastest = std::min(fastest, c->seconds_per_round);
    }
    const auto fast = [&](const Candidate& c) {
      return c.seconds_per_round <= fastest / (1 - kAlike);
    };
    double closest = std::numeric_limits<double>::infinity();
    for (auto c = first; c != all.end(); ++c) {
      if (fast(*c)) closest = std::min(closest, c->consensus_distance);
    }
    auto best = all.end();
    for (auto c = first; c != all.end(); ++c) {
      if (!fast(*c) || c->consensus_distance > closest * (1 + kAlike)) continue;
      if (best == all.end() ||
          std::pair(c->bytes_per_round, c->overlap) <
              std::pair(best->bytes_per_round, best->overlap)) {
        best = c;
      }
    }
    // What mixes no better for its bytes keeps its order.
    std::rotate(first, best, best + 1);
  }
}

// What is near is so for messages of any size: by latency alone.
absl::StatusOr<SiteClusters> SitesByRoundTrips(const LinkTimes& links) {
  std::vector<double> costs(links.links.size());
  for (int i = 0; i < links.size; ++i) {
    for (int j = 0; j < links.size; ++j) {
      if (i == j) continue;
      costs[static_cast<size_t>(i) * links.size + j] =
          links(i, j).latency + links(j, i).latency;
    }
  }
  return FindSites(links.size, costs);
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const PlanRequest& request) {
  GOSSAMER_RETURN_IF_ERROR(CheckRequest(request));
  const Mixings named = NamedMixings(request.links.size, request.seed);
  Plan plan;
  for (const char* name : kCodecs) {
    GOSSAMER_ASSIGN_OR_RETURN(const CodecTraits codec,
                              TraitsOf(name, request.parameters));
    GOSSAMER_ASSIGN_OR_RETURN(auto ring, BestRing(request, codec.bytes));
    std::vector<const Mixing*> mixings;
    for (const auto& mixing : named) mixings.push_back(mixing.get());
    const bool new_ring = std::ranges::none_of(
        named, [&](const auto& mixing) { return mixing->Same(*ring); });
    if (new_ring) mixings.insert(mixings.begin(), ring.get());
    for (const Mixing* mixing : mixings) {
      const double busy = mixing->Busy(request, codec);
      for (int h = 0; h <= kMaxOverlap; ++h) {
        plan.candidates.push_back(mixing->Predict(request, codec, busy, h));
      }
    }
  }
  Rank(plan.candidates);
  plan.centralized =
      FastestAllReduce(request.links, request.parameters, request.step_seconds);
  GOSSAMER_ASSIGN_OR_RETURN(plan.sites, SitesByRoundTrips(request.links));
  return plan;
}

absl::StatusOr<Candidate> Predict(const PlanRequest& request,
                                  const Candidate& wanted) {
  GOSSAMER_RETURN_IF_ERROR(CheckRequest(request));
  if (wanted.overlap < 0 || wanted.overlap > kMaxOverlap) {
    return absl::InvalidArgumentError(absl::StrCat(
        "overlap ", wanted.overlap, ": must be 0 to ", kMaxOverlap));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const auto mixing,
                            Mixing::Create(wanted.name, wanted.schedule,
                                           request.links.size, request.seed));
  GOSSAMER_ASSIGN_OR_RETURN(const CodecTraits codec,
                            TraitsOf(wanted.codec, request.parameters));
  return mixing->Predict(request, codec, mixing->Busy(request, codec),
                         wanted.overlap);
}

bool Hidden(const Candidate& candidate) {
  return candidate.seconds_per_round <= candidate.busy_seconds / (1 - kAlike);
}

std::string ConfigurationOf(const Candidate& c) {
  std::string out = "mixing {\n";
  if (c.schedule.schedule != "fixed") {
    absl::StrAppend(&out, "  schedule: \"", c.schedule.schedule, "\"\n");
  } else {
    absl::StrAppend(&out, "  graph: \"", c.schedule.graph, "\"\n");
  }
  if (!c.schedule.edges.empty()) {
    absl::StrAppend(&out, "  edges: \"", c.schedule.edges, "\"\n");
  }
  absl::StrAppend(&out, "  codec: \"", c.codec,
                  "\"\n  overlap_steps: ", c.overlap, "\n}\n");
  return out;
}

}  // namespace gossamer
