// `gossamer-models` as functions: samples, scores, exported generators, and
// rendered data.

#include "runtime/cli/models_commands.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gan_models/evaluation/features.h"
#include "gan_models/make_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/base/safetensors.h"
#include "tests/gan_models/testing.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

// TorchScript of x -> (f, 10 f) with f = x.mean([2, 3]) / 255, and of x -> x.
constexpr char kScript[] = "tests/golden/features_and_logits.pt";
constexpr char kNotFeatures[] = "tests/golden/not_features.pt";

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

GanSpec SmallGan(const std::string& folder) {
  GanSpec gan;
  gan.width = 8;
  gan.latent = 8;
  gan.evaluation_samples = 64;
  gan.data.path = folder;
  return gan;
}

class ModelsCommandsTest : public testing::Test {
 protected:
  ModelsCommandsTest() : gan_(SmallGan(folder_.path())) {
    EXPECT_TRUE(WriteCifar10(folder_.path(), SmallData(50, 30)).ok());
    game_ = std::move(*MakeGan(gan_, 0, 1, 1, 1));
    const auto x = game_->parameters();
    const auto generator =
        x.first(game_->layout().extent(Player::kGenerator).size);
    EXPECT_TRUE(Write("state", {{"parameters", x}, {"ema", generator}}));
  }
  bool Write(const std::string& name,
             std::vector<std::pair<std::string, std::span<const float>>> all) {
    SafetensorsView view;
    for (const auto& [tensor, values] : all) {
      view.floats.push_back(
          {tensor, {static_cast<int64_t>(values.size())}, values});
    }
    return WriteSafetensors(folder_ / name, view).ok();
  }
  std::string EvaluateJson(EvaluateSpec spec) {
    spec.gan = gan_;
    spec.json = true;
    testing::internal::CaptureStdout();
    const absl::Status status = Evaluate(spec);
    const std::string out = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  const TemporaryFolder folder_;
  const GanSpec gan_;
  std::unique_ptr<Game> game_;
};

TEST_F(ModelsCommandsTest, SamplesAreAFunctionOfFileAndSeed) {
  const auto picture = [&](const std::string& out, uint64_t seed) {
    SampleSpec spec;
    spec.gan = gan_;
    spec.files.paths = {folder_ / "state"};
    spec.out = folder_ / out;
    spec.seed = seed;
    const absl::Status status = Sample(spec);
    EXPECT_TRUE(status.ok()) << status;
    std::ifstream file(spec.out, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(picture("a.png", 1), picture("b.png", 1));
  EXPECT_NE(picture("a.png", 1), picture("c.png", 2));
}

// The pictures of one class, chosen by its name or its number.
TEST_F(ModelsCommandsTest, SamplesOfAClass) {
  GanSpec gan = gan_;
  gan.model = "sagan";
  gan.width = 4;
  const auto game = MakeGan(gan, 0, 1, 1, 1);
  ASSERT_TRUE(game.ok()) << game.status();
  const std::span<float> x = (*game)->parameters();
  // All classes begin alike.
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] += static_cast<float>(0.1 * RngKey(1).Gaussian(i));
  }
  ASSERT_TRUE(Write("conditional", {{"parameters", x}}));
  // The names of emoji are known without their files, and those of CIFAR are
  // not.
  gan.data.name = "cifar-10";
  const auto sample = [&](const std::string& of_class, const GanSpec& of,
                          const std::string& file) {
    SampleSpec spec;
    spec.gan = of;
    spec.files.paths = {folder_ / file};
    spec.out = folder_ / "class.png";
    spec.of_class = of_class;
    testing::internal::CaptureStdout();
    const absl::Status status = Sample(spec);
    testing::internal::GetCapturedStdout();
    if (!status.ok()) return Message(status);
    std::ifstream picture(spec.out, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(picture), {});
    return absl::StrCat("picture ", std::hash<std::string>()(bytes));
  };
  const std::string seventh = sample("seven", gan, "conditional");
  EXPECT_THAT(seventh, HasSubstr("picture"));
  EXPECT_EQ(sample("7", gan, "conditional"), seventh);
  EXPECT_NE(sample("2", gan, "conditional"), seventh);
  EXPECT_NE(sample("", gan, "conditional"), seventh);
  EXPECT_THAT(sample("eleven", gan, "conditional"), HasSubstr("7 seven"));
  EXPECT_THAT(sample("10", gan, "conditional"), HasSubstr("7 seven"));
  // Without the files a number is known, a name is not.
  GanSpec without = gan;
  without.data.path = "/no/folder";
  EXPECT_EQ(sample("7", without, "conditional"), seventh);
  EXPECT_THAT(sample("10", without, "conditional"), HasSubstr("class 10"));
  EXPECT_THAT(sample("seven", without, "conditional"), HasSubstr("is missing"));
  EXPECT_THAT(sample("seven", gan_, "state"), HasSubstr("not conditional"));
}

TEST_F(ModelsCommandsTest, ProxyScoresSayWhatTheyAre) {
  EvaluateSpec spec;
  spec.files.paths = {folder_ / "state", folder_ / "state"};
  const auto scores = nlohmann::json::parse(EvaluateJson(spec));
  EXPECT_GT(scores["proxy-fid"], 0);
  EXPECT_FALSE(scores.contains("fid"));
  EXPECT_EQ(scores["n_real"], 30);
  EXPECT_EQ(scores["n_fake"], 64);
  // The mean of a model with itself is that model.
  spec.files.paths.pop_back();
  EXPECT_EQ(nlohmann::json::parse(EvaluateJson(spec)), scores);
}

TEST_F(ModelsCommandsTest, TorchScriptGivesTheScoresTheirNames) {
  EvaluateSpec spec;
  spec.files.paths = {folder_ / "state"};
  spec.inception = kScript;
  spec.inception_size = 0;
  const auto scores = nlohmann::json::parse(EvaluateJson(spec));
  EXPECT_GT(scores["fid"], 0);
  EXPECT_GE(scores["inception_score"], 1);
  EXPECT_LE(scores["inception_score"], 3);
  EXPECT_FALSE(scores.contains("proxy-fid"));
  // Means do not change when images are enlarged.
  spec.inception_size = 64;
  const auto larger = nlohmann::json::parse(EvaluateJson(spec));
  EXPECT_NEAR(larger["fid"], scores["fid"], 0.05 * double(scores["fid"]));
}

TEST_F(ModelsCommandsTest, ExportsTheGeneratorTensorByTensor) {
  ExportSpec spec;
  spec.gan = gan_;
  spec.files.paths = {folder_ / "state"};
  spec.out = folder_ / "exported";
  testing::internal::CaptureStdout();
  const absl::Status status = Export(spec);
  testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status.ok()) << status;
  const auto file = ReadSafetensors(spec.out);
  ASSERT_TRUE(file.ok()) << file.status();
  size_t found = 0;
  const ParameterLayout& layout = game_->layout();
  for (const Segment& s : layout.segments()) {
    if (s.player != Player::kGenerator) continue;
    const auto it = file->floats.find(s.name);
    ASSERT_NE(it, file->floats.end()) << s.name;
    EXPECT_EQ(it->second.shape, s.shape);
    const auto x = game_->parameters().subspan(s.extent.offset, s.extent.size);
    EXPECT_TRUE(std::ranges::equal(it->second.values, x)) << s.name;
    ++found;
  }
  EXPECT_EQ(file->floats.size(), found);
  EXPECT_EQ(file->metadata.at("model"), gan_.model);
}

TEST_F(ModelsCommandsTest, WrongFilesAreRefused) {
  SampleSpec spec;
  spec.gan = gan_;
  spec.out = folder_ / "a.png";
  spec.files.paths = {folder_ / "missing"};
  EXPECT_EQ(Sample(spec).code(), absl::StatusCode::kNotFound);
  const std::vector<float> three = {1, 2, 3};
  ASSERT_TRUE(Write("other", {{"weights", three}}));
  spec.files.paths = {folder_ / "other"};
  EXPECT_THAT(Message(Sample(spec)), HasSubstr("no tensor"));
  ASSERT_TRUE(Write("short", {{"ema", three}}));
  spec.files.paths = {folder_ / "state", folder_ / "short"};
  EXPECT_THAT(Message(Sample(spec)), HasSubstr("--width"));
}

TEST_F(ModelsCommandsTest, RenderingIsDoneOnceAndAgainWhenBroken) {
  EmojiSpec spec;
  spec.train_per_class = 5;
  spec.held_out_per_class = 1;
  const std::string out = folder_ / "emoji";
  const auto render = [&] {
    testing::internal::CaptureStdout();
    const absl::Status status = RenderEmojiTo(out, spec);
    EXPECT_TRUE(status.ok()) << status;
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(render(), HasSubstr("50 images to train, 10 held out"));
  EXPECT_THAT(render(), HasSubstr("is complete"));
  std::filesystem::resize_file(out + "/data_batch_2.bin", 100);
  EXPECT_THAT(render(), HasSubstr("50 images to train"));
  spec.seed = 2;
  EXPECT_THAT(render(), HasSubstr("50 images to train"));
  spec.side = 64;
  EXPECT_THAT(render(), HasSubstr("50 images to train"));
  EXPECT_FALSE(std::filesystem::exists(out + "/emoji-32.txt"));
  EXPECT_THAT(render(), HasSubstr("is complete"));
}

TEST(TorchScriptFeaturesTest, ComputesWhatTheScriptSays) {
  const auto extractor = LoadTorchScriptFeatures(kScript, 0);
  ASSERT_TRUE(extractor.ok()) << extractor.status();
  std::vector<float> images(300 * ImageBytes(32), 1);
  std::fill_n(images.begin(), 1024, -1.0f);
  Extracted extracted;
  ASSERT_TRUE((*extractor)->Extract(images, 32, extracted).ok());
  EXPECT_EQ(extracted.features.size(), 300u);
  EXPECT_THAT(extracted.features.row(0), testing::ElementsAre(0, 1, 1));
  EXPECT_THAT(extracted.features.row(299), testing::ElementsAre(1, 1, 1));
  EXPECT_THAT(extracted.logits.row(0), testing::ElementsAre(0, 10, 10));
}

TEST(TorchScriptFeaturesTest, RefusesWhatIsNoExtractor) {
  EXPECT_EQ(LoadTorchScriptFeatures("/no/file.pt", 0).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadTorchScriptFeatures("CMakeLists.txt", 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto extractor = LoadTorchScriptFeatures(kNotFeatures, 0);
  ASSERT_TRUE(extractor.ok()) << extractor.status();
  const std::vector<float> image(ImageBytes(32));
  Extracted none;
  EXPECT_EQ((*extractor)->Extract(image, 32, none).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gossamer
