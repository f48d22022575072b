// A GAN whose vectors lie on the fake device, on torch's CPU: its work runs
// among the device's.

#ifndef GOSSAMER_TESTS_GAN_MODELS_GAN_ON_DEVICE_H_
#define GOSSAMER_TESTS_GAN_MODELS_GAN_ON_DEVICE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "gan_models/gan_game.h"
#include "gan_models/losses.h"
#include "tests/testing/fake_device.h"

namespace gossamer {

// As MakeGan makes it, without an evaluator.  A null `device` is the host.
inline std::unique_ptr<GanGame> GanOn(FakeDevice* device, const GanSpec& spec,
                                      int rank, int peers, uint64_t seed,
                                      GraphRunner::Options graphs = {}) {
  const Loss loss = ParseLoss(spec.loss).value();
  std::shared_ptr<const Dataset> data =
      Dataset::Open(spec.data, rank, peers, seed).value();
  const NetworkSpec network = {
      .model = spec.model,
      .width = spec.width,
      .latent = spec.latent,
      .resolution = spec.resolution,
      .classes = static_cast<int>(data->class_names().size()),
      .discriminator_batch_norm = loss != Loss::kWassersteinGp};
  const TorchQueue torch =
      device == nullptr
          ? TorchQueue::Host()
          : TorchQueue(device->queue(), [device](TorchQueue::Work work) {
              device->Launch(std::move(work));
            });
  return std::make_unique<GanGame>(
      Network::Create(Player::kGenerator, network).value(),
      Network::Create(Player::kDiscriminator, network).value(), data,
      GanGame::Options{.step = {.loss = loss,
                                .gradient_penalty = spec.gradient_penalty,
                                .batch = spec.batch,
                                .one_backward = spec.one_backward},
                       .graphs = std::move(graphs)},
      spec.latent, seed, nullptr, torch);
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_GAN_MODELS_GAN_ON_DEVICE_H_
