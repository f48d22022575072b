// The door to the folder with torch in it: plain specifications in, a Game
// out.  Includes no torch, so that mains may include it beside protobuf.

#ifndef GOSSAMER_GAN_MODELS_MAKE_GAME_H_
#define GOSSAMER_GAN_MODELS_MAKE_GAME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/game/game.h"

namespace gossamer {

struct DataSpec {
  std::string name = "emoji-32";     // emoji-32, cifar-10, cifar-100,
                                     // gaussian-mixture
  std::string path;                  // folder of the files
  std::vector<std::string> classes;  // by name or number; empty: all
  std::string shard = "iid";         // iid, dirichlet
  double alpha = 0.5;                // dirichlet
  bool flip = false;
};

struct GanSpec {
  std::string model = "up";  // up, wgan-gp-resnet, dcgan, mlp
  int width = 16;
  int latent = 64;
  std::string loss = "wgan-gp";  // wgan-gp, hinge, non-saturating
  double gradient_penalty = 10;
  int batch = 16;
  bool one_backward = true;
  int evaluation_samples = 1024;
  DataSpec data;
};

// The game of peer `rank` of `peers`.  All peers of a run start from the same
// parameters (a function of `seed`); each image is in exactly one shard.
// Errors: kInvalidArgument (a name, naming the known ones; a size), kNotFound
// (a data file, saying how to make it), kDataLoss (truncated or wrong-size).
absl::StatusOr<std::unique_ptr<Game>> MakeGan(const GanSpec& spec, int rank,
                                              int peers, uint64_t seed,
                                              int threads);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_MAKE_GAME_H_
