// Three players who pull at each other: a game with a known solution, played by
// peers that see different parts of it.
//
//   echo 'game { caller {} } peers: 4 rounds: 500' > run.textproto
//   gossamer-topology --config run.textproto --exit-when-finished &
//   for i in 1 2 3 4; do ./game --topology 127.0.0.1:7700 --config
//   run.textproto --id $i & done; wait
//
// Player k descends ½(x_k − t_k)² + ½ x_k x_{k+1}, with targets t that differ
// from peer to peer and average to 1; momentum is its own.

#include <cstdio>
#include <cstring>
#include <gossamer/gossamer.hpp>
#include <string>
#include <vector>

namespace {

constexpr int kPlayers = 3;
constexpr int kValues = 4096;  // of each player

class PullGame : public gossamer::Game {
 public:
  std::vector<gossamer::Tensor> tensors() const override {
    return {{"rock", "x", {64, 64}},
            {"paper", "x", {64, 64}},
            {"scissors", "x", {64, 64}}};
  }

  void Begin(float* x, size_t size) override {
    x_ = x;
    for (size_t i = 0; i < size; ++i) x[i] = 0.5f * static_cast<float>(i % 3);
    momentum_.assign(size, 0);
  }

  std::vector<double> Step(const gossamer::Status& status) override {
    // Peers are as many to the left of 1 as to the right.
    const float target = 1 + (static_cast<float>(status.id) -
                              0.5f * static_cast<float>(status.peers + 1));
    std::vector<double> losses(kPlayers);
    std::vector<float> gradient(kPlayers * kValues);
    for (int k = 0; k < kPlayers; ++k) {
      for (int i = 0; i < kValues; ++i) {
        const float own = x_[k * kValues + i];
        const float next = x_[(k + 1) % kPlayers * kValues + i];
        const float pull = own - target;
        gradient[k * kValues + i] = pull + 0.5f * next;
        losses[k] += (0.5 * pull * pull + 0.5 * own * next) / kValues;
      }
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      momentum_[i] = 0.9f * momentum_[i] + gradient[i];
      x_[i] -= 0.01f * momentum_[i];
    }
    if (status.round == status.rounds) {
      std::printf("mean %.6f\n", Mean());
      std::fflush(stdout);
    }
    return losses;
  }

  std::string Save() override {
    return std::string(reinterpret_cast<const char*>(momentum_.data()),
                       momentum_.size() * sizeof(float));
  }
  void Load(const std::string& state) override {
    if (state.size() != momentum_.size() * sizeof(float)) {
      throw gossamer::Error("the momentum has another size");
    }
    std::memcpy(momentum_.data(), state.data(), state.size());
  }

  // Every player's solution is t/1.5 on average.
  double Mean() const {
    double sum = 0;
    for (int i = 0; i < kPlayers * kValues; ++i) sum += x_[i];
    return sum / (kPlayers * kValues);
  }

 private:
  float* x_ = nullptr;
  std::vector<float> momentum_;
};

}  // namespace

int main(int argc, char** argv) {
  PullGame game;
  return gossamer::RunPeer(game, argc, argv);
}
