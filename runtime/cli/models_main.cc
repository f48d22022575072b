// gossamer-models: the commands beside training that need libtorch.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/spelling.h"
#include "gan_models/gan_spec.h"
#include "runtime/base/command_line.h"
#include "runtime/cli/models_commands.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(Examples:
  gossamer-models render-emoji --out data/emoji-32
  gossamer-models sample --parameters state.safetensors --out grid.png
  gossamer-models evaluate --parameters peer-1.safetensors peer-2.safetensors \
      --data data/emoji-32 --classes face --json
  gossamer-models info --model wgan-gp-resnet --width 128 --latent 128)";

OptionRules Shown() { return {.show_default = true}; }

void AddModelFlags(Command& command, GanSpec& spec) {
  command.AddOption("--model", &spec.model,
                    absl::StrCat(Listed(ModelNames()), ", datalens"), Shown());
  command.AddOption("--width", &spec.width,
                    "the run's game.gan.width, or student_width", Shown());
  command.AddOption("--latent", &spec.latent, "the run's game.gan.latent",
                    Shown());
  command.AddOption("--resolution", &spec.resolution,
                    "the run's game.gan.resolution", Shown());
  command.AddOption("--loss", &spec.loss, "the run's game.gan.loss", Shown());
  command.AddOption("--data-name", &spec.data.name, Listed(DataNames()),
                    Shown());
  command.AddOption("--data", &spec.data.path,
                    "folder of the data files, or file of image-folder");
  command.AddOption("--classes", &spec.data.classes,
                    "the run's game.gan.data.classes; none: all");
}

void AddFileFlags(Command& command, GeneratorFiles& files) {
  command.AddOption("--parameters", &files.paths,
                    "safetensors files; several: their mean",
                    {.required = true});
  command.AddOption("--raw", &files.raw,
                    "the parameters themselves, not their moving average");
}

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "gossamer-models: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

// Owns the variables that the flags of all commands set.
struct Flags {
  std::string folder;
  std::string background = "white";
  EmojiSpec emoji;
  SampleSpec sample;
  ExportSpec exported;
  EvaluateSpec evaluate;
  GanSpec info;
  bool json = false;
};

Background BackgroundOf(const std::string& name) {
  if (name == "pastel") return Background::kPastel;
  if (name == "mixed") return Background::kMixed;
  return Background::kWhite;
}

int Render(Flags& f) {
  f.emoji.background = BackgroundOf(f.background);
  // The layout of CIFAR-10's files: five batches to train, one to test.
  f.emoji.held_out_per_class = f.emoji.train_per_class / 5;
  return Report(RenderEmojiTo(f.folder, f.emoji));
}

void AddRender(Command& program, Flags& f) {
  Command& c = program.AddCommand(
      {.name = "render-emoji",
       .about = "Make emoji-32, emoji-64 or emoji-128 from the emoji font",
       .run = [&f] { return Render(f); }});
  c.AddOption("--out", &f.folder, "folder of the files", {.required = true});
  c.AddOption("--size", &f.emoji.side, "pixels of a side: 32, 64 or 128",
              Shown());
  c.AddOption("--images", &f.emoji.train_per_class,
              "training images per class, a multiple of 5; a fifth as many "
              "are held out",
              Shown());
  c.AddOption("--families", &f.emoji.families_per_class,
              "emoji per class, the first of the list without their twins of "
              "other skin tones and genders; 0: all",
              Shown());
  c.AddOption("--background", &f.background, "of the faces",
              {.show_default = true, .choices = {"white", "pastel", "mixed"}});
  c.AddOption("--font", &f.emoji.font, "with colours", Shown());
  c.AddOption("--list", &f.emoji.list, "Unicode's emoji-test.txt", Shown());
  c.AddOption("--seed", &f.emoji.seed, "of what is drawn where", Shown());
}

void AddSample(Command& program, Flags& f) {
  Command& c =
      program.AddCommand({.name = "sample",
                          .about = "Write a grid of samples as PNG",
                          .run = [&f] { return Report(Sample(f.sample)); }});
  AddFileFlags(c, f.sample.files);
  c.AddOption("--out", &f.sample.out, "the picture", {.required = true});
  AddModelFlags(c, f.sample.gan);
  c.AddOption("--class", &f.sample.of_class,
              "the class of all samples, by name or number, of a model with "
              "classes; none: some of each",
              {.value_name = "NAME|N"});
  c.AddOption("--seed", &f.sample.seed, "of the latent vectors", Shown());
}

void AddExport(Command& program, Flags& f) {
  Command& c =
      program.AddCommand({.name = "export",
                          .about = "Write a generator, tensor by tensor",
                          .run = [&f] { return Report(Export(f.exported)); }});
  AddFileFlags(c, f.exported.files);
  c.AddOption("--out", &f.exported.out, "safetensors", {.required = true});
  AddModelFlags(c, f.exported.gan);
}

void AddEvaluate(Command& program, Flags& f) {
  Command& c = program.AddCommand(
      {.name = "evaluate",
       .about = "Score a generator against held-out data",
       .run = [&f] { return Report(Evaluate(f.evaluate)); }});
  AddFileFlags(c, f.evaluate.files);
  AddModelFlags(c, f.evaluate.gan);
  c.AddOption("--samples", &f.evaluate.gan.evaluation_samples,
              "generated examples", Shown());
  c.AddOption("--inception", &f.evaluate.inception,
              "TorchScript from images [N, 3, S, S] in [0, 255] to features "
              "or (features, logits); without it scores are named proxy-");
  c.AddOption("--inception-size", &f.evaluate.inception_size,
              "S; 0: as the images are", Shown());
  c.AddOption("--seed", &f.evaluate.seed, "of the latent vectors", Shown());
  c.AddOption("--round", &f.evaluate.round,
              "of the checkpoint, to be printed with its scores");
  c.AddOption("--threads", &f.evaluate.threads,
              "of libtorch; 0: one for each processor",
              {.show_default = true, .range = {{0, kMaxThreads}}});
  c.AddOption("--json", &f.evaluate.json, "machine-readable output");
}

void AddInfo(Command& program, Flags& f) {
  Command& c = program.AddCommand(
      {.name = "info",
       .about = "Print a model's tensors and their number",
       .run = [&f] { return Report(PrintModel(f.info, f.json)); }});
  AddModelFlags(c, f.info);
  c.AddOption("--json", &f.json, "machine-readable output");
}

int Run(int argc, char** argv) {
  Command program({.name = "gossamer-models",
                   .about = "Makes data, draws samples and scores generators.",
                   .footer = kExamples});
  // The commands refer to it, and run within program.Run().
  Flags f;
  AddRender(program, f);
  AddSample(program, f);
  AddExport(program, f);
  AddEvaluate(program, f);
  AddInfo(program, f);
  return program.Run(argc, argv);
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  // The bits of a peer (peer_main.cc).
  setenv("MKL_CBWR", "AUTO", /*overwrite=*/0);
  return gossamer::Run(argc, argv);
}
