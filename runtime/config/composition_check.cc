#include "runtime/config/composition_check.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "google/protobuf/text_format.h"
#include "runtime/config/run_config.h"
#include "topology/mixing_matrix.h"

namespace gossamer {
namespace {

class Composition {
 public:
  Composition(const RunConfig& config, const MixingSchedule& schedule)
      : config_(config),
        mixing_(config.mixing()),
        schedule_(schedule),
        centralized_(config.algorithm() == "cp-oadam") {}

  std::vector<Problem> Find() {
    CheckOptimizer();
    CheckSchedule();
    centralized_ ? CheckCentralized() : CheckGossip();
    CheckCodec();
    if (mixing_.clip_radius() > 0) CheckClipping();
    if (config_.step().optimizer() == "cold") CheckDual();
    if (config_.algorithm() == "gradient-tracking") CheckTracking();
    return std::move(problems_);
  }

 private:
  template <typename... Parts>
  void Refuse(const char* field, const Parts&... what) {
    problems_.push_back({field, absl::StrCat(what...)});
  }
  bool overlaps() const {
    return mixing_.overlap_steps() != MixingConfig::steps_0;
  }
  bool fragments() const {
    const auto codec = Codec::Create(mixing_.codec(), {});
    return codec.ok() && (*codec)->fragments() > 1;
  }

  // Algorithms that are their optimizer: with another one in the file they
  // would bear its name only.
  void CheckOptimizer() {
    const std::string& algorithm = config_.algorithm();
    const std::string& optimizer = config_.step().optimizer();
    const bool dual = algorithm == "cold" || algorithm == "dyna-cold";
    const std::string own = dual                   ? "cold"
                            : algorithm == "dposg" ? "osg"
                                                   : optimizer;
    if (optimizer == own) return;
    Refuse("step.optimizer", "is ", optimizer, ", but algorithm ", algorithm,
           " is the optimizer ", own,
           ": leave it out, set step.optimizer=", own, ", or take ",
           dual ? "another algorithm" : "algorithm dp-oadam");
  }

  void CheckSchedule() {
    if (config_.algorithm() == "rand-dp-oadam" && schedule_.fixed() &&
        config_.peers() > 3) {
      Refuse("mixing.schedule", "is ", mixing_.schedule(),
             ", the same matrix every round; rand-dp-oadam draws anew: leave "
             "it out, or take permuted-ring, random-matching or "
             "locality-skewed");
    }
    if (mixing_.gossip() == "chebyshev" &&
        (!schedule_.fixed() || mixing_.deadline() != "none" ||
         !absl::StartsWith(mixing_.codec(), "dense-") || fragments())) {
      Refuse("mixing.gossip",
             "is chebyshev, which needs a fixed schedule, a dense codec "
             "without fragments and no deadline: it amplifies what a codec "
             "rounds away, what it leaves out, and what comes late");
    }
  }

  void CheckCentralized() {
    if (overlaps()) {
      Refuse("mixing.overlap_steps",
             "is not 0, but cp-oadam averages the gradients of the very step: "
             "leave it out or set 0");
    }
    CheckGradients();
    if (mixing_.mixing_rounds() > 1) {
      Refuse("mixing.mixing_rounds",
             "is above 1, but cp-oadam's all-reduce is exact: leave it out");
    }
  }

  void CheckGradients() {
    const auto method =
        GradientCompressor::Create(mixing_.gradient_codec(), {});
    if (!method.ok()) return;  // said by who checks names
    if (!(*method)->sums() && mixing_.all_reduce() != "all-gather") {
      Refuse("mixing.all_reduce", "is ", mixing_.all_reduce(),
             ", which sends sums on: with this gradient_codec they would have "
             "to be encoded again at every hop; leave it out or take "
             "all-gather");
    }
    if ((*method)->remembers() && config_.step().n_critic() > 1) {
      Refuse("mixing.gradient_codec", "is \"", mixing_.gradient_codec(),
             "\", whose memory needs both players' gradients in every step, "
             "but step.n_critic is ",
             config_.step().n_critic(), ": set it to 1");
    }
    if ((*method)->needs_start()) {
      Refuse("mixing.gradient_codec", "is \"", mixing_.gradient_codec(),
             "\", whose ranks hear of each other's gradients once in a turn of "
             "leaders: too late while they change fastest; begin with whole "
             "gradients, full=200");
    }
  }

  void CheckGossip() {
    if (mixing_.gamma() > 0) CheckStepSize();
    if (mixing_.gradient_codec() != GradientCompressor::kExact) {
      Refuse("mixing.gradient_codec", "is \"", mixing_.gradient_codec(),
             "\", but ", config_.algorithm(),
             " sends no gradients: leave it out, or choose mixing.codec");
    }
    if (mixing_.order() == "step-then-mix" && config_.algorithm() == "dposg") {
      Refuse("mixing.order",
             "is step-then-mix, but dposg extrapolates from the mixed point: "
             "leave it out");
    }
  }

  // What old snapshots bear, what a dual does, and what the codec does.
  void CheckStepSize() {
    const double gamma = mixing_.gamma();
    const int age = static_cast<int>(mixing_.overlap_steps()) - 1;
    if (age > 0 && gamma >= StableStepSize(schedule_, age)) {
      Refuse("mixing.gamma", "is ", gamma,
             ", which is not stable with overlap_steps ", age + 1,
             " on this schedule: stay below ", StableStepSize(schedule_, age),
             ", or leave it out to get two thirds of that");
    }
    // Who copies a bound from here has six digits of it.
    const auto above = [gamma](double bound) {
      return gamma > 1.00001 * bound;
    };
    // NIDS needs I − γ(I − W) to have no negative eigenvalue (Li, Shi, Yan,
    // IEEE TSP 2019); of no matrix λmax(I − W) is above 2.
    if (config_.step().optimizer() == "cold" && above(0.5)) {
      const double bound = StableStepSize(schedule_, /*age=*/0) / 2;
      if (above(bound)) {
        Refuse("mixing.gamma", "is ", gamma,
               ", but optimizer cold is stable up to 1/λmax(I − W), ", bound,
               " on this graph: leave it out");
      }
    }
    const auto codec = Codec::Create(mixing_.codec(), {});
    if (!codec.ok()) return;  // said by who checks names
    const double largest = (*codec)->largest_gamma();
    if (!above(largest)) return;
    Refuse("mixing.gamma", "is ", gamma, ", but codec \"", mixing_.codec(),
           "\" is stable up to ", largest,
           ", above which peers drift apart: leave it out to get ",
           (*codec)->gamma());
  }

  void CheckCodec() {
    if ((absl::StartsWith(mixing_.codec(), "power-gossip") ||
         absl::StartsWith(mixing_.codec(), "masked")) &&
        (mixing_.overlap_steps() < 0 || mixing_.overlap_steps() > 1)) {
      Refuse("mixing.overlap_steps", "is not 0 or 1, but each exchange of ",
             mixing_.codec(),
             " begins where the last one ended: leave it out or set 1");
    }
    if (absl::StartsWith(mixing_.codec(), "dyna") &&
        config_.step().optimizer() != "cold") {
      Refuse("mixing.codec", "is \"", mixing_.codec(),
             "\", whose step shrinks whatever the parameters do: only "
             "algorithm dyna-cold converges as fast; take innov-sign");
    }
    if (config_.algorithm() == "dyna-cold" &&
        !absl::StartsWith(mixing_.codec(), "dyna")) {
      Refuse("mixing.codec", "is \"", mixing_.codec(),
             "\", but dyna-cold is COLD with codec dyna: leave it out, or take "
             "algorithm cold");
    }
  }

  // Whose corrections are shortened by itself, and outvoted by others.
  void CheckClipping() {
    const auto refuse = [this](const auto&... why) {
      Refuse("mixing.clip_radius", "is ", mixing_.clip_radius(), ", but ",
             why...);
    };
    if (centralized_) {
      return refuse(
          "cp-oadam's all-reduce is a sum already when a peer gets it, with a "
          "liar in it at full length: leave it out");
    }
    if (config_.step().optimizer() == "cold") {
      refuse(
          "optimizer cold follows differences as they are: its dual would "
          "grow by what is cut off: leave it out");
    }
    if (mixing_.gossip() == "chebyshev") {
      refuse(
          "chebyshev gossip amplifies what mixing has moved, a liar's share "
          "with it: leave it out");
    }
    const int fewest = FewestPartners(schedule_);
    if (fewest >= kLeastClippedPartners) return;
    refuse("a peer of this graph mixes with only ", fewest,
           " others: one liar is too large a part of what it hears; take a "
           "graph of degree ",
           kLeastClippedPartners,
           " or more (torus of 9 or more peers, "
           "random-regular, complete), a random schedule of 5 or more peers, "
           "or leave it out");
  }

  // What the primal-dual rule needs (Peer::Create), and what keeps it stable:
  // its dual is an oscillator that a codec's lag drives.
  void CheckDual() {
    const auto refuse = [this](const char* field, const std::string& is,
                               const char* why) {
      Refuse(field, "is ", is, ", but optimizer cold ", why);
    };
    if (centralized_) {
      return refuse("algorithm", config_.algorithm(),
                    "lives of mixing: take cold, or another optimizer");
    }
    if (!schedule_.fixed()) {
      refuse("mixing.schedule", mixing_.schedule(),
             "needs the same matrix every round: leave it out");
    }
    if (mixing_.order() != "step-then-mix") {
      refuse("mixing.order", mixing_.order(),
             "mixes the step just made: leave it out");
    }
    if (overlaps()) {
      refuse("mixing.overlap_steps", absl::StrCat(mixing_.overlap_steps()),
             "mixes the step just made: leave it out or set 0");
    }
    if (mixing_.mixing_rounds() > 1 || mixing_.gossip() != "plain") {
      refuse("mixing.mixing_rounds", absl::StrCat(mixing_.mixing_rounds()),
             "steps and mixes in turn: leave it and mixing.gossip out");
    }
    if (mixing_.deadline() != "none") {
      refuse("mixing.deadline", mixing_.deadline(),
             "needs every message: what comes late swings its dual; leave it "
             "out");
    }
    if (mixing_.replica_memory_mb() != 0) {
      refuse("mixing.replica_memory_mb",
             absl::StrCat(mixing_.replica_memory_mb()),
             "needs replicas on every edge: leave it out");
    }
    if (config_.step().n_critic() > 1 || config_.step().steps_per_round() > 1) {
      refuse("step.steps_per_round or n_critic", "above 1",
             "steps and mixes in turn: leave them out");
    }
    if (config_.step().gradient_clip() > 0) {
      refuse("step.gradient_clip", absl::StrCat(config_.step().gradient_clip()),
             "learns each peer's own gradient, which is not 0 at the solution: "
             "shortened, it moves where the run ends; leave it out");
    }
    if (fragments() || (!absl::StartsWith(mixing_.codec(), "innov-int") &&
                        !absl::StartsWith(mixing_.codec(), "dyna"))) {
      refuse("mixing.codec", absl::StrCat("\"", mixing_.codec(), "\""),
             "is stable with innov-int8, innov-int4 or dyna, whole: coarser "
             "innovations lag behind the dual, and others have no replica");
    }
  }

  // What keeps the sum of tracked gradients that of the gradients, and the
  // step along them stable.
  void CheckTracking() {
    const auto refuse = [this](const char* coarse, const char* why) {
      if (!absl::StartsWith(mixing_.codec(), coarse)) return;
      Refuse("mixing.codec", "is \"", mixing_.codec(), "\", but ", why,
             ": take innov-int8, innov-int4 or innov-lm2, or diff-int8 where "
             "replicas take too much memory");
    };
    for (const char* const lags : {"auto", "innov-sign", "innov-topk"}) {
      refuse(lags,
             "what signs and top-k lag behind grows in gradient-tracking");
    }
    for (const char* const rounds :
         {"diff-int4", "qsgd", "moniqua", "squeeze-"}) {
      refuse(rounds,
             "what it rounds away keeps gradient-tracking from the solution");
    }
    if (config_.step().n_critic() > 1) {
      Refuse("step.n_critic", "is ", config_.step().n_critic(),
             ", but gradient-tracking follows both players' gradients in every "
             "step: set it to 1");
    }
    if (mixing_.gossip() == "chebyshev") {
      Refuse("mixing.gossip",
             "is chebyshev, which moves tracked gradients by more than what "
             "edges bring: leave it out");
    }
    if (config_.step().optimizer() == "cold") {
      Refuse("step.optimizer",
             "is cold, which corrects gradients that are tracked already: "
             "leave it out, or take algorithm cold");
    }
  }

  const RunConfig& config_;
  const MixingConfig& mixing_;
  const MixingSchedule& schedule_;
  const bool centralized_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> FindMisfits(const RunConfig& config) {
  const auto schedule =
      MakeSchedule(ScheduleSpecOf(config.mixing()),
                   static_cast<int>(config.peers()), config.seed());
  if (!schedule.ok()) {
    return {{"mixing.graph", absl::StrCat("with ", config.peers(), " peers: ",
                                          schedule.status().message())}};
  }
  return Composition(config, **schedule).Find();
}

std::vector<std::string> FindUnused(const RunConfig& config) {
  static constexpr const char* kOfGossip[] = {
      "graph",  "schedule",         "weights",
      "degree", "edge_probability", "edges",
      "sites",  "variance_budget",  "codec",
      "gamma",  "gossip",           "replica_memory_mb",
      "order",  "deadline"};
  static constexpr const char* kOfAllReduce[] = {"all_reduce"};
  RunConfig usual;
  usual.set_algorithm(config.algorithm());
  ResolveRunConfig(usual);
  const auto text_of = [](const RunConfig& run, const char* name) {
    std::string text;
    google::protobuf::TextFormat::PrintFieldValueToString(
        run.mixing(), MixingConfig::descriptor()->FindFieldByName(name), -1,
        &text);
    return text;
  };
  const std::span<const char* const> unused =
      config.algorithm() == "cp-oadam"
          ? std::span<const char* const>(kOfGossip)
          : std::span<const char* const>(kOfAllReduce);
  std::vector<std::string> found;
  for (const char* const name : unused) {
    if (text_of(config, name) != text_of(usual, name)) {
      found.push_back(absl::StrCat("mixing.", name));
    }
  }
  return found;
}

}  // namespace gossamer
