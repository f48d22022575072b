#include "gan_models/batch_feed.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace gossamer {
namespace {

size_t ExampleSize(const Dataset& data) {
  size_t size = 1;
  for (int64_t d : data.example_shape()) size *= static_cast<size_t>(d);
  return size;
}

// Every part of a batch begins at an address from which a device reads fast.
size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

template <typename T>
DeviceSpan<T> Part(std::byte* memory, size_t place, size_t count,
                   Device device) {
  return {reinterpret_cast<T*>(memory + place), count, device};
}

}  // namespace

BatchFeed::BatchFeed(const DeviceQueue& queue,
                     std::shared_ptr<const Dataset> data, const Shape& shape)
    : queue_(queue),
      data_(std::move(data)),
      shape_(shape),
      places_([&] {
        const auto n = static_cast<size_t>(shape_.batch);
        Places p;
        p.latents = Aligned(n * ExampleSize(*data_) * sizeof(float));
        p.mixtures =
            p.latents +
            Aligned(n * static_cast<size_t>(shape_.latent) * sizeof(float));
        p.real_labels =
            p.mixtures + Aligned(shape_.mixtures ? n * sizeof(float) : 0);
        const size_t labels = shape_.labels ? n * sizeof(int64_t) : 0;
        p.fake_labels = p.real_labels + Aligned(labels);
        p.end = p.fake_labels + Aligned(labels);
        return p;
      }()),
      memory_(queue_, places_.end),
      batch_(At(memory_.span().data, queue_.device())) {
  if (queue_.on_host()) return;
  taken_ = queue_.HostBytes(places_.end);
  ahead_ = queue_.HostBytes(places_.end);
}

BatchFeed::~BatchFeed() {
  if (drawing_.valid()) drawing_.wait();
}

GanBatch BatchFeed::At(std::byte* memory, Device device) const {
  const auto n = static_cast<size_t>(shape_.batch);
  const size_t mixtures = shape_.mixtures ? n : 0;
  const size_t labels = shape_.labels ? n : 0;
  return {
      .real = Part<float>(memory, 0, n * ExampleSize(*data_), device),
      .latents = Part<float>(memory, places_.latents,
                             n * static_cast<size_t>(shape_.latent), device),
      .real_labels = Part<int64_t>(memory, places_.real_labels, labels, device),
      .fake_labels = Part<int64_t>(memory, places_.fake_labels, labels, device),
      .mixtures = Part<float>(memory, places_.mixtures, mixtures, device)};
}

void BatchFeed::Draw(RngKey key, std::byte* memory) const {
  const GanBatch to = At(memory, Device());
  data_->FillBatch(key.Fold("data"), HostSpan(to.real),
                   HostSpan(to.real_labels));
  key.Fold("latent").FillGaussian(HostSpan(to.latents));
  const RngKey penalty = key.Fold("penalty");
  const std::span<float> mixtures = HostSpan(to.mixtures);
  for (size_t i = 0; i < mixtures.size(); ++i) {
    // Gulrajani et al., NeurIPS 2017: one point on the line between each pair
    // of a real and a fake example.
    mixtures[i] = static_cast<float>(penalty.Uniform(i));
  }
  const RngKey labels = key.Fold("labels");
  const auto classes = static_cast<uint64_t>(data_->class_names().size());
  const std::span<int64_t> fake_labels = HostSpan(to.fake_labels);
  for (size_t i = 0; i < fake_labels.size(); ++i) {
    // All classes alike, as published, whatever share of them this peer has.
    fake_labels[i] = static_cast<int64_t>(labels.Below(classes, i));
  }
}

const GanBatch& BatchFeed::Take(RngKey key) {
  if (queue_.on_host()) {
    Draw(key, memory_.span().data);
    return batch_;
  }
  if (drawing_.valid()) drawing_.get();
  // A queue that has failed has no memory, and its game says why.
  if (taken_ == nullptr || ahead_ == nullptr) return batch_;
  if (next_ == key) {
    ++prefetched_;
  } else {
    Draw(key, ahead_.get());
  }
  next_.reset();
  std::swap(taken_, ahead_);
  queue_.UploadHeld(taken_.get(), memory_);
  return batch_;
}

void BatchFeed::Prefetch(RngKey key) {
  if (queue_.on_host() || ahead_ == nullptr || drawing_.valid()) return;
  next_ = key;
  drawing_ = std::async(std::launch::async,
                        [this, key, to = ahead_.get()] { Draw(key, to); });
}

}  // namespace gossamer
