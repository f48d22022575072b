// The specification of a GAN and of its data, as plain values.
//
// Includes no torch and reads no file: a configuration is checked by it on
// every machine.

#ifndef GOSSAMER_GAN_MODELS_GAN_SPEC_H_
#define GOSSAMER_GAN_MODELS_GAN_SPEC_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/base/problems.h"

namespace gossamer {

struct DataSpec {
  std::string name = "emoji-32";     // of DataNames
  std::string path;                  // folder of the files; of image-folder
                                     // the file
  std::vector<std::string> classes;  // by name or number; empty: all
  // The concentration of the Dirichlet distribution of each class over the
  // peers; 0: every peer has an equal share of everything.
  double dirichlet_alpha = 0;
  bool flip = false;
};

struct GanSpec {
  std::string model = "up";  // of ModelNames
  int width = 16;
  int resolution = 32;  // pixels of an image's side
  int latent = 64;
  std::string loss = "wgan-gp";  // of LossNames
  double gradient_penalty = 10;
  int batch = 16;
  // Whether one backward pass of the discriminator serves both players, where
  // the loss allows it.
  bool one_backward = true;
  std::string precision = "float32";  // of PrecisionNames
  int evaluation_samples = 1024;      // generated examples in a score
  DataSpec data;
};

inline constexpr int kMaxThreads = 1024;

std::span<const std::string_view> DataNames();
std::span<const std::string_view> ModelNames();
std::span<const std::string_view> LossNames();
std::span<const std::string_view> PrecisionNames();

bool IsConditional(std::string_view model);
// The place that a data set is read from.  kNone: a formula draws it.
enum class DataSource { kNone, kFolder, kFile };
DataSource SourceOf(std::string_view data);
// The number of classes that are chosen, of the data set's if none is named; 0
// for all of image-folder, whose file alone says how many they are.
int ClassCount(const DataSpec& spec);

// Returns what of a spec is out of range or of no known name.
Problems ProblemsOf(const DataSpec& spec);
Problems ProblemsOfNetwork(std::string_view model, int width, int latent,
                           int resolution);
// Problems of the data stand under "data.".
Problems ProblemsOf(const GanSpec& spec);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GAN_SPEC_H_
