// COLD (Zhang, You, Xie, IEEE TAC 2023): primal-dual steps whose innovations
// are compressed.

#include "algorithms/method/cold.h"

#include <cassert>
#include <vector>

#include "algorithms/kernels/device_state.h"

namespace gossamer {
namespace {

// COLD (LEAD of Liu et al., ICLR 2021, is its twin): u = x − η g −
// y is exchanged, y ← y + ψ (x̂ − Σ w x̂_j), x ← x − η g − y.  On edges the last
// two are one thing: what mixing adds to u is exactly what it takes from y.  So
// a step is u = x − η(g + λ) with λ = y/η, mixing follows with γ = ψ, and each
// of its corrections c·D also goes to the dual: λ ← λ − (c/η) D.  At the fixed
// point all peers agree, λ is minus the own gradient, and a constant η leaves
// no error.
//
// Σ λ over the peers stays 0, as the mean of x stays where it is: c and D are
// opposite at the ends of an edge.  In floats it would not: near the solution D
// is below the last place of the larger of two duals, which lost it while the
// smaller one took it, round by round.  So λ has a second float.  In units of
// the gradient, so that a decaying learning rate leaves λ as right as it was.
class Cold final : public Optimizer, private MixingHooks {
 public:
  Cold(double learning_rate, size_t size, const DeviceQueue& queue)
      : learning_rate_(learning_rate),
        queue_(queue),
        dual_(queue, size, "the dual variable"),
        rest_(queue, size, "the rest of the dual variable") {}

  void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
            double scale) override {
    assert(x.size == dual_.size() && gradient.size == dual_.size());
    const auto rate = static_cast<float>(learning_rate_ * scale);
    queue_.Run(&DeviceKernels::axpy, -rate, gradient, x);
    queue_.Run(&DeviceKernels::axpy, -rate, dual_, x);
  }
  MixingHooks* hooks() override { return this; }
  void VisitState(StateVisitor& visitor) override {
    VisitFloats(visitor, "dual", queue_, dual_);
    VisitFloats(visitor, "dual_rest", queue_, rest_);
  }

 private:
  Extent extent() const override { return {0, dual_.size()}; }
  bool mixes_every_step() const override { return true; }
  void OnCorrection(float c, DeviceSpan<const float> difference) override {
    assert(difference.size == dual_.size());
    // The rate is that without decay, since λ is in units of the gradient.
    queue_.Run(&DeviceKernels::compensated_axpy,
               static_cast<float>(-c / learning_rate_), difference, dual_,
               rest_);
  }
  void OnEdgeEnd(DeviceSpan<const float> sum) override {
    OnCorrection(-1, sum);
  }
  void OnNewIncarnation() override {
    dual_.Clear();
    rest_.Clear();
  }
  std::vector<float> Added() const override {
    std::vector<float> added = dual_.ToHost();
    const std::vector<float> rest = rest_.ToHost();
    for (size_t i = 0; i < added.size(); ++i) {
      added[i] = static_cast<float>(-learning_rate_ *
                                    (static_cast<double>(added[i]) + rest[i]));
    }
    return added;
  }

  const double learning_rate_;
  const DeviceQueue queue_;
  DeviceVector<float> dual_, rest_;  // λ, and what it has no room for
};

}  // namespace

std::unique_ptr<Optimizer> MakeCold(const OptimizerSpec& spec, size_t size,
                                    const DeviceQueue& queue) {
  return std::make_unique<Cold>(spec.learning_rate, size, queue);
}

// NIDS, which COLD becomes without compression, takes half a step of mixing
// (Li, Shi, Yan, IEEE TSP 2019).
double GammaOfCold(std::string_view codec) {
  return codec.starts_with(kShrinking) ? 0.05 : 0.5;
}

// The dual is an oscillator that a codec's lag drives, and what is coarser than
// innov-int4 lags too far.
constexpr double kMinContraction = 0.95;

void CheckCold(const MethodSettings& s, Problems& problems) {
  const auto refuse = [&](std::string_view key, const auto& is,
                          std::string_view why) {
    problems.Refuse(key, "is ", is, ", but optimizer cold ", why);
  };
  if (!s.static_graph) {
    refuse("mixing.graph", s.graph,
           "needs the same matrix every round: leave it out");
  }
  if (s.overlap_steps != 0) {
    refuse("mixing.overlap_steps", s.overlap_steps,
           "mixes the step just made: leave it out or set 0");
  }
  if (s.mixing_rounds > 1 || s.chebyshev) {
    refuse("mixing.mixing_rounds", s.mixing_rounds,
           "steps and mixes in turn: leave it and mixing.chebyshev out");
  }
  if (s.deadline != "none") {
    refuse("mixing.deadline", s.deadline,
           "needs every message: what comes late swings its dual; leave it "
           "out");
  }
  if (s.replica_memory_mb != 0) {
    refuse("mixing.replica_memory_mb", s.replica_memory_mb,
           "needs replicas on every edge: leave it out");
  }
  if (s.clip_radius > 0) {
    refuse("mixing.clip_radius", s.clip_radius,
           "follows differences as they are: its dual would grow by what is "
           "cut off: leave it out");
  }
  if (s.n_critic > 1 || s.steps_per_round > 1) {
    refuse("step.steps_per_round or n_critic", "above 1",
           "steps and mixes in turn: leave them out");
  }
  if (s.gradient_clip > 0) {
    refuse("step.gradient_clip", s.gradient_clip,
           "learns each peer's own gradient, which is not 0 at the solution: "
           "shortened, it moves where the run ends; leave it out");
  }
  if (s.codec_parts > 1 || s.codec_of_players || !s.codec_has_replica ||
      s.codec_contraction < kMinContraction) {
    refuse("mixing.codec", absl::StrCat("\"", s.codec, "\""),
           "is stable with innov-int8, innov-int4 or dyna, whole: coarser "
           "innovations lag behind the dual, and others have no replica");
  }
  // NIDS needs I − γ(I − W) to have no negative eigenvalue (Li, Shi, Yan, IEEE
  // TSP 2019); of no matrix λmax(I − W) is above 2.  A bound copied from the
  // message has six digits.
  if (s.gamma <= 1.00001 * 0.5) return;
  const double bound = s.stable_gamma() / 2;
  if (s.gamma <= 1.00001 * bound) return;
  problems.Refuse("mixing.gamma", "is ", s.gamma,
                  ", but optimizer cold is stable up to 1/λmax(I − W), ", bound,
                  " on this graph: leave it out");
}

GOSSAMER_METHOD(cold) = {
    .name = "cold",
    .help = {.summary = "primal-dual steps: exact at a constant learning rate",
             .property = "linear to the exact solution (strongly convex)",
             .bits = "4.125",
             .state = "2 per peer, 3 per edge",
             .needs = "lasting neighbours, every message, a static graph",
             .gamma = "0.5",
             .source = "Zhang, You, Xie, IEEE TAC 2023",
             .page = "cold",
             .settings = "step.optimizer=cold mixing.codec=innov-int4"},
    .defaults = {.optimizer = "cold", .overlap_steps = 0, .gamma = GammaOfCold},
    .is_its_optimizer = true,
    .own_codec = kShrinking,
    .step_then_mix = true,
    .check = CheckCold,
    .rule = MakeCold,
};

}  // namespace gossamer
