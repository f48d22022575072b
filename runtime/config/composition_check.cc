#include "runtime/config/composition_check.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/player_codecs.h"
#include "algorithms/compress/registry.h"
#include "algorithms/method/registry.h"
#include "google/protobuf/text_format.h"
#include "runtime/config/run_config.h"
#include "runtime/device/device_request.h"
#include "topology/mixing_matrix.h"

namespace gossamer {
namespace {

// Those of a codec's text, one unless players have their own; names are checked
// before.
std::vector<const Compressor*> CompressorsOf(const std::string& codec) {
  std::vector<const Compressor*> found;
  const auto clauses = ReadPlayerCodecs(codec);
  if (!clauses.ok()) return found;
  for (const PlayerCodec& clause : *clauses) {
    const Compressor* const compressor =
        FindCompressor(SplitCompressorText(clause.codec).name);
    if (compressor != nullptr) found.push_back(compressor);
  }
  return found;
}

// Of the coarsest codec.
double ContractionOf(const std::string& codec) {
  double least = 1;
  for (const Compressor* compressor : CompressorsOf(codec)) {
    least = std::min(least, compressor->contraction);
  }
  return least;
}

class Composition {
 public:
  Composition(const RunConfig& config, const MixingSchedule& schedule,
              const Codec& codec)
      : config_(config),
        mixing_(config.mixing()),
        schedule_(schedule),
        codec_(codec),
        method_(*MethodOf(config)),
        name_(method_.name) {}

  Problems Find() {
    CheckCaller();
    if (method_.is_its_optimizer) CheckOptimizer();
    CheckSchedule();
    method_.centralized() ? CheckCentralized() : CheckGossip();
    CheckCodec();
    if (mixing_.clip_radius() > 0) CheckClipping();
    if (method_.check != nullptr) AskMethod();
    CheckDevice();
    return std::move(problems_);
  }

 private:
  template <typename... Parts>
  void Refuse(const char* field, const Parts&... what) {
    problems_.Refuse(field, what...);
  }
  bool overlaps() const {
    return mixing_.overlap_steps() != MixingConfig::steps_0;
  }
  // A codec that sends all values in every exchange, each as a float.
  bool dense_and_whole() const {
    return codec_.parts() == 1 && codec_.format() <= WireFormat::kDenseBf16;
  }

  void CheckCaller() {
    if (method_.callers_step == config_.game().has_caller()) return;
    const auto of_callers =
        std::ranges::find_if(Methods(), &Method::callers_step);
    if (method_.callers_step) {
      return Refuse("algorithm", "is ", name_,
                    ", which mixes the steps of a program's own loop: write "
                    "game { caller {} }, or take another algorithm");
    }
    Refuse(
        "algorithm", "is ", name_,
        ", but the steps of game caller are the program's own: leave it out, "
        "or set algorithm=",
        (*of_callers)->name);
  }

  void CheckOptimizer() {
    const std::string& optimizer = config_.step().optimizer();
    const std::string own(method_.defaults.optimizer);
    if (optimizer == own) return;
    const std::string other(method_.with_another_optimizer);
    Refuse("step.optimizer", "is ", optimizer, ", but algorithm ", name_,
           " is the optimizer ", own,
           ": leave it out, set step.optimizer=", own, ", or take ",
           other.empty() ? "another algorithm"
                         : absl::StrCat("algorithm ", other));
  }

  // Settings that the method itself refuses.
  void AskMethod() {
    const StepConfig& step = config_.step();
    const MethodSettings settings = {
        .peers = static_cast<int>(config_.peers()),
        .graph = mixing_.graph(),
        .static_graph = schedule_.is_static(),
        .persistent_edges = HasPersistentEdges(schedule_),
        .chebyshev = mixing_.chebyshev(),
        .deadline = mixing_.deadline(),
        .overlap_steps = static_cast<int>(mixing_.overlap_steps()),
        .mixing_rounds = static_cast<int>(mixing_.mixing_rounds()),
        .replica_memory_mb = mixing_.replica_memory_mb(),
        .clip_radius = mixing_.clip_radius(),
        .codec = mixing_.codec(),
        .codec_parts = codec_.parts(),
        .codec_of_players = NamesPlayers(mixing_.codec()),
        .codec_has_replica = codec_.needs_replica(),
        .codec_contraction = ContractionOf(mixing_.codec()),
        .gamma = mixing_.gamma(),
        .stable_gamma = [this] { return StableStepSize(schedule_, /*age=*/0); },
        .optimizer = step.optimizer(),
        .n_critic = static_cast<int>(step.n_critic()),
        .steps_per_round = static_cast<int>(step.steps_per_round()),
        .gradient_clip = step.gradient_clip(),
    };
    method_.check(settings, problems_);
  }

  void CheckSchedule() {
    if (mixing_.chebyshev() &&
        (!schedule_.is_static() || mixing_.deadline() != "none" ||
         !dense_and_whole())) {
      Refuse("mixing.chebyshev",
             "is true, which needs the same graph every round, a dense codec "
             "without fragments and no deadline: it amplifies what a codec "
             "rounds away, what it leaves out, and what comes late");
    } else if (mixing_.chebyshev()) {
      CheckChebyshev();
    }
  }

  // An edge takes no coefficient above 1.  Metropolis weights stay far below;
  // those of an edge list need not.
  void CheckChebyshev() {
    double largest = 0;
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      for (const Neighbor& n : schedule_.Row(rank, /*round=*/1).neighbors) {
        largest = std::max(largest, n.weight);
      }
    }
    const double gamma = mixing_.gamma() > 0 ? mixing_.gamma() : codec_.gamma();
    const std::vector<double> omega =
        ChebyshevWeights(ContractionOfNorm(schedule_, gamma),
                         static_cast<int>(mixing_.mixing_rounds()));
    largest *= gamma * *std::ranges::max_element(omega);
    if (largest <= 1) return;
    Refuse("mixing.chebyshev", "is true, and weighs an edge of this graph by ",
           largest,
           ", where 1 is the most: lower the largest weight of "
           "mixing.edges, or leave it out");
  }

  void CheckCentralized() {
    const bool gradients = method_.averaging == Averaging::kGradients;
    const bool votes = method_.averaging == Averaging::kVotes;
    if (overlaps()) {
      Refuse("mixing.overlap_steps", "is not 0, but ", name_,
             votes       ? " sums the votes"
             : gradients ? " averages the gradients of the very step"
                         : " averages the parameters",
             gradients ? "" : " of the very round", ": leave it out or set 0");
    }
    gradients ? CheckGradients() : RefuseGradients();
    if (mixing_.mixing_rounds() > 1) {
      Refuse("mixing.mixing_rounds", "is above 1, but ", name_,
             votes ? " mixes no parameters" : "'s all-reduce is exact",
             ": leave it out");
    }
  }

  // Of methods that send none.
  void RefuseGradients() {
    if (mixing_.gradient_codec() == GradientCompressor::kDense) return;
    Refuse("mixing.gradient_codec", "is \"", mixing_.gradient_codec(),
           "\", but ", name_, " sends no gradients: leave it out",
           method_.centralized() ? "" : ", or choose mixing.codec");
  }

  void CheckGradients() {
    const auto method =
        GradientCompressor::Create(mixing_.gradient_codec(), {});
    if (!method.ok()) return;  // the check of names reports it
    if (!(*method)->summable() && mixing_.all_reduce() != "all-gather") {
      Refuse("mixing.all_reduce", "is ", mixing_.all_reduce(),
             ", which sends sums on: with this gradient_codec they would have "
             "to be encoded again at every hop; leave it out or take "
             "all-gather");
    }
    if ((*method)->has_residual() && config_.step().n_critic() > 1) {
      Refuse("mixing.gradient_codec", "is \"", mixing_.gradient_codec(),
             "\", whose memory needs both players' gradients in every step, "
             "but step.n_critic is ",
             config_.step().n_critic(), ": set it to 1");
    }
    if ((*method)->needs_warmup()) {
      Refuse(
          "mixing.gradient_codec", "is \"", mixing_.gradient_codec(),
          "\", whose ranks hear of each other's gradients once in a cycle of "
          "leaders: too late while they change fastest; begin with dense "
          "gradients, full=200");
    }
  }

  void CheckGossip() {
    if (mixing_.gamma() > 0) CheckStepSize();
    RefuseGradients();
  }

  // The bounds of old snapshots and of the codec.
  void CheckStepSize() {
    const double gamma = mixing_.gamma();
    const int age = static_cast<int>(mixing_.overlap_steps()) - 1;
    if (age > 0 && gamma >= StableStepSize(schedule_, age)) {
      Refuse("mixing.gamma", "is ", gamma,
             ", which is not stable with overlap_steps ", age + 1,
             " on this schedule: stay below ", StableStepSize(schedule_, age),
             ", or leave it out to get two thirds of that");
    }
    const double largest = codec_.largest_gamma();
    // A bound copied from the message has six digits.
    if (gamma <= 1.00001 * largest) return;
    Refuse("mixing.gamma", "is ", gamma, ", but codec \"", mixing_.codec(),
           "\" is stable up to ", largest,
           ", above which peers drift apart: leave it out to get ",
           codec_.gamma());
  }

  void CheckCodec() {
    if (codec_.memory() == EdgeMemory::kShared &&
        (mixing_.overlap_steps() < 0 || mixing_.overlap_steps() > 1)) {
      Refuse("mixing.overlap_steps", "is not 0 or 1, but each exchange of ",
             mixing_.codec(),
             " begins where the last one ended: leave it out or set 1");
    }
    if (NamesPlayers(mixing_.codec()) && mixing_.replica_memory_mb() != 0) {
      Refuse("mixing.replica_memory_mb", "is ", mixing_.replica_memory_mb(),
             ", but edges without replicas have one codec for all players, and "
             "mixing.codec is \"",
             mixing_.codec(), "\": leave it out");
    }
    if (NamesPlayers(mixing_.codec()) && codec_.needs_replica() &&
        !HasPersistentEdges(schedule_)) {
      Refuse("mixing.codec", "is \"", mixing_.codec(), "\", but edges of ",
             config_.peers(), " peers of graph ", mixing_.graph(),
             " last for some rounds and keep no replicas: take one codec for "
             "both players, or a static graph");
    }
    CheckOwners();
  }

  void CheckOwners() {
    for (const Compressor* codec : CompressorsOf(mixing_.codec())) {
      CheckOwner(*codec);
    }
  }

  // Codecs that are made for some methods: those alone may use them.
  void CheckOwner(const Compressor& codec) {
    std::vector<std::string> owners;
    for (const Method* method : Methods()) {
      if (method->own_codec != codec.name) continue;
      if (method == &method_) return;
      owners.emplace_back(method->name);
    }
    if (owners.empty()) return;
    Refuse("mixing.codec", "is \"", mixing_.codec(), "\", but ", codec.name,
           " is for algorithm ", absl::StrJoin(owners, " or "),
           " alone: ", codec.owned_because);
  }

  // A liar's corrections must be shortened at its neighbours, and outvoted.
  void CheckClipping() {
    const auto refuse = [this](const auto&... why) {
      Refuse("mixing.clip_radius", "is ", mixing_.clip_radius(), ", but ",
             why...);
    };
    if (method_.centralized()) {
      return refuse(name_,
                    method_.averaging == Averaging::kVotes
                        ? " mixes no parameters: leave it out"
                        : "'s all-reduce is a sum already when a peer gets it, "
                          "with a liar in it at full length: leave it out");
    }
    if (mixing_.chebyshev()) {
      refuse(
          "chebyshev gossip amplifies what mixing has moved, a liar's share "
          "with it: leave it out");
    }
    const int fewest = MinDegree(schedule_);
    if (fewest >= kMinClippedDegree) return;
    refuse("a peer of this graph mixes with only ", fewest,
           " others: one liar is too large a part of what it hears; take a "
           "graph of degree ",
           kMinClippedDegree,
           " or more (torus of 9 or more peers, "
           "random-regular, complete), a time-varying graph of 5 or more "
           "peers, or leave it out");
  }

  void CheckDevice() {
    const std::string& device = config_.resources().device();
    const auto request = ParseDeviceRequest(device);
    if (!request.ok()) return;  // the check of names reports it
    if (config_.game().has_caller()) {
      if (request->kind == DeviceRequest::kCuda) {
        Refuse("resources.device", "is ", device,
               ", but the parameters of a program's own game are mixed where "
               "the program has them: leave it out");
      }
      return;
    }
    if (request->kind == DeviceRequest::kCuda) {
      const std::string why = WhyOnHost(config_);
      if (!why.empty()) {
        Refuse("resources.device", "is ", device, ", but ", why,
               ", or set resources.device=cpu");
      }
    }
    if (config_.transport() == "nccl" && request->kind == DeviceRequest::kCpu) {
      Refuse("transport",
             "is nccl, which joins GPUs, but resources.device is cpu: set "
             "resources.device=cuda, or transport=auto");
    }
  }

  const RunConfig& config_;
  const MixingConfig& mixing_;
  const MixingSchedule& schedule_;
  const Codec& codec_;
  const Method& method_;
  const std::string name_;  // of it
  Problems problems_;
};

}  // namespace

Problems FindConflicts(const RunConfig& config) {
  const auto schedule =
      MakeSchedule(ScheduleSpecOf(config.mixing()),
                   static_cast<int>(config.peers()), config.seed());
  const auto codec = Codec::Create(config.mixing().codec(), {});
  // FindProblems has refused impossible ones.
  if (!schedule.ok() || !codec.ok()) return {};
  return Composition(config, **schedule, **codec).Find();
}

std::string WhyOnHost(const RunConfig& config) {
  const GameConfig& game = config.game();
  if (game.has_gan() || game.has_caller()) return "";
  const auto* const field = game.GetDescriptor()->FindFieldByNumber(
      static_cast<int>(game.game_case()));
  return absl::StrCat("game ", field == nullptr ? "" : field->name(),
                      " is computed on the CPU alone: take game gan");
}

std::vector<std::string> FindUnused(const RunConfig& config) {
  static constexpr const char* kOfGossip[] = {"mixing.graph",
                                              "mixing.degree",
                                              "mixing.edge_probability",
                                              "mixing.edges",
                                              "mixing.sites",
                                              "mixing.variance_budget",
                                              "mixing.codec",
                                              "mixing.gamma",
                                              "mixing.chebyshev",
                                              "mixing.replica_memory_mb",
                                              "mixing.deadline"};
  static constexpr const char* kOfAllReduce[] = {"mixing.all_reduce"};
  // Votes have a step of their own.
  static constexpr const char* kOfSteps[] = {"step.optimizer",
                                             "step.generator_learning_rate",
                                             "step.discriminator_learning_rate",
                                             "step.beta1",
                                             "step.beta2",
                                             "step.decay_from_round"};
  RunConfig usual;
  usual.set_algorithm(config.algorithm());
  ResolveRunConfig(usual);
  const auto text_of = [](const RunConfig& run, std::string_view key) {
    const bool mixing = key.starts_with("mixing.");
    const google::protobuf::Message& group =
        mixing ? static_cast<const google::protobuf::Message&>(run.mixing())
               : run.step();
    std::string text;
    google::protobuf::TextFormat::PrintFieldValueToString(
        group,
        group.GetDescriptor()->FindFieldByName(
            std::string(key.substr(key.find('.') + 1))),
        -1, &text);
    return text;
  };
  std::vector<std::string> found;
  const auto look_at = [&](std::span<const char* const> keys) {
    for (const char* const key : keys) {
      if (text_of(config, key) != text_of(usual, key)) found.push_back(key);
    }
  };
  const Method* const method = MethodOf(config);
  const bool votes =
      method != nullptr && method->averaging == Averaging::kVotes;
  if (IsCentralized(config)) look_at(kOfGossip);
  if (!IsCentralized(config) || votes) look_at(kOfAllReduce);
  if (votes) look_at(kOfSteps);
  return found;
}

}  // namespace gossamer
