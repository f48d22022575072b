// A GAN as a game: its gradients against differences of its losses, its
// determinism, and its training.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/game/game.h"
#include "gan_models/make_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/testing.h"

namespace gossamer {
namespace gan_game_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

GanSpec Points(const std::string& loss = "wgan-gp") {
  GanSpec spec;
  spec.model = "mlp";
  spec.width = 16;
  spec.latent = 4;
  spec.loss = loss;
  spec.gradient_penalty = 1;
  spec.batch = 16;
  spec.evaluation_samples = 256;
  spec.data.name = "gaussian-mixture";
  return spec;
}

std::unique_ptr<Game> Make(const GanSpec& spec, int rank = 0, int peers = 2,
                           uint64_t seed = 1) {
  auto game = MakeGan(spec, rank, peers, seed, /*threads=*/1);
  EXPECT_TRUE(game.ok()) << game.status();
  return game.ok() ? std::move(*game) : nullptr;
}

std::vector<float> Copy(std::span<const float> x) {
  return {x.begin(), x.end()};
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

double DirectionalDerivative(Game& game, const Segment& s, RngKey direction,
                             RngKey key) {
  const std::vector<float> start = Copy(game.parameters());
  const auto loss_at = [&](double step) {
    for (size_t i = 0; i < s.extent.size; ++i) {
      game.parameters()[s.extent.offset + i] =
          start[s.extent.offset + i] +
          static_cast<float>(step * direction.Gaussian(i));
    }
    const auto losses = game.Gradient(Players::kBoth, key);
    EXPECT_TRUE(losses.ok()) << losses.status();
    return s.player == Player::kGenerator ? (*losses)[0] : (*losses)[1];
  };
  constexpr double kStep = 1e-4;
  const double derivative = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  std::ranges::copy(start, game.parameters().begin());
  return derivative;
}

// Compares gradients with central differences of the player's own loss, along
// random directions in one segment at a time.  With leaky ReLUs the penalty
// jumps where a unit changes sides, so a few directions may disagree, but not
// the median.
void ExpectGradientsOfLosses(Game& game) {
  const RngKey key(5);
  for (const Segment& s : game.layout().segments()) {
    ASSERT_TRUE(game.Gradient(Players::kBoth, key).ok());
    const std::vector<float> gradient =
        Copy(game.gradients().subspan(s.extent.offset, s.extent.size));
    double norm = 0;
    for (float g : gradient) norm += double{g} * g;
    constexpr int kDirections = 15;
    std::vector<double> errors;
    for (int d = 0; d < kDirections; ++d) {
      const RngKey direction = RngKey(9).Fold(s.name).Fold(d);
      double expected = 0;
      for (size_t i = 0; i < gradient.size(); ++i) {
        expected += direction.Gaussian(i) * gradient[i];
      }
      errors.push_back(
          std::abs(DirectionalDerivative(game, s, direction, key) - expected));
    }
    std::ranges::nth_element(errors, errors.begin() + kDirections / 2);
    // The tolerance is of losses of order 1 in float, divided by 2e-4.
    EXPECT_LT(errors[kDirections / 2], 0.02 * std::sqrt(norm) + 3e-3) << s.name;
  }
}

TEST(GanGradientTest, IsThatOfEachPlayersLoss) {
  for (const char* loss : {"wgan-gp", "hinge", "non-saturating"}) {
    SCOPED_TRACE(loss);
    const auto game = Make(Points(loss));
    ExpectGradientsOfLosses(*game);
  }
}

class ImageGameTest : public testing::Test {
 protected:
  ImageGameTest() {
    EXPECT_TRUE(WriteCifar10(folder_.path(), SmallData(100, 30)).ok());
  }
  GanSpec Images(const std::string& model = "up") const {
    GanSpec spec;
    spec.model = model;
    spec.width = 8;
    spec.latent = 8;
    spec.batch = 4;
    spec.evaluation_samples = 64;
    spec.data.path = folder_.path();
    return spec;
  }
  const TemporaryFolder folder_;
};

// Expects the same sums in another order: each segment agrees within some float
// roundings of its largest gradient.
void ExpectClose(const Game& a, const Game& b) {
  for (const Segment& s : a.layout().segments()) {
    const auto x = a.gradients().subspan(s.extent.offset, s.extent.size);
    const auto y = b.gradients().subspan(s.extent.offset, s.extent.size);
    double largest = 1e-6, difference = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      largest = std::max<double>(largest, std::abs(x[i]));
      difference = std::max<double>(difference, std::abs(x[i] - y[i]));
    }
    EXPECT_LT(difference, 2e-4 * largest) << s.name;
  }
}

TEST_F(ImageGameTest, OneBackwardPassServesBothPlayers) {
  for (const char* model : {"up", "wgan-gp-resnet", "dcgan"}) {
    SCOPED_TRACE(model);
    GanSpec spec = Images(model);
    const auto one = Make(spec);
    spec.one_backward = false;
    const auto two = Make(spec);
    ASSERT_TRUE(SameBits(one->parameters(), two->parameters()));
    const auto a = one->Gradient(Players::kBoth, RngKey(1));
    const auto b = two->Gradient(Players::kBoth, RngKey(1));
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_NEAR((*a)[0], (*b)[0], 1e-4 + 1e-5 * std::abs((*b)[0]));
    EXPECT_NEAR((*a)[1], (*b)[1], 1e-4 + 1e-5 * std::abs((*b)[1]));
    ExpectClose(*one, *two);
  }
}

TEST_F(ImageGameTest, EveryModelAndLossHasGradientsEverywhere) {
  for (const char* model : {"up", "wgan-gp-resnet", "dcgan", "sagan"}) {
    for (const char* loss : {"wgan-gp", "hinge", "non-saturating"}) {
      SCOPED_TRACE(std::string(model) + " " + loss);
      GanSpec spec = Images(model);
      spec.loss = loss;
      const auto game = Make(spec);
      for (const Segment& s : game->layout().segments()) {
        // Attention begins without a part in the picture.
        if (s.name.ends_with("sigma_ratio")) {
          game->parameters()[s.extent.offset] = 0.5f;
        }
      }
      ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(1)).ok());
      for (const Segment& s : game->layout().segments()) {
        // A difference of scores does not depend on a common shift.
        if (s.name == "discriminator.linear.bias" ||
            s.name == "discriminator.d_sn_linear.bias") {
          continue;
        }
        const auto g =
            game->gradients().subspan(s.extent.offset, s.extent.size);
        EXPECT_TRUE(std::ranges::any_of(g, [](float v) { return v != 0; }))
            << s.name;
      }
    }
  }
}

TEST_F(ImageGameTest, DiscriminatorAloneLeavesTheGeneratorAlone) {
  for (bool one_backward : {true, false}) {
    GanSpec spec = Images();
    spec.one_backward = one_backward;
    const auto both = Make(spec), alone = Make(spec);
    ASSERT_TRUE(both->Gradient(Players::kBoth, RngKey(1)).ok());
    ASSERT_TRUE(alone->Gradient(Players::kBoth, RngKey(2)).ok());
    const Extent g = alone->layout().extent(Player::kGenerator);
    const auto before = Copy(alone->gradients().subspan(g.offset, g.size));
    ASSERT_TRUE(alone->Gradient(Players::kDiscriminator, RngKey(1)).ok());
    EXPECT_TRUE(SameBits(before, alone->gradients().subspan(g.offset, g.size)));
    const Extent d = alone->layout().extent(Player::kDiscriminator);
    const auto x = both->gradients().subspan(d.offset, d.size);
    const auto y = alone->gradients().subspan(d.offset, d.size);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(x[i], y[i], 1e-4 * std::abs(x[i]) + 1e-5) << i;
    }
  }
}

TEST_F(ImageGameTest, SameSeedSameBitsForAllPeers) {
  const auto a = Make(Images(), 0), b = Make(Images(), 0);
  const auto other_rank = Make(Images(), 1),
             other_seed = Make(Images(), 0, 2, 2);
  EXPECT_TRUE(SameBits(a->parameters(), b->parameters()));
  EXPECT_TRUE(SameBits(a->parameters(), other_rank->parameters()));
  EXPECT_FALSE(SameBits(a->parameters(), other_seed->parameters()));
  EXPECT_EQ(a->layout().fingerprint(), other_rank->layout().fingerprint());
  for (int step = 0; step < 3; ++step) {
    const auto x = a->Gradient(Players::kBoth, RngKey(step));
    const auto y = b->Gradient(Players::kBoth, RngKey(step));
    ASSERT_TRUE(x.ok() && y.ok());
    EXPECT_EQ((*x)[0], (*y)[0]);
    EXPECT_EQ((*x)[1], (*y)[1]);
    EXPECT_TRUE(SameBits(a->gradients(), b->gradients()));
    ASSERT_TRUE(other_rank->Gradient(Players::kBoth, RngKey(step)).ok());
    EXPECT_FALSE(SameBits(a->gradients(), other_rank->gradients()));
  }
}

// Keeps the state it visits, or puts it back.
class Keeper : public StateVisitor {
 public:
  bool loads() const override { return loading; }
  void Floats(std::string_view name, std::span<float> values) override {
    std::vector<float>& kept = kept_[std::string(name)];
    if (loading) {
      std::ranges::copy(kept, values.begin());
    } else {
      kept.assign(values.begin(), values.end());
    }
  }
  void Counter(std::string_view, uint64_t&) override { ADD_FAILURE(); }
  void Bytes(std::string_view, std::vector<std::byte>&) override {
    ADD_FAILURE();
  }
  const std::map<std::string, std::vector<float>>& kept() const {
    return kept_;
  }
  bool loading = false;

 private:
  std::map<std::string, std::vector<float>> kept_;
};

TEST_F(ImageGameTest, StateIsWhatSeparatesTwoConditionalGames) {
  const auto game = Make(Images("sagan"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(i)).ok());
  }
  Keeper saved;
  game->VisitState(saved);
  // The vectors of both players' power iterations, beside the statistics.
  EXPECT_TRUE(saved.kept().contains("generator.g_block1.snconv1.u"));
  EXPECT_TRUE(saved.kept().contains("generator.g_block1.cbn_0.running_mean"));
  EXPECT_TRUE(saved.kept().contains("discriminator.d_embedding.u"));
  const auto resumed = Make(Images("sagan")), fresh = Make(Images("sagan"));
  saved.loading = true;
  resumed->VisitState(saved);
  for (Game* g : {game.get(), resumed.get(), fresh.get()}) {
    ASSERT_TRUE(g->Gradient(Players::kBoth, RngKey(7)).ok());
  }
  EXPECT_TRUE(SameBits(game->gradients(), resumed->gradients()));
  EXPECT_FALSE(SameBits(game->gradients(), fresh->gradients()));
  Keeper a, b;
  game->VisitState(a);
  resumed->VisitState(b);
  EXPECT_EQ(a.kept(), b.kept());
  EXPECT_NE(a.kept(), saved.kept());
}

TEST_F(ImageGameTest, ADiscriminatorsStepKeepsItsOwnPowerIterationAlone) {
  const auto game = Make(Images("sagan"));
  Keeper before, after;
  game->VisitState(before);
  ASSERT_TRUE(game->Gradient(Players::kDiscriminator, RngKey(1)).ok());
  game->VisitState(after);
  for (const auto& [name, values] : before.kept()) {
    const bool moves = name.starts_with("discriminator.");
    EXPECT_EQ(values != after.kept().at(name), moves) << name;
  }
}

TEST_F(ImageGameTest, BatchesOfAConditionalGameAreOfTheChosenClasses) {
  GanSpec spec = Images("sagan");
  spec.data.classes = {"seven", "3"};
  const auto game = Make(spec);
  bool found = false;
  for (const Segment& s : game->layout().segments()) {
    if (!s.name.ends_with("embedding_map")) continue;
    EXPECT_EQ(s.shape[0], 2);
    found = true;
  }
  EXPECT_TRUE(found);
  // Peers draw labels of their own, and the same peer the same ones.
  const auto again = Make(spec), other = Make(spec, 1);
  for (Game* g : {game.get(), again.get(), other.get()}) {
    ASSERT_TRUE(g->Gradient(Players::kBoth, RngKey(4)).ok());
  }
  EXPECT_TRUE(SameBits(game->gradients(), again->gradients()));
  EXPECT_FALSE(SameBits(game->gradients(), other->gradients()));
  spec.data.classes = {"seven", "7"};
  EXPECT_THAT(std::string(MakeGan(spec, 0, 1, 1, 1).status().message()),
              HasSubstr("name each once"));
}

TEST_F(ImageGameTest, AConditionalGameLooksByClass) {
  const auto game = Make(Images("sagan"));
  Evaluator& look = *game->evaluator();
  const Extent g = game->layout().extent(Player::kGenerator);
  const auto generator = Copy(game->parameters().subspan(g.offset, g.size));
  const auto score = look.Score(generator, RngKey(1));
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_EQ(*look.Score(generator, RngKey(1)), *score);
  const std::string path = folder_ / "grid.png";
  ASSERT_TRUE(look.WriteSamples(generator, RngKey(1), path).ok());
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
}

TEST_F(ImageGameTest, StateIsWhatSeparatesTwoGames) {
  const auto game = Make(Images());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(i)).ok());
  }
  Keeper saved;
  game->VisitState(saved);
  EXPECT_TRUE(saved.kept().contains("generator.norm0.running_mean"));
  EXPECT_TRUE(saved.kept().contains("generator.norm3.running_var"));
  const auto resumed = Make(Images());
  saved.loading = true;
  resumed->VisitState(saved);
  ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(7)).ok());
  ASSERT_TRUE(resumed->Gradient(Players::kBoth, RngKey(7)).ok());
  EXPECT_TRUE(SameBits(game->gradients(), resumed->gradients()));
  Keeper a, b;
  game->VisitState(a);
  resumed->VisitState(b);
  EXPECT_EQ(a.kept(), b.kept());
  EXPECT_NE(a.kept(), saved.kept());
}

TEST_F(ImageGameTest, NonFiniteGradientsAreReportedAndChangeNothing) {
  for (const char* model : {"up", "sagan"}) {
    SCOPED_TRACE(model);
    const auto game = Make(Images(model));
    ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(0)).ok());
    Keeper before;
    game->VisitState(before);
    for (float poison : {std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity()}) {
      const size_t at = game->layout().extent(Player::kDiscriminator).offset;
      const float good = game->parameters()[at];
      game->parameters()[at] = poison;
      const auto parameters = Copy(game->parameters());
      const auto result = game->Gradient(Players::kBoth, RngKey(1));
      EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(result.status().message()),
                  AnyOf(HasSubstr("generator."), HasSubstr("discriminator.")));
      EXPECT_TRUE(SameBits(parameters, game->parameters()));
      EXPECT_TRUE(std::ranges::all_of(game->gradients(),
                                      [](float g) { return g == 0; }));
      Keeper after;
      game->VisitState(after);
      EXPECT_EQ(before.kept(), after.kept());
      game->parameters()[at] = good;
      EXPECT_TRUE(game->Gradient(Players::kBoth, RngKey(0)).ok());
      before.loading = true;
      game->VisitState(before);
      before.loading = false;
    }
  }
}

TEST_F(ImageGameTest, LookingChangesNothing) {
  const auto game = Make(Images()), untouched = Make(Images());
  Evaluator& look = *game->evaluator();
  EXPECT_EQ(look.score_name(), "proxy-fid");
  EXPECT_EQ(look.score_basis(), "64 generated, 30 held-out");
  const Extent g = game->layout().extent(Player::kGenerator);
  const auto generator = Copy(game->parameters().subspan(g.offset, g.size));
  const auto first = look.Score(generator, RngKey(1));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_GT(*first, 0);
  EXPECT_EQ(*look.Score(generator, RngKey(1)), *first);
  EXPECT_NE(*look.Score(generator, RngKey(2)), *first);
  const std::string path = folder_ / "grid.png";
  ASSERT_TRUE(look.WriteSamples(generator, RngKey(1), path).ok());
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
  EXPECT_FALSE(
      look.WriteSamples(generator, RngKey(1), "/no/such/folder.png").ok());
  EXPECT_EQ(
      look.Score(std::span(generator).first(10), RngKey(1)).status().code(),
      absl::StatusCode::kInvalidArgument);

  ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(3)).ok());
  ASSERT_TRUE(untouched->Gradient(Players::kBoth, RngKey(3)).ok());
  EXPECT_TRUE(SameBits(game->gradients(), untouched->gradients()));
  Keeper a, b;
  game->VisitState(a);
  untouched->VisitState(b);
  EXPECT_EQ(a.kept(), b.kept());
}

// Plain gradient descent-ascent with a small rate moves the points outwards,
// towards the circle of the data.
TEST(GanTrainingTest, AFewStepsImproveTheScore) {
  const auto game = Make(Points(), 0, 1);
  Evaluator& look = *game->evaluator();
  EXPECT_EQ(look.score_name(), "energy-distance");
  const size_t generator = game->layout().extent(Player::kGenerator).size;
  const auto score = [&] {
    return look.Score(game->parameters().first(generator), RngKey(1)).value();
  };
  const double before = score();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(2).Fold(i)).ok());
    for (size_t j = 0; j < game->parameters().size(); ++j) {
      game->parameters()[j] -= 0.05f * game->gradients()[j];
    }
  }
  EXPECT_LT(score(), 0.5 * before);
}

// The relative Euclidean distance of a player's gradients.
double Distance(const Game& a, const Game& b, Player player) {
  const Extent extent = a.layout().extent(player);
  double difference = 0, norm = 0;
  for (size_t i = extent.offset; i < extent.offset + extent.size; ++i) {
    difference += std::pow(double{a.gradients()[i]} - b.gradients()[i], 2);
    norm += std::pow(double{a.gradients()[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

// With a penalty that is nearly all of the loss, as it is derived twice, and
// with a loss whose generator takes a pass of its own.
TEST_F(ImageGameTest, Bfloat16StepsAreNearThoseOfFloat32) {
  for (const char* model : {"mlp", "up", "wgan-gp-resnet", "dcgan", "sagan"}) {
    for (const char* loss : {"wgan-gp", "hinge"}) {
      SCOPED_TRACE(std::string(model) + " " + loss);
      GanSpec spec = std::string(model) == "mlp" ? Points(loss) : Images(model);
      spec.loss = loss;
      spec.gradient_penalty = 1000;
      const auto full = Make(spec);
      spec.precision = "bf16";
      const auto half = Make(spec);
      ASSERT_TRUE(SameBits(full->parameters(), half->parameters()));
      const auto a = full->Gradient(Players::kBoth, RngKey(1));
      const auto b = half->Gradient(Players::kBoth, RngKey(1));
      ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
      const double of_discriminator =
          Distance(*full, *half, Player::kDiscriminator);
      EXPECT_GT(of_discriminator, 0);
      EXPECT_LT(of_discriminator, 0.1);
      // Eight bits through all layers of both, and BatchNorm over four.
      EXPECT_LT(Distance(*full, *half, Player::kGenerator), 0.2);
      EXPECT_NEAR((*a)[1], (*b)[1], 0.02 * (1 + std::abs((*a)[1])));
    }
  }
}

TEST(GanTrainingTest, Bfloat16StepsImproveTheScore) {
  GanSpec spec = Points();
  spec.precision = "bf16";
  const auto game = Make(spec, 0, 1);
  const size_t generator = game->layout().extent(Player::kGenerator).size;
  const auto score = [&] {
    return game->evaluator()
        ->Score(game->parameters().first(generator), RngKey(1))
        .value();
  };
  const double before = score();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(2).Fold(i)).ok());
    for (size_t j = 0; j < game->parameters().size(); ++j) {
      game->parameters()[j] -= 0.05f * game->gradients()[j];
    }
  }
  // Less than float32's half, since rounding moves where 300 steps lead.
  EXPECT_LT(score(), 0.75 * before);
}

TEST(MakeGanTest, RefusesWithTheFieldAndTheKnownNames) {
  const auto message = [](GanSpec spec, int threads = 1) {
    const auto game = MakeGan(spec, 0, 1, 1, threads);
    EXPECT_EQ(game.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(game.status().message());
  };
  GanSpec spec = Points();
  spec.model = "biggan";
  EXPECT_THAT(message(spec),
              HasSubstr("up, wgan-gp-resnet, dcgan, sagan, mlp"));
  spec = Points();
  spec.loss = "lsgan";
  EXPECT_THAT(message(spec), HasSubstr("wgan-gp, hinge, non-saturating"));
  spec = Points();
  spec.precision = "fp8";
  EXPECT_THAT(message(spec), HasSubstr("float32, bf16"));
  spec = Points();
  spec.data.name = "mnist";
  EXPECT_THAT(message(spec),
              HasSubstr("emoji-32, emoji-64, emoji-128, cifar-10"));
  spec = Points();
  spec.model = "up";
  EXPECT_THAT(message(spec), HasSubstr("mlp"));
  spec = Points();
  spec.resolution = 64;
  EXPECT_THAT(message(spec), HasSubstr("resolution is 64"));
  spec = Points();
  spec.batch = 1;
  EXPECT_THAT(message(spec), HasSubstr("batch is 1"));
  spec = Points();
  spec.width = 7;
  EXPECT_THAT(message(spec), HasSubstr("width is 7"));
  spec = Points();
  spec.latent = 0;
  EXPECT_THAT(message(spec), HasSubstr("latent is 0"));
  spec = Points();
  spec.gradient_penalty = std::nan("");
  EXPECT_THAT(message(spec), HasSubstr("gradient_penalty"));
  spec = Points();
  spec.evaluation_samples = 1;
  EXPECT_THAT(message(spec), HasSubstr("evaluation_samples is 1"));
  EXPECT_THAT(message(Points(), 0), HasSubstr("threads"));
}

}  // namespace gan_game_test
}  // namespace gossamer
