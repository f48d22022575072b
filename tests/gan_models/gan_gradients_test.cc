// The program gan_gradients on the self-attention GAN, against a second
// implementation in double precision: pictures, losses, vectors of the power
// iterations, and gradients as central differences of the other's losses.

#include "tests/gan_models/gan_gradients.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/safetensors.h"
#include "tests/gan_models/sagan_reference.h"
#include "tests/gan_models/testing.h"

namespace gossamer {
namespace gan_gradients_test {

using ::testing::HasSubstr;

GradientsInput SmallSagan() {
  return {.network = {.model = "sagan",
                      .width = 4,
                      .latent = 6,
                      .resolution = 32,
                      .classes = 3},
          .loss = "hinge",
          .batch = 2,
          .seed = 1};
}

NamedValues InDouble(const Safetensors& file) {
  NamedValues named;
  for (const auto& [name, tensor] : file.floats) {
    named[name] = {tensor.shape, {tensor.values.begin(), tensor.values.end()}};
  }
  return named;
}

void ExpectClose(const std::vector<float>& found,
                 const std::vector<double>& expected, double tolerance,
                 const std::string& name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }
  EXPECT_LT(difference, tolerance * largest) << name;
}

class GanGradientsTest : public testing::Test {
 protected:
  // Runs the program's two functions.
  void Compute(const GradientsInput& spec) {
    absl::Status status = WriteGradientsInput(spec, folder_ / "in");
    ASSERT_TRUE(status.ok()) << status;
    status = ComputeGradients(folder_ / "in", folder_ / "out");
    ASSERT_TRUE(status.ok()) << status;
    in_ = *ReadSafetensors(folder_ / "in");
    out_ = *ReadSafetensors(folder_ / "out");
  }
  const TemporaryFolder folder_;
  Safetensors in_, out_;
};

TEST_F(GanGradientsTest, PicturesAndLossesAreTheReferences) {
  for (int resolution : {32, 64}) {
    SCOPED_TRACE(resolution);
    GradientsInput spec = SmallSagan();
    spec.network.resolution = resolution;
    Compute(spec);
    const SaganReference reference(InDouble(in_), resolution);
    const Values fake = reference.Fake();
    ExpectClose(out_.floats["fake"].values, fake.values, 1e-4, "fake");
    EXPECT_NEAR(out_.floats["loss.generator"].values[0],
                reference.GeneratorLoss(), 1e-4);
    EXPECT_NEAR(out_.floats["loss.discriminator"].values[0],
                reference.DiscriminatorLoss(fake), 1e-4);
    for (const auto& [name, tensor] : in_.floats) {
      if (!name.ends_with(".u")) continue;
      ExpectClose(out_.floats["statistic." + name].values, reference.u(name),
                  1e-4, name);
    }
  }
}

TEST_F(GanGradientsTest, GradientsAreDifferencesOfTheReferencesLosses) {
  Compute(SmallSagan());
  SaganReference reference(InDouble(in_), 32);
  const Values fake = reference.Fake();
  const auto loss = [&](bool of_generator) {
    return of_generator ? reference.GeneratorLoss()
                        : reference.DiscriminatorLoss(fake);
  };
  int compared = 0;
  for (const auto& [name, tensor] : out_.floats) {
    if (!name.starts_with("gradient.")) continue;
    const std::string weight = name.substr(std::string("gradient.").size());
    const bool of_generator = weight.starts_with("generator.");
    std::vector<double>& values = reference.tensors()[weight].values;
    const std::vector<double> start = values;
    // Along the gradient itself, where an error of any part shows, and along a
    // random direction.
    for (bool along : {true, false}) {
      double norm = 0, gradient = 0;
      std::vector<double> direction(values.size());
      for (size_t i = 0; i < direction.size(); ++i) {
        direction[i] =
            along ? tensor.values[i] : RngKey(3).Fold(weight).Gaussian(i);
        norm += direction[i] * direction[i];
        gradient += double{tensor.values[i]} * tensor.values[i];
      }
      norm = std::sqrt(norm);
      gradient = std::sqrt(gradient);
      ASSERT_GT(gradient, 0) << weight;
      double expected = 0;
      for (size_t i = 0; i < direction.size(); ++i) {
        direction[i] /= norm;
        expected += direction[i] * tensor.values[i];
      }
      constexpr double kStep = 1e-6;
      const auto at = [&](double step) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = start[i] + step * direction[i];
        }
        return loss(of_generator);
      };
      const double difference = (at(kStep) - at(-kStep)) / (2 * kStep);
      values = start;
      // Biases before a normalisation have none but rounding's gradient.
      EXPECT_NEAR(difference, expected, 1e-3 * gradient + 1e-5) << weight;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 71);
}

TEST_F(GanGradientsTest, EveryLossAndModelHasAnInput) {
  for (const char* model : {"up", "mlp", "sagan"}) {
    for (const char* loss : {"hinge", "wgan-gp", "non-saturating"}) {
      SCOPED_TRACE(std::string(model) + " " + loss);
      GradientsInput spec = SmallSagan();
      spec.network.model = model;
      spec.loss = loss;
      Compute(spec);
      EXPECT_TRUE(std::isfinite(out_.floats["loss.generator"].values[0]));
      EXPECT_EQ(out_.metadata["loss"], loss);
    }
  }
}

TEST_F(GanGradientsTest, SaysWhichTensorIsWrong) {
  Compute(SmallSagan());
  const auto message = [&](const std::string& without) {
    SafetensorsView view;
    view.metadata = in_.metadata;
    for (const auto& [name, tensor] : in_.floats) {
      if (name != without) {
        view.floats.push_back({name, tensor.shape, tensor.values});
      }
    }
    if (without.empty()) view.metadata["width"] = "8";
    EXPECT_TRUE(WriteSafetensors(folder_ / "bad", view).ok());
    const absl::Status status =
        ComputeGradients(folder_ / "bad", folder_ / "none");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message("latents"), HasSubstr("no tensor latents"));
  EXPECT_THAT(message("generator.g_bn.gamma"), HasSubstr("g_bn.gamma"));
  EXPECT_THAT(message("labels.fake"), HasSubstr("labels.fake"));
  EXPECT_THAT(message(""), HasSubstr("tensor generator."));
  EXPECT_EQ(ComputeGradients("/no/file", folder_ / "none").code(),
            absl::StatusCode::kNotFound);
}

}  // namespace gan_gradients_test
}  // namespace gossamer
