// A game of the host as one whose parameters and gradients lie on a fake
// device.
//
// Its gradient is a piece of the device's work, as that of networks is.

#ifndef GOSSAMER_TESTS_TESTING_FAKE_DEVICE_GAME_H_
#define GOSSAMER_TESTS_TESTING_FAKE_DEVICE_GAME_H_

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_queue.h"
#include "tests/testing/fake_device.h"

namespace gossamer {

class FakeDeviceGame final : public Game {
 public:
  // `device` outlives it.
  FakeDeviceGame(FakeDevice* device, std::unique_ptr<Game> inner)
      : device_(device),
        inner_(std::move(inner)),
        queue_(device->queue()),
        x_(DeviceVector<float>::Of(queue_, inner_->parameters())),
        g_(queue_, inner_->layout().size()) {}

  const ParameterLayout& layout() const override { return inner_->layout(); }
  const DeviceQueue& queue() const override { return queue_; }
  DeviceSpan<float> device_parameters() override { return x_; }
  DeviceSpan<const float> device_gradients() const override { return g_; }
  // The compute engine's thread waits for the losses.
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    absl::StatusOr<Losses> losses = absl::UnknownError("not computed");
    device_->Launch([&] {
      const std::span<const float> g = inner_->gradients();
      std::copy_n(x_.span().data, x_.size(), inner_->parameters().begin());
      losses = inner_->Gradient(players, key);
      std::copy_n(g.begin(), g.size(), g_.span().data);
    });
    const absl::Status waited = queue_.Wait();
    return waited.ok() ? losses : waited;
  }
  bool PrepareState() override { return inner_->PrepareState(); }
  void VisitState(StateVisitor& visitor) override {
    inner_->VisitState(visitor);
  }
  MixingHooks* hooks() override { return nullptr; }
  Evaluator* evaluator() override { return inner_->evaluator(); }

 private:
  FakeDevice* const device_;
  const std::unique_ptr<Game> inner_;
  const DeviceQueue queue_;
  DeviceVector<float> x_, g_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_FAKE_DEVICE_GAME_H_
