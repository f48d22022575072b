// The data set image-folder: a file of gossamer data build (image_cache.h).
//
// This header knows nothing of how the file was made.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_FOLDER_DATASET_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_FOLDER_DATASET_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/rng.h"
#include "gan_models/data/class_choice.h"
#include "gan_models/data/dataset.h"
#include "gan_models/gan_spec.h"

namespace gossamer {

// Dataset::Open() of image-folder, with the key of the split.  A peer keeps the
// numbers of its pictures; their pixels stay in the file, whatever its size.
absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const DataSpec& spec,
                                                         int rank, int peers,
                                                         RngKey key);

// The chosen classes of the file.  Errors of ImageCache::Open() and
// ChooseClasses().
absl::StatusOr<std::vector<ImageClass>> ReadImageFolderClasses(
    const DataSpec& spec);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_FOLDER_DATASET_H_
