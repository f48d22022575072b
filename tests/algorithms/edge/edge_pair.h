// Two ends of an edge whose frames a test moves by hand.

#ifndef GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_PAIR_H_
#define GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_PAIR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge.h"
#include "gtest/gtest.h"

namespace gossamer {

// 1,064 parameters: a vector that travels in bf16 with every quantizing codec
// and a matrix that is quantized.
inline ParameterLayout PairLayout() {
  std::vector<Segment> segments(2);
  segments[0].name = "bias";
  segments[0].shape = {40};
  segments[1].name = "weight";
  segments[1].player = Player::kDiscriminator;
  segments[1].shape = {32, 32};
  return ParameterLayout(std::move(segments));
}

inline std::shared_ptr<const Codec> PairCodec(std::string_view name) {
  return Codec::Create(name, PairLayout()).value();
}

// Options of end `e`, which is peer e + 1; the other end is peer 2 - e.
inline EdgeOptions PairOptions(int e, int window = 1) {
  EdgeOptions options;
  options.self = {static_cast<uint64_t>(e) + 1};
  options.other = {static_cast<uint64_t>(2 - e)};
  options.run_id = "run";
  options.epoch = MakeEpoch(1000 + e, 17);
  options.frontier = MakeExchangeId(1);
  options.window = window;
  options.layout = PairLayout().fingerprint();
  return options;
}

class EdgePair {
 public:
  using Vectors = std::array<std::vector<float>, 2>;

  EdgePair(std::shared_ptr<const Codec> codec, Vectors start, int window = 1)
      : EdgePair(std::move(codec), std::move(start),
                 {PairOptions(0, window), PairOptions(1, window)}) {}
  EdgePair(std::shared_ptr<const Codec> codec, Vectors start,
           std::array<EdgeOptions, 2> options)
      : x(std::move(start)) {
    for (int e : {0, 1}) {
      edge[e] = std::make_unique<Edge>(options[e], codec, x[e],
                                       std::make_shared<SnapshotCache>());
    }
  }

  // A connection comes up at both ends, and all frames arrive.
  void Connect(uint64_t connection) {
    for (auto& end : edge) end->ConnectionUp(connection);
    newest = connection;
    Pump();
  }
  void Disconnect() {
    for (auto& end : edge) end->ConnectionDown(newest);
  }
  // Delivers frames both ways until there are none.
  void Pump() {
    for (bool moved = true; std::exchange(moved, false);) {
      for (int e : {0, 1}) {
        edge[e]->Flush();
        for (const Edge::OutFrame& f : edge[e]->TakeFrames()) {
          const absl::Status status =
              edge[1 - e]->OnFrame(newest, f.head, f.body);
          EXPECT_TRUE(status.ok()) << status;
          moved = true;
        }
      }
    }
  }
  // One exchange of both ends, from emission to correction.
  void Mix(ExchangeId id, float c) {
    for (auto& end : edge) end->Emit(id, c, true);
    Pump();
    for (auto& end : edge) end->Complete(id + 1);
    Pump();
  }

  Vectors x;
  std::array<std::unique_ptr<Edge>, 2> edge;
  uint64_t newest = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_PAIR_H_
