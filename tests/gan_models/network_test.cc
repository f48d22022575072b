// The networks' numbers of parameters, names of segments, and first values.

#include "gan_models/networks/network.h"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gan_models/gan_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace network_test {

using ::testing::HasSubstr;

size_t Count(Player player, const NetworkSpec& spec) {
  const auto network = Network::Create(player, spec);
  EXPECT_TRUE(network.ok()) << network.status();
  return (*network)->tensors().parameter_count();
}

// The ResNet's numbers are those of Gulrajani et al.'s code for CIFAR-10.
TEST(NetworkTest, ModelsHaveTheirNumberOfParameters) {
  const NetworkSpec resnet = {
      .model = "wgan-gp-resnet", .width = 128, .latent = 128};
  EXPECT_EQ(Count(Player::kGenerator, resnet), 1204483u);
  EXPECT_EQ(Count(Player::kDiscriminator, resnet), 1053825u);
  const NetworkSpec up = {.model = "up", .width = 16, .latent = 64};
  EXPECT_EQ(Count(Player::kGenerator, up), 91267u);
  EXPECT_EQ(Count(Player::kDiscriminator, up), 42865u);
  // DCGAN has 16 (z 4w + 4w 2w + 2w w + w 3) weights and 2 (4w + 2w + w) values
  // of BatchNorm.
  const NetworkSpec dcgan = {.model = "dcgan", .width = 64, .latent = 100};
  EXPECT_EQ(Count(Player::kGenerator, dcgan), 1068928u);
  EXPECT_EQ(Count(Player::kDiscriminator, dcgan), 663296u);
  NetworkSpec critic = dcgan;
  critic.discriminator_batch_norm = false;
  EXPECT_EQ(Count(Player::kDiscriminator, critic), 663296u - 2 * (128 + 256));
}

// The numbers of Zhang et al.'s code for ImageNet at 128x128.
TEST(NetworkTest, SaganHasItsPublishedNumberOfParameters) {
  const NetworkSpec published = {.model = "sagan",
                                 .width = 64,
                                 .latent = 128,
                                 .resolution = 128,
                                 .classes = 1000};
  EXPECT_EQ(Count(Player::kGenerator, published), 42078852u);
  EXPECT_EQ(Count(Player::kDiscriminator, published), 39463618u);
}

std::map<std::string, std::vector<int64_t>> ShapesOf(Player player,
                                                     const NetworkSpec& spec) {
  const auto network = Network::Create(player, spec);
  EXPECT_TRUE(network.ok()) << network.status();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const Segment& s : (*network)->tensors().parameters()) {
    shapes[s.name] = s.shape;
  }
  return shapes;
}

using Shape = std::vector<int64_t>;

TEST(NetworkTest, SaganHasItsPublishedNamesAndShapes) {
  NetworkSpec spec = {.model = "sagan",
                      .width = 64,
                      .latent = 128,
                      .resolution = 128,
                      .classes = 1000};
  auto g = ShapesOf(Player::kGenerator, spec);
  EXPECT_EQ(g["generator.g_snh0.Matrix"], (Shape{16384, 128}));
  EXPECT_EQ(g["generator.g_block1.cbn_0.gamma"], (Shape{1000, 1024}));
  EXPECT_EQ(g["generator.g_block3.snconv1.w"], (Shape{256, 512, 3, 3}));
  EXPECT_EQ(g["generator.g_block5.snconv3.biases"], (Shape{64}));
  EXPECT_EQ(g["generator.g_non_local.sn_conv_theta.w"], (Shape{32, 256, 1, 1}));
  EXPECT_EQ(g["generator.g_non_local.sigma_ratio"], Shape{});
  EXPECT_EQ(g["generator.g_bn.beta"], (Shape{64}));
  EXPECT_EQ(g["generator.g_snconv_last.w"], (Shape{3, 64, 3, 3}));
  auto d = ShapesOf(Player::kDiscriminator, spec);
  EXPECT_EQ(d["discriminator.d_optimized_block1.sn_conv1.w"],
            (Shape{64, 3, 3, 3}));
  EXPECT_EQ(d["discriminator.d_non_local.sn_conv_attn.w"],
            (Shape{128, 64, 1, 1}));
  EXPECT_EQ(d["discriminator.d_block5.sn_conv3.w"], (Shape{1024, 512, 1, 1}));
  EXPECT_FALSE(d.contains("discriminator.d_block6.sn_conv3.w"));
  EXPECT_EQ(d["discriminator.d_sn_linear.Matrix"], (Shape{1, 1024}));
  EXPECT_EQ(d["discriminator.d_embedding.embedding_map"], (Shape{1000, 1024}));
  // Smaller pictures leave out the blocks at their side.
  spec.resolution = 32;
  g = ShapesOf(Player::kGenerator, spec);
  EXPECT_EQ(g["generator.g_block3.snconv1.w"], (Shape{256, 512, 3, 3}));
  EXPECT_FALSE(g.contains("generator.g_block4.snconv1.w"));
  EXPECT_EQ(g["generator.g_non_local.sn_conv_theta.w"], (Shape{64, 512, 1, 1}));
  d = ShapesOf(Player::kDiscriminator, spec);
  EXPECT_EQ(d["discriminator.d_optimized_block1.sn_conv1.w"],
            (Shape{256, 3, 3, 3}));
  EXPECT_EQ(d["discriminator.d_non_local.sn_conv_theta.w"],
            (Shape{32, 256, 1, 1}));
}

TEST(NetworkTest, SaganRefusesWhatItCannotBe) {
  const NetworkSpec good = {.model = "sagan", .width = 8, .resolution = 64};
  EXPECT_TRUE(Network::Create(Player::kGenerator, good).ok());
  NetworkSpec bad = good;
  bad.width = 6;
  EXPECT_THAT(Network::Create(Player::kGenerator, bad).status().ToString(),
              HasSubstr("width is 6"));
  bad = good;
  bad.resolution = 256;
  EXPECT_THAT(Network::Create(Player::kGenerator, bad).status().ToString(),
              HasSubstr("resolution is 256"));
  bad = good;
  bad.classes = 0;
  EXPECT_THAT(Network::Create(Player::kGenerator, bad).status().ToString(),
              HasSubstr("0 classes"));
  bad = good;
  bad.model = "up";
  EXPECT_THAT(Network::Create(Player::kGenerator, bad).status().ToString(),
              HasSubstr("model up"));
}

TEST(NetworkTest, SegmentsAreNamedOnceAndCoverTheVector) {
  for (std::string_view model : ModelNames()) {
    for (Player player : {Player::kGenerator, Player::kDiscriminator}) {
      const auto network =
          Network::Create(player, {.model = std::string(model)});
      ASSERT_TRUE(network.ok());
      std::set<std::string> names;
      size_t count = 0;
      for (const Segment& s : (*network)->tensors().parameters()) {
        EXPECT_TRUE(names.insert(s.name).second) << s.name;
        EXPECT_EQ(s.player, player);
        size_t n = 1;
        for (int64_t d : s.shape) n *= static_cast<size_t>(d);
        count += n;
      }
      EXPECT_EQ(count, (*network)->tensors().parameter_count());
    }
  }
}

TEST(NetworkTest, FirstValuesHaveTheirSpread) {
  const auto network =
      Network::Create(Player::kDiscriminator,
                      {.model = "wgan-gp-resnet", .width = 64, .latent = 64});
  ASSERT_TRUE(network.ok());
  const TensorTable& tensors = (*network)->tensors();
  std::vector<float> values(tensors.parameter_count()), again(values.size());
  tensors.Initialize(1, values);
  tensors.Initialize(1, again);
  EXPECT_EQ(values, again);
  tensors.Initialize(2, again);
  EXPECT_NE(values, again);
  size_t offset = 0;
  for (const Segment& s : tensors.parameters()) {
    size_t n = 1;
    for (int64_t d : s.shape) n *= static_cast<size_t>(d);
    double square = 0;
    for (size_t i = 0; i < n; ++i) square += std::pow(values[offset + i], 2);
    if (s.name == "discriminator.block3.conv1.weight") {
      // The deviation is sqrt(4 / (fan_in + fan_out)), as tflib's he_init has
      // it.
      EXPECT_NEAR(std::sqrt(square / n), std::sqrt(4.0 / (2 * 64 * 9)), 1e-3);
    } else if (s.name == "discriminator.block2.shortcut.weight") {
      EXPECT_NEAR(std::sqrt(square / n), std::sqrt(2.0 / (2 * 64)), 3e-3);
    } else if (s.shape.size() == 1) {
      EXPECT_EQ(square, 0) << s.name;
    }
    offset += n;
  }
}

}  // namespace network_test
}  // namespace gossamer
