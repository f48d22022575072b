// The doors of a build without libtorch: such a build has all but the networks.

#include "absl/status/status.h"
#include "gan_models/datalens/datalens_game.h"
#include "gan_models/learned_coder.h"
#include "gan_models/make_game.h"

namespace gossamer {

bool HasNetworks() { return false; }

absl::StatusOr<std::unique_ptr<Game>> MakeGan(const GanSpec&, int, int,
                                              uint64_t, int,
                                              const DeviceQueue&) {
  return absl::UnimplementedError(
      "this build has no libtorch, so it cannot train networks: configure with "
      "-DGOSSAMER_TORCH=ON, or use game { bilinear {} } or quadratic {}");
}

absl::StatusOr<std::unique_ptr<Game>> MakeDataLens(const DataLensSpec&, int,
                                                   int) {
  return absl::UnimplementedError(
      "this build has no libtorch, so it has no teachers or students: "
      "configure "
      "with -DGOSSAMER_TORCH=ON, or take another algorithm than datalens");
}

absl::StatusOr<std::unique_ptr<ValueCoder>> MakeLearnedCoder(size_t, size_t) {
  return absl::UnimplementedError(
      "this build has no libtorch, so it has no autoencoder: configure with "
      "-DGOSSAMER_TORCH=ON, or take another mixing.gradient_codec than lgc");
}

}  // namespace gossamer
