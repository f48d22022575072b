// Differences beyond Moniqua's θ are reported, and only those.

#include <memory>
#include <string>

#include "algorithms/compress/moniqua.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/matrix_game.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace {

using testing::HasSubstr;

constexpr int kPeers = 6;

TEST(WrapWatchTest, ARangeIsThatOfMoniqua) {
  EXPECT_EQ(ModuloOptionsOf("moniqua")->theta, 0.1);
  EXPECT_EQ(ModuloOptionsOf("moniqua:bits=4,theta=2,least=8")->theta, 2);
  EXPECT_FALSE(ModuloOptionsOf("innov-int4"));
  EXPECT_FALSE(ModuloOptionsOf("qsgd:levels=7"));
}

// Peers start with normal parameters of standard deviation `apart`, so
// differences have one of 1.4 `apart`.  Mixing brings them together if no value
// wraps.
TEST(WrapWatchTest, TellsOfDifferencesBeyondTheRangeAndOfNoOthers) {
  const auto events = [](const std::string& codec, double apart) {
    SimFleetOptions o;
    o.peers = kPeers;
    o.peer.rounds = 130;
    o.codec = codec;
    o.step.generator = {.name = "sgd", .learning_rate = 1e-3};
    o.step.discriminator = o.step.generator;
    o.game = [=](int rank) {
      return std::make_unique<MatrixGame>(rank, kPeers, 0, apart);
    };
    SimFleet fleet(o);
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    for (const Event& e : fleet.recorder(3).events) {
      if (e.kind != "moniqua_wraps") continue;
      EXPECT_THAT(e.detail, HasSubstr("set mixing.codec to moniqua with a "
                                      "larger theta, moniqua:theta="));
    }
    for (int r = 1; r < kPeers; ++r) {
      EXPECT_EQ(fleet.recorder(r).Count("moniqua_wraps"),
                fleet.recorder(0).Count("moniqua_wraps"));
    }
    return fleet.recorder(0).Count("moniqua_wraps");
  };
  // It is reported once: afterwards mixing has made all differences multiples
  // of the range, which look like 0.
  EXPECT_EQ(events("moniqua", 1), 1);
  EXPECT_EQ(events("moniqua:theta=0.5,bits=4", 1), 1);
  EXPECT_EQ(events("moniqua:theta=8", 1), 0);
  EXPECT_EQ(events("moniqua", 0.01), 0);
  EXPECT_EQ(events("moniqua:bits=4", 0.01), 0);
  EXPECT_EQ(events("diff-int8", 1), 0);
}

}  // namespace
}  // namespace gossamer
