// gan_gradients: the losses and gradients of one step of both players, for
// weights and inputs in a file.

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/command_line.h"
#include "tests/gan_models/gan_gradients.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(Examples:
  gan_gradients make --model sagan --width 4 --classes 3 --out in.safetensors
  gan_gradients compute --in in.safetensors --out out.safetensors

tests/gan_models/README.md has the names of the tensors.)";

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "gan_gradients: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

int Run(int argc, char** argv) {
  Command program({.name = "gan_gradients",
                   .about = "Losses and gradients of one step, file to file.",
                   .footer = kExamples});
  const OptionRules shown = {.show_default = true};
  GradientsInput spec;
  std::string in, out;
  Command& make = program.AddCommand(
      {.name = "make", .about = "Draw weights and a batch", .run = [&] {
         return Report(WriteGradientsInput(spec, out));
       }});
  make.AddOption("--model", &spec.network.model, "as of a run", shown);
  make.AddOption("--width", &spec.network.width, "of the networks", shown);
  make.AddOption("--latent", &spec.network.latent, "dimensions", shown);
  make.AddOption("--resolution", &spec.network.resolution, "of images", shown);
  make.AddOption("--classes", &spec.network.classes, "of model sagan", shown);
  make.AddOption("--loss", &spec.loss, "as of a run", shown);
  make.AddOption("--batch", &spec.batch, "examples", shown);
  make.AddOption("--seed", &spec.seed, "of all that is drawn", shown);
  make.AddOption("--out", &out, "safetensors", {.required = true});
  Command& compute = program.AddCommand(
      {.name = "compute", .about = "Take one step of both players", .run = [&] {
         return Report(ComputeGradients(in, out));
       }});
  compute.AddOption("--in", &in, "safetensors", {.required = true});
  compute.AddOption("--out", &out, "safetensors", {.required = true});
  return program.Run(argc, argv);
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) { return gossamer::Run(argc, argv); }
