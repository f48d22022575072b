// gossamer-models: what needs libtorch besides training.

#include <cstdio>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "gan_models/models_commands.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(Examples:
  gossamer-models render-emoji --out data/emoji-32
  gossamer-models sample --parameters state.safetensors --out grid.png
  gossamer-models evaluate --parameters peer-0.safetensors peer-1.safetensors \
      --data data/emoji-32 --classes face --json
  gossamer-models info --model wgan-gp-resnet --width 128 --latent 128)";

void AddModelFlags(CLI::App& app, GanSpec& spec) {
  app.add_option("--model", spec.model, "up, wgan-gp-resnet, dcgan, mlp")
      ->capture_default_str();
  app.add_option("--width", spec.width, "the run's game.gan.width")
      ->capture_default_str();
  app.add_option("--latent", spec.latent, "the run's game.gan.latent")
      ->capture_default_str();
  app.add_option("--loss", spec.loss, "the run's game.gan.loss")
      ->capture_default_str();
  app.add_option("--data-name", spec.data.name,
                 "emoji-32, cifar-10, cifar-100, gaussian-mixture")
      ->capture_default_str();
}

void AddFileFlags(CLI::App& app, GeneratorFiles& files) {
  app.add_option("--parameters", files.paths,
                 "safetensors files; several: their mean")
      ->required();
  app.add_flag("--raw", files.raw,
               "the parameters themselves, not their moving average");
}

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "gossamer-models: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

// Owns what the flags of all commands are read into.
struct Flags {
  std::string folder;
  EmojiSpec emoji;
  SampleSpec sample;
  EvaluateSpec evaluate;
  GanSpec info;
  bool json = false;
};

CLI::App* AddRender(CLI::App& app, Flags& f) {
  CLI::App* const c = app.add_subcommand(
      "render-emoji", "Make the data set emoji-32 from the emoji font");
  c->add_option("--out", f.folder, "folder of the files")->required();
  c->add_option("--images", f.emoji.train_per_class,
                "training images per class, a multiple of 5; a fifth as many "
                "are held out")
      ->capture_default_str();
  c->add_option("--background", f.emoji.background, "white, pastel, mixed")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Background>{{"white", Background::kWhite},
                                            {"pastel", Background::kPastel},
                                            {"mixed", Background::kMixed}}));
  c->add_option("--font", f.emoji.font)->capture_default_str();
  c->add_option("--list", f.emoji.list, "Unicode's emoji-test.txt")
      ->capture_default_str();
  c->add_option("--seed", f.emoji.seed)->capture_default_str();
  return c;
}

CLI::App* AddSample(CLI::App& app, Flags& f) {
  CLI::App* const c =
      app.add_subcommand("sample", "Write a grid of samples as PNG");
  AddFileFlags(*c, f.sample.files);
  c->add_option("--out", f.sample.out, "the picture")->required();
  AddModelFlags(*c, f.sample.gan);
  c->add_option("--seed", f.sample.seed)->capture_default_str();
  c->add_option("--threads", f.sample.threads)->capture_default_str();
  return c;
}

CLI::App* AddEvaluate(CLI::App& app, Flags& f) {
  CLI::App* const c =
      app.add_subcommand("evaluate", "Score a generator against held-out data");
  AddFileFlags(*c, f.evaluate.files);
  AddModelFlags(*c, f.evaluate.gan);
  c->add_option("--data", f.evaluate.gan.data.path, "folder of the data files");
  c->add_option("--classes", f.evaluate.gan.data.classes,
                "only these classes, by name or number");
  c->add_option("--samples", f.evaluate.gan.evaluation_samples,
                "generated examples")
      ->capture_default_str();
  c->add_option("--inception", f.evaluate.inception,
                "TorchScript from images [N, 3, S, S] in [0, 255] to features "
                "or (features, logits); without it scores are named proxy-");
  c->add_option("--inception-size", f.evaluate.inception_size,
                "S; 0: as the images are")
      ->capture_default_str();
  c->add_option("--seed", f.evaluate.seed)->capture_default_str();
  c->add_option("--threads", f.evaluate.threads)->capture_default_str();
  c->add_flag("--json", f.evaluate.json, "machine-readable output");
  return c;
}

CLI::App* AddInfo(CLI::App& app, Flags& f) {
  CLI::App* const c =
      app.add_subcommand("info", "Print a model's tensors and their number");
  AddModelFlags(*c, f.info);
  c->add_flag("--json", f.json, "machine-readable output");
  return c;
}

int Run(int argc, char** argv) {
  CLI::App app("Makes data, draws samples and scores generators.",
               "gossamer-models");
  app.require_subcommand(1);
  app.footer(kExamples);
  Flags f;
  const CLI::App* const render = AddRender(app, f);
  const CLI::App* const sample = AddSample(app, f);
  const CLI::App* const evaluate = AddEvaluate(app, f);
  AddInfo(app, f);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    constexpr int kUsage = 2;
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  if (render->parsed()) {
    f.emoji.held_out_per_class = f.emoji.train_per_class / 5;
    return Report(RenderEmojiTo(f.folder, f.emoji));
  }
  if (sample->parsed()) return Report(Sample(f.sample));
  if (evaluate->parsed()) return Report(Evaluate(f.evaluate));
  return Report(PrintModel(f.info, f.json));
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) { return gossamer::Run(argc, argv); }
