// The losses and gradients of one step for given weights and inputs, from file
// to file, so that anybody can hold them against another implementation.
//
// README.md in this folder has the names of the tensors in both files.

#ifndef GOSSAMER_TESTS_GAN_MODELS_GAN_GRADIENTS_H_
#define GOSSAMER_TESTS_GAN_MODELS_GAN_GRADIENTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gan_models/networks/network.h"

namespace gossamer {

// An input to make: a network's weights and a batch, drawn from a seed.
struct GradientsInput {
  NetworkSpec network;
  std::string loss = "hinge";
  int batch = 4;
  uint64_t seed = 1;
};

// Writes an input in which no gradient is 0 by symmetry: all weights are away
// from the constants that they begin with.
absl::Status WriteGradientsInput(const GradientsInput& spec,
                                 const std::string& path);

// Reads an input, takes one step of both players and writes what came out.
// kInvalidArgument: a tensor or a value of the metadata that is missing or of
// another shape, by its name; kDataLoss and kNotFound of the file.
absl::Status ComputeGradients(const std::string& in, const std::string& out);

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_GAN_MODELS_GAN_GRADIENTS_H_
