// The batches of a game: drawn on the host by key, and brought to where the
// step computes.
//
// A batch is a function of its key alone, whenever and wherever it is drawn.
// This header knows nothing of networks or losses.

#ifndef GOSSAMER_GAN_MODELS_BATCH_FEED_H_
#define GOSSAMER_GAN_MODELS_BATCH_FEED_H_

#include <cstddef>
#include <future>
#include <memory>
#include <optional>

#include "algorithms/base/rng.h"
#include "algorithms/kernels/device_queue.h"
#include "gan_models/data/dataset.h"
#include "gan_models/gan_step.h"

namespace gossamer {

// On a device other than the host the batch that is expected next is drawn by a
// thread into pinned memory while the device computes, so that a step begins
// with one copy.
class BatchFeed {
 public:
  struct Shape {
    int batch = 16;
    int latent = 64;
    bool mixtures = false, labels = false;
  };
  BatchFeed(const DeviceQueue& queue, std::shared_ptr<const Dataset> data,
            const Shape& shape);
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;
  ~BatchFeed();

  // Enqueues what brings this batch to the device.  It lies in the same place
  // each time; work on the batch before is done.
  const GanBatch& Take(RngKey key);
  // Begins to draw this batch, on a device.  The next Take may be of another
  // key.
  void Prefetch(RngKey key);
  // Batches that were drawn before they were taken; for tests.
  uint64_t prefetched() const { return prefetched_; }

 private:
  GanBatch At(std::byte* memory, Device device) const;
  void Draw(RngKey key, std::byte* memory) const;

  const DeviceQueue queue_;
  const std::shared_ptr<const Dataset> data_;
  const Shape shape_;
  // Bytes from the beginning of a batch.
  struct Places {
    size_t latents = 0, mixtures = 0, real_labels = 0, fake_labels = 0, end = 0;
  };
  const Places places_;
  DeviceVector<std::byte> memory_;
  const GanBatch batch_;
  // Of a device: the batch that goes to it and the one that is drawn ahead.
  std::shared_ptr<std::byte[]> taken_, ahead_;
  std::optional<RngKey> next_;
  std::future<void> drawing_;
  uint64_t prefetched_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_BATCH_FEED_H_
