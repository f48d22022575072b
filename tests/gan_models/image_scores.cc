// Scores two sets of images that a file has, by a TorchScript, so that another
// program can hold them against a computation of its own
// (image_scores_test.py).
//
// usage: image_scores FEATURES.pt SIZE IMAGES.safetensors
// The file has the tensors "real" and "generated", [N, 3, S, S] in [-1, 1].
// Prints the scores and, one row per image, the features, as JSON.

#include <cstdlib>
#include <iostream>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/evaluation/features.h"
#include "gan_models/evaluation/metrics.h"
#include "nlohmann/json.hpp"
#include "runtime/base/safetensors.h"

namespace gossamer {
namespace {

absl::Status Run(const std::string& script, int size,
                 const std::string& images) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto extractor,
                            LoadTorchScriptFeatures(script, size));
  GOSSAMER_ASSIGN_OR_RETURN(const Safetensors file, ReadSafetensors(images));
  Extracted sets[2];
  for (int i = 0; i < 2; ++i) {
    const auto& tensor = file.floats.at(i == 0 ? "real" : "generated");
    const int side = static_cast<int>(tensor.shape.at(3));
    GOSSAMER_RETURN_IF_ERROR(extractor->Extract(tensor.values, side, sets[i]));
  }
  const Features &real = sets[0].features, &fake = sets[1].features;
  nlohmann::ordered_json out;
  GOSSAMER_ASSIGN_OR_RETURN(out["fid"], FrechetDistance(real, fake));
  // One subset of all, so that nothing is drawn.
  GOSSAMER_ASSIGN_OR_RETURN(
      out["kid"], KernelDistance(real, fake, 1, real.size(), RngKey(1)));
  GOSSAMER_ASSIGN_OR_RETURN(const PrecisionRecall pr,
                            ComputePrecisionRecall(real, fake));
  out["precision"] = pr.precision;
  out["recall"] = pr.recall;
  GOSSAMER_ASSIGN_OR_RETURN(const InceptionScore is,
                            ComputeInceptionScore(sets[1].logits, 4));
  out["inception_score"] = is.mean;
  out["inception_score_deviation"] = is.deviation;
  out["features"] = real.values;
  std::cout << out.dump() << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: image_scores FEATURES.pt SIZE IMAGES.safetensors\n";
    return 2;
  }
  const absl::Status status =
      gossamer::Run(argv[1], std::atoi(argv[2]), argv[3]);
  if (!status.ok()) std::cerr << "image_scores: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
