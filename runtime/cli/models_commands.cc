#include "runtime/cli/models_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"
#include "gan_models/data/cifar_files.h"
#include "gan_models/data/dataset.h"
#include "gan_models/data/digits.h"
#include "gan_models/datalens/datalens_game.h"
#include "gan_models/evaluation/features.h"
#include "gan_models/evaluation/gan_evaluator.h"
#include "gan_models/evaluation/metrics.h"
#include "gan_models/networks/network.h"
#include "nlohmann/json.hpp"
#include "runtime/base/plain_file.h"
#include "runtime/base/safetensors.h"

namespace gossamer {
namespace {

absl::StatusOr<NetworkSpec> NetworkOf(const GanSpec& spec) {
  int classes = ClassCount(spec.data);
  if (classes == 0 && IsConditional(spec.model)) {
    GOSSAMER_ASSIGN_OR_RETURN(const auto of_data, ClassesOf(spec.data));
    classes = static_cast<int>(of_data.size());
  }
  return NetworkSpec{.model = spec.model,
                     .width = spec.width,
                     .latent = spec.latent,
                     .resolution = spec.resolution,
                     .classes = classes,
                     // A gradient penalty is of single examples, which batch
                     // normalisation would mix (Gulrajani and others, 2017).
                     .discriminator_batch_norm = spec.loss != "wgan-gp"};
}

// Returns the settings of a complete folder; it is made anew if any differs.
std::string Stamp(const EmojiSpec& spec) {
  std::error_code error;
  const char* const backgrounds[] = {"white", "pastel", "mixed"};
  return absl::StrCat(
      "emoji-", spec.side, " format 1\nfont ", spec.font, " of ",
      std::filesystem::file_size(spec.font, error), " bytes\nlist ", spec.list,
      " of ", std::filesystem::file_size(spec.list, error), " bytes\n",
      spec.train_per_class, " + ", spec.held_out_per_class,
      " images per class\n",
      spec.families_per_class == 0
          ? ""
          : absl::StrCat("families ", spec.families_per_class, "\n"),
      "background ", backgrounds[static_cast<int>(spec.background)], "\nseed ",
      spec.seed, "\n");
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Adds the file's generator, which has `size` floats.
absl::Status AddGenerator(const std::string& path, bool raw,
                          std::vector<double>& sum) {
  GOSSAMER_ASSIGN_OR_RETURN(const Safetensors file, ReadSafetensors(path));
  const auto ema = file.floats.find("ema");
  const auto both = file.floats.find("parameters");
  // The moving average is of the generator alone, so its size is checked
  // exactly; the parameters are of both players, the generator first.
  const bool use_ema =
      !raw && ema != file.floats.end() && !ema->second.values.empty();
  if (!use_ema && both == file.floats.end()) {
    return absl::DataLossError(
        absl::StrCat(path, " has no tensor \"", raw ? "parameters" : "ema",
                     "\"; is it a gossamer parameter file?"));
  }
  const std::vector<float>& values =
      use_ema ? ema->second.values : both->second.values;
  if (use_ema ? values.size() != sum.size() : values.size() < sum.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", values.size(), " parameters and the generator ",
        sum.size(), "; are --model, --width and --latent those of the run?"));
  }
  // Sums are in double: the mean of equal files must be that file.
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> LoadGenerator(const GeneratorFiles& files,
                                                 size_t size) {
  std::vector<double> sum(size);
  for (const std::string& path : files.paths) {
    GOSSAMER_RETURN_IF_ERROR(AddGenerator(path, files.raw, sum));
  }
  std::vector<float> mean(size);
  for (size_t i = 0; i < size; ++i) {
    mean[i] =
        static_cast<float>(sum[i] / static_cast<double>(files.paths.size()));
  }
  return mean;
}

constexpr char kStudent[] = "datalens";

// The student of a DataLens run, and its parameters.
struct LoadedStudent {
  std::unique_ptr<Evaluator> evaluator;
  std::vector<float> generator;
};

StudentShape ShapeOf(const GanSpec& spec) {
  return {.latent = spec.latent,
          .width = spec.width,
          .dimensions = kDigitPixels,
          .classes = kDigitClasses};
}

absl::StatusOr<LoadedStudent> LoadStudent(const GanSpec& spec,
                                          const GeneratorFiles& files) {
  const StudentShape shape = ShapeOf(spec);
  LoadedStudent loaded;
  GOSSAMER_ASSIGN_OR_RETURN(
      loaded.evaluator,
      MakeStudentEvaluator(shape, spec.data.path, spec.evaluation_samples));
  GOSSAMER_ASSIGN_OR_RETURN(loaded.generator,
                            LoadGenerator(files, StudentLayout(shape).size()));
  return loaded;
}

// The score of an evaluator that has one number.
absl::Status AddScore(const EvaluateSpec& spec, Evaluator& evaluator,
                      std::span<const float> generator,
                      nlohmann::ordered_json& scores) {
  GOSSAMER_ASSIGN_OR_RETURN(
      scores[std::string(evaluator.score_name())],
      evaluator.Score(generator, RngKey(spec.seed).Fold("evaluate")));
  scores["basis"] = evaluator.score_basis();
  return absl::OkStatus();
}

struct Loaded {
  std::unique_ptr<GanEvaluator> evaluator;
  std::vector<float> generator;
};

// Processors that this process may use.
int Processors() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u,
                                     unsigned{kMaxThreads}));
}

// Works on a SampleSpec or an EvaluateSpec.
template <typename Spec>
absl::StatusOr<Loaded> Load(const Spec& spec,
                            std::shared_ptr<const Dataset> data) {
  Loaded loaded;
  GOSSAMER_ASSIGN_OR_RETURN(const NetworkSpec network, NetworkOf(spec.gan));
  GOSSAMER_ASSIGN_OR_RETURN(
      loaded.evaluator,
      GanEvaluator::Create(network, std::move(data),
                           spec.gan.evaluation_samples,
                           spec.threads == 0 ? Processors() : spec.threads));
  GOSSAMER_ASSIGN_OR_RETURN(
      loaded.generator,
      LoadGenerator(spec.files, loaded.evaluator->generator_size()));
  return loaded;
}

struct Comparison {
  Extracted real, fake;
};

absl::StatusOr<Comparison> Extract(const EvaluateSpec& spec,
                                   GanEvaluator& evaluator,
                                   std::span<const float> generator) {
  std::unique_ptr<FeatureExtractor> extractor = RandomConvolutionFeatures();
  if (!spec.inception.empty()) {
    GOSSAMER_ASSIGN_OR_RETURN(
        extractor,
        LoadTorchScriptFeatures(spec.inception, spec.inception_size));
  }
  Comparison c;
  const int side = evaluator.side();
  // All held-out images count: the score depends on their number.
  GOSSAMER_RETURN_IF_ERROR(evaluator.HeldOut(
      std::numeric_limits<int64_t>::max(), [&](std::span<const float> piece) {
        return extractor->Extract(piece, side, c.real);
      }));
  GOSSAMER_RETURN_IF_ERROR(evaluator.Generate(
      generator, RngKey(spec.seed).Fold("evaluate"),
      spec.gan.evaluation_samples, [&](std::span<const float> piece) {
        return extractor->Extract(piece, side, c.fake);
      }));
  return c;
}

absl::StatusOr<nlohmann::ordered_json> ImageScores(const EvaluateSpec& spec,
                                                   const Comparison& c) {
  // The prefix keeps scores by the fixed random features from being taken for
  // those of the literature, which are by Inception's.
  const std::string proxy = spec.inception.empty() ? "proxy-" : "";
  nlohmann::ordered_json scores;
  GOSSAMER_ASSIGN_OR_RETURN(scores[proxy + "fid"],
                            FrechetDistance(c.real.features, c.fake.features));
  // The usual numbers of the literature, so that scores compare (KID: Binkowski
  // and others, 2018; inception score: Salimans and others, 2016).
  constexpr int kSubsets = 100, kSubsetSize = 1000, kSplits = 10;
  GOSSAMER_ASSIGN_OR_RETURN(
      scores[proxy + "kid"],
      KernelDistance(c.real.features, c.fake.features, kSubsets, kSubsetSize,
                     RngKey(spec.seed).Fold("subsets")));
  GOSSAMER_ASSIGN_OR_RETURN(
      const PrecisionRecall pr,
      ComputePrecisionRecall(c.real.features, c.fake.features));
  scores[proxy + "precision"] = pr.precision;
  scores[proxy + "recall"] = pr.recall;
  if (c.fake.logits.dimension > 0) {
    GOSSAMER_ASSIGN_OR_RETURN(const InceptionScore is,
                              ComputeInceptionScore(c.fake.logits, kSplits));
    scores["inception_score"] = is.mean;
    scores["inception_score_deviation"] = is.deviation;
  }
  scores["n_real"] = c.real.features.size();
  scores["n_fake"] = c.fake.features.size();
  scores["features"] =
      spec.inception.empty() ? "fixed random convolutions" : spec.inception;
  return scores;
}

absl::StatusOr<nlohmann::ordered_json> StudentScores(const EvaluateSpec& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(const LoadedStudent student,
                            LoadStudent(spec.gan, spec.files));
  nlohmann::ordered_json scores;
  GOSSAMER_RETURN_IF_ERROR(
      AddScore(spec, *student.evaluator, student.generator, scores));
  return scores;
}

absl::StatusOr<nlohmann::ordered_json> GanScores(const EvaluateSpec& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data,
                            Dataset::Open(spec.gan.data, 0, 1, 0));
  GOSSAMER_ASSIGN_OR_RETURN(const auto loaded, Load(spec, std::move(data)));
  const auto& [evaluator, generator] = loaded;
  if (evaluator->images()) {
    GOSSAMER_ASSIGN_OR_RETURN(const Comparison comparison,
                              Extract(spec, *evaluator, generator));
    return ImageScores(spec, comparison);
  }
  nlohmann::ordered_json scores;
  GOSSAMER_RETURN_IF_ERROR(AddScore(spec, *evaluator, generator, scores));
  return scores;
}

// The label of a class by its name or number in the data set.
absl::StatusOr<int64_t> LabelOf(const std::string& of_class,
                                const DataSpec& spec) {
  int number = -1;
  const bool is_number = absl::SimpleAtoi(of_class, &number);
  const auto classes = ClassesOf(spec);
  if (!classes.ok()) {
    // All classes count from 0 as they do in files that are not at hand.
    if (is_number && spec.classes.empty()) return number;
    return classes.status();
  }
  std::vector<std::string> known;
  for (const ImageClass& c : *classes) {
    // A name goes before a number: a class may be called by digits.
    if (c.name == of_class) return static_cast<int64_t>(known.size());
    known.push_back(absl::StrCat(c.number, " ", c.name));
  }
  for (size_t label = 0; label < classes->size(); ++label) {
    if (is_number && (*classes)[label].number == number) {
      return static_cast<int64_t>(label);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--class ", of_class,
                   " is none of the model's: ", absl::StrJoin(known, ", ")));
}

}  // namespace

absl::Status RenderEmojiTo(const std::string& folder, const EmojiSpec& spec) {
  const std::string name = absl::StrCat("emoji-", spec.side);
  const std::string stamp_path = absl::StrCat(folder, "/", name, ".txt");
  const std::string stamp = Stamp(spec);
  std::error_code error;
  if (ReadText(stamp_path) == stamp && ReadImages(name, folder, {}).ok()) {
    std::cout << folder << " is complete\n";
    return absl::OkStatus();
  }
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(folder));
  // A folder that is being made has no stamp, nor that of another size.
  for (const char* size : {"32", "64", "128"}) {
    std::filesystem::remove(absl::StrCat(folder, "/emoji-", size, ".txt"),
                            error);
  }
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto progress = [&](int done, int of) {
    // A line that is written over is of use on a terminal only.
    if (terminal) std::fprintf(stderr, "\rdrawing: %d of %d classes", done, of);
  };
  absl::StatusOr<ImageData> data = RenderEmoji(spec, progress);
  if (terminal) std::fputc('\n', stderr);
  GOSSAMER_RETURN_IF_ERROR(data.status());
  GOSSAMER_RETURN_IF_ERROR(WriteCifar10(folder, *data));
  // The stamp is written last: a folder with a stamp is whole.
  GOSSAMER_RETURN_IF_ERROR(WriteTextFile(stamp_path, stamp));
  std::cout << folder << ": " << data->train.size() << " images to train, "
            << data->test.size() << " held out, " << data->class_names.size()
            << " classes\n";
  return absl::OkStatus();
}

absl::Status Sample(const SampleSpec& spec) {
  if (!spec.of_class.empty() && !IsConditional(spec.gan.model)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--class ", spec.of_class, ": model ", spec.gan.model,
                     " is not conditional, so it has no classes to choose "
                     "from; sagan has"));
  }
  if (spec.gan.model == kStudent) {
    GOSSAMER_ASSIGN_OR_RETURN(const LoadedStudent student,
                              LoadStudent(spec.gan, spec.files));
    GOSSAMER_RETURN_IF_ERROR(student.evaluator->WriteSamples(
        student.generator, RngKey(spec.seed).Fold("samples"), spec.out));
    std::cout << spec.out << "\n";
    return absl::OkStatus();
  }
  std::shared_ptr<const Dataset> data;
  if (SourceOf(spec.gan.data.name) == DataSource::kNone) {
    GOSSAMER_ASSIGN_OR_RETURN(data, Dataset::Open(spec.gan.data, 0, 1, 0));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const auto loaded, Load(spec, std::move(data)));
  const auto& [evaluator, generator] = loaded;
  const RngKey key = RngKey(spec.seed).Fold("samples");
  if (spec.of_class.empty()) {
    GOSSAMER_RETURN_IF_ERROR(evaluator->WriteSamples(generator, key, spec.out));
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(const int64_t label,
                              LabelOf(spec.of_class, spec.gan.data));
    GOSSAMER_RETURN_IF_ERROR(
        evaluator->WriteSamplesOf(label, generator, key, spec.out));
  }
  std::cout << spec.out << "\n";
  return absl::OkStatus();
}

// The tensors of a model's player; a student plays against no network here.
absl::StatusOr<ParameterLayout> LayoutOf(const GanSpec& spec, Player player) {
  if (spec.model == kStudent) {
    if (player == Player::kGenerator) return StudentLayout(ShapeOf(spec));
    return ParameterLayout();
  }
  GOSSAMER_ASSIGN_OR_RETURN(const NetworkSpec shape, NetworkOf(spec));
  GOSSAMER_ASSIGN_OR_RETURN(const auto network, Network::Create(player, shape));
  return ParameterLayout(network->tensors().parameters());
}

absl::Status Export(const ExportSpec& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(const ParameterLayout layout,
                            LayoutOf(spec.gan, Player::kGenerator));
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<float> generator,
                            LoadGenerator(spec.files, layout.size()));
  SafetensorsView view;
  // Loaders of other programs look for this key.
  view.metadata = {{"format", "pt"},
                   {"model", spec.gan.model},
                   {"width", absl::StrCat(spec.gan.width)},
                   {"latent", absl::StrCat(spec.gan.latent)},
                   {"resolution", absl::StrCat(spec.gan.resolution)}};
  for (const Segment& s : layout.segments()) {
    view.floats.push_back(
        {s.name, s.shape,
         std::span(generator).subspan(s.extent.offset, s.extent.size)});
  }
  GOSSAMER_RETURN_IF_ERROR(WriteSafetensors(spec.out, view));
  std::cout << spec.out << ": " << view.floats.size() << " tensors, "
            << generator.size() << " parameters\n";
  return absl::OkStatus();
}

absl::Status Evaluate(const EvaluateSpec& spec) {
  nlohmann::ordered_json scores;
  if (spec.round > 0) scores["round"] = spec.round;
  GOSSAMER_ASSIGN_OR_RETURN(
      const nlohmann::ordered_json found,
      spec.gan.model == kStudent ? StudentScores(spec) : GanScores(spec));
  scores.update(found);
  if (spec.json) {
    std::cout << scores.dump(2) << "\n";
    return absl::OkStatus();
  }
  for (const auto& [name, value] : scores.items()) {
    std::cout << absl::StrFormat("%-26s ", name) << value << "\n";
  }
  return absl::OkStatus();
}

absl::Status PrintModel(const GanSpec& spec, bool json) {
  nlohmann::ordered_json model;
  for (Player player : {Player::kGenerator, Player::kDiscriminator}) {
    GOSSAMER_ASSIGN_OR_RETURN(const ParameterLayout layout,
                              LayoutOf(spec, player));
    if (layout.size() == 0) continue;
    const char* const name =
        player == Player::kGenerator ? "generator" : "discriminator";
    model[name]["parameters"] = layout.size();
    for (const Segment& s : layout.segments()) {
      model[name]["tensors"].push_back({{"name", s.name}, {"shape", s.shape}});
    }
  }
  if (json) {
    std::cout << model.dump(2) << "\n";
    return absl::OkStatus();
  }
  for (const auto& [name, network] : model.items()) {
    std::cout << name << ": " << network["parameters"] << " parameters\n";
    for (const auto& tensor : network["tensors"]) {
      std::cout << absl::StrFormat("  %-32s ",
                                   tensor["name"].get<std::string>())
                << tensor["shape"] << "\n";
    }
  }
  return absl::OkStatus();
}

}  // namespace gossamer
