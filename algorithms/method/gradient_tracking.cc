// Gradient tracking: each peer steps along an estimate of the mean of all
// peers' gradients, which mixes as the parameters do.
//
// Source: Nedić, Olshevsky, Shi, SIAM J. Optim. 2017 (DIGing); with compressed
// innovations Zhao et al., BEER, NeurIPS 2022.

#include <memory>
#include <utility>
#include <vector>

#include "algorithms/base/status_macros.h"
#include "algorithms/game/wrapped_game.h"
#include "algorithms/kernels/device_state.h"
#include "algorithms/method/method.h"

namespace gossamer {
namespace {

// The same segments once more under other names.  Codecs cut payloads by
// segments, so x and t have scales of their own.
ParameterLayout Doubled(const ParameterLayout& layout) {
  std::vector<Segment> segments = layout.segments();
  for (const Segment& s : layout.segments()) {
    segments.push_back(
        {"tracked." + s.name, Player::kDiscriminator, s.shape, {}});
  }
  return ParameterLayout(std::move(segments));
}

// A game whose gradient, at each peer, follows the mean of all peers'
// gradients.
//
// The vector is [x; t]: the parameters of the game inside, then as many floats
// that mix like them.  A gradient g of the game inside moves t by what is new:
//
//   t ← t + g − g_prev        (at first g_prev is t)
//
// and t is what the optimizer sees.  Mixing keeps the sum of all t, so it stays
// the sum of all g; where peers agree, t is the gradient of the average game,
// and a constant learning rate leaves no error.  The sum that an edge
// has added to t is taken back at the end of the edge, whose other end loses
// the opposite.
//
// A correction that comes rounds late wants a smaller rate: quadratics of seven
// peers on a ring, two steps a round, converge at 0.05 with h of 1 and diverge
// with 3; at 0.01 they converge with 8, too.
class TrackedGame final : public WrappedGame, private MixingHooks {
 public:
  // t belongs to the discriminator's extent, so that the generator's is what
  // it was; its segments are named "tracked.*".
  explicit TrackedGame(std::unique_ptr<Game> inner);

  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override { return parameters_; }
  // t, then zeros.
  DeviceSpan<const float> device_gradients() const override {
    return gradients_;
  }
  // Both players at once; else kFailedPrecondition.
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  MixingHooks* hooks() override { return this; }
  void VisitState(StateVisitor& visitor) override;

 private:
  Extent extent() const override { return {size(), size()}; }
  void OnEdgeEnd(DeviceSpan<const float> sum) override;
  void OnNewIncarnation() override;
  std::vector<float> Added() const override;
  size_t size() const { return previous_.size(); }
  DeviceSpan<float> tracked() {
    return parameters_.span().subspan(size(), size());
  }

  const ParameterLayout layout_;
  DeviceVector<float> parameters_;
  DeviceVector<float> gradients_;
  DeviceVector<float> previous_;  // g_prev, and what the next step takes out
};

TrackedGame::TrackedGame(std::unique_ptr<Game> inner)
    : WrappedGame(std::move(inner)),
      layout_(Doubled(game().layout())),
      parameters_(queue(), layout_.size(), "parameters and tracked gradients"),
      gradients_(queue(), layout_.size(), "the tracked gradients"),
      previous_(queue(), game().layout().size(), "the last gradients") {
  queue().Copy(game().device_parameters(), parameters_.span().first(size()));
}

absl::StatusOr<Losses> TrackedGame::Gradient(Players players, RngKey key) {
  if (players != Players::kBoth) {
    return absl::FailedPreconditionError(
        "gradient tracking needs the gradients of both players in every step: "
        "set step.n_critic to 1");
  }
  // The game inside has a vector of its own, since its layout is half of this
  // one's.
  queue().Copy(parameters_.span().first(size()), game().device_parameters());
  GOSSAMER_ASSIGN_OR_RETURN(const Losses losses, game().Gradient(players, key));
  const DeviceSpan<const float> g = game().device_gradients();
  const DeviceSpan<float> out = gradients_.span().first(size());
  queue().Copy(g, out);
  queue().Run(&DeviceKernels::axpy, -1.0f, previous_, out);
  queue().Run(&DeviceKernels::add, out, tracked());
  queue().Copy(tracked(), out);
  queue().Copy(g, previous_.span());
  return losses;
}

// With g_prev = t the next step sets t to the gradient, as at a beginning:
// whatever edges had added belongs to the incarnation before.
void TrackedGame::OnNewIncarnation() {
  queue().Copy(tracked(), previous_.span());
}

// The next step subtracts g_prev, so adding the sum here takes it out of t
// there.
void TrackedGame::OnEdgeEnd(DeviceSpan<const float> sum) {
  queue().Run(&DeviceKernels::add, sum, previous_);
}

std::vector<float> TrackedGame::Added() const {
  std::vector<float> added =
      queue().ToHost(parameters_.span().subspan(size(), size()));
  const std::vector<float> previous = previous_.ToHost();
  for (size_t i = 0; i < size(); ++i) added[i] -= previous[i];
  return added;
}

void TrackedGame::VisitState(StateVisitor& visitor) {
  PrefixedVisitor inner(visitor, "tracked.");
  game().VisitState(inner);
  VisitFloats(visitor, "previous_gradient", queue(), previous_);
}

std::unique_ptr<Game> Track(std::unique_ptr<Game> game) {
  return std::make_unique<TrackedGame>(std::move(game));
}

// That of innov-lm2 is above, those of signs and of top-k are below.
constexpr double kMinContraction = 0.85;

void Check(const MethodSettings& s, Problems& problems) {
  if (s.codec_contraction < kMinContraction) {
    problems.Refuse("mixing.codec", "is \"", s.codec,
                    "\", but what coarse innovations lag behind grows in "
                    "gradient-tracking: take innov-int8, innov-int4 or "
                    "innov-lm2, or diff-int8 where replicas take too much "
                    "memory");
  }
  if (s.codec_of_players) {
    problems.Refuse("mixing.codec", "is \"", s.codec,
                    "\", but gradient-tracking mixes all parameters with the "
                    "gradients that it tracks: take one codec for all");
  }
  if (!s.persistent_edges) {
    problems.Refuse("mixing.graph", "is ", s.graph, ", and edges of ", s.peers,
                    " peers last for some rounds, but gradient-tracking keeps "
                    "what each has brought: take a static graph");
  }
  if (s.n_critic > 1) {
    problems.Refuse(
        "step.n_critic", "is ", s.n_critic,
        ", but gradient-tracking follows both players' gradients in "
        "every step: set it to 1");
  }
  if (s.chebyshev) {
    problems.Refuse("mixing.chebyshev",
                    "is true, which moves tracked gradients by more than "
                    "what edges bring: leave it out");
  }
}

}  // namespace

GOSSAMER_METHOD(gradient_tracking) = {
    .name = "gradient-tracking",
    .help = {.summary = "steps along what follows the mean of all gradients",
             .property = "to the exact solution with sgd, ogda and osg, "
                         "whatever sets peers apart (measured)",
             .bits = "twice the codec's",
             .state = "2 per peer, 1 per edge, and all state of x once more",
             .needs = "a codec without a floor (dense-f32, innov-int, "
                      "innov-lm2, power-gossip)",
             .gamma = "the codec's",
             .source = "Zhao et al. (BEER), NeurIPS 2022",
             .page = "gradient_tracking"},
    .defaults = {.optimizer = "ogda"},
    .check = Check,
    .game = Track,
};

}  // namespace gossamer
