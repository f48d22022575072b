// The bytes that members send one another beside exchanges, in this version.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/sha256.h"
#include "runtime/checkpoint/peer_state.h"
#include "runtime/checkpoint/state_transfer.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/fuzz/golden_wire.h"
#include "tests/testing/at_once.h"

namespace gossamer {
namespace golden_peer_test {

constexpr PeerId kMember{1}, kJoiner{9};

Checkpoint State() {
  Checkpoint state;
  state.floats["parameters"] = {1.0f, -2.5f, 0.0f};
  state.bytes["game.order"] = {std::byte{1}, std::byte{2}};
  state.counters["steps"] = 77;
  return state;
}

// Appends a step of the targets of peer_targets.cc: a frame's head and body, or
// an event of the prober.
void AppendFrame(std::byte kind, const Frame& frame,
                 std::vector<std::byte>& to) {
  to.push_back(kind);
  AppendPiece(frame.head.bytes(), to);
  AppendPiece(frame.body.bytes(), to);
}
constexpr std::byte kFromThird{130};
void AppendProbe(const Frame& frame, std::vector<std::byte>& to,
                 std::byte kind = std::byte{2}) {
  to.push_back(kind);
  AppendPiece(frame.head.bytes(), to);
  to.insert(to.end(), 8, std::byte{1});
}

TEST(GoldenPeerTest, AStateAndItsTransferAreAsTheyWere) {
  const absl::Time now = absl::UnixEpoch();
  std::vector<std::byte> state = EncodeState(State());
  ExpectGoldenWire("snapshot/small", state);
  // A joiner and a member, frame by frame; the target delivers each frame.
  std::vector<std::byte> frames = {std::byte{8}};  // member 1 is a donor
  std::vector<Frame> to_member, to_joiner;
  const auto keep = [](std::vector<Frame>& sent) {
    return [&sent](PeerId, Frame frame) {
      sent.push_back(std::move(frame));
      return true;
    };
  };
  StateDonor donor(keep(to_joiner));
  StateCollector joiner(keep(to_member), AtOnce, 1 << 20, absl::Minutes(10),
                        [](const Checkpoint&) { return absl::OkStatus(); });
  donor.Serve({kJoiner});
  joiner.SetDonors({kMember}, now);
  while (!joiner.done()) {
    ASSERT_EQ(to_member.size(), 1u);
    AppendFrame(std::byte{5}, to_member[0], frames);
    donor.OnFrame(kJoiner, std::exchange(to_member, {})[0], now);
    if (donor.wanted()) {
      frames.push_back(std::byte{2});
      AppendPiece(state, frames);
      donor.Offer(state, Sha256(state), now);
    }
    ASSERT_EQ(to_joiner.size(), 1u);
    AppendFrame(std::byte{4}, to_joiner[0], frames);
    joiner.OnFrame(kMember, std::exchange(to_joiner, {})[0], now);
  }
  ExpectGoldenWire("state-transfer/one", frames);
}

TEST(GoldenPeerTest, ProbesAreAsTheyWere) {
  VirtualLoop loop;
  std::vector<Frame> asked, answered;
  LinkProber prober(&loop, [&](PeerId, Frame frame) {
    asked.push_back(std::move(frame));
    return true;
  });
  LinkProber other(&loop, [&](PeerId, Frame frame) {
    answered.push_back(std::move(frame));
    return true;
  });
  std::optional<LinkMeasurement> measured;
  // A measurement, whose frames both ends of the target receive.
  std::vector<std::byte> probes = {std::byte{0}};
  prober.Measure(kMember, [&](const auto& m) { measured = m; });
  while (!measured && !asked.empty()) {
    Frame frame = std::exchange(asked, {})[0];
    frame.transit = {.bytes = 1000, .took = absl::Milliseconds(1)};
    AppendProbe(frame, probes);
    other.OnFrame(kJoiner, frame);
    ASSERT_EQ(answered.size(), 1u);
    AppendProbe(answered[0], probes);
    prober.OnFrame(kMember, std::exchange(answered, {})[0]);
  }
  ASSERT_TRUE(measured);
  ExpectGoldenWire("link-probes/one", probes);
  // A third peer is asked, pings, hears the answer, and reports it.
  constexpr PeerId kProxy{4}, kTarget{2}, kAsker{3};
  std::vector<std::byte> ping_request;
  prober.RequestPing(kProxy, kTarget);
  AppendProbe(asked[0], ping_request, kFromThird);
  other.OnFrame(kAsker, std::exchange(asked, {})[0]);
  ASSERT_EQ(answered.size(), 1u);
  AppendProbe(answered[0], ping_request);
  prober.OnFrame(kProxy, std::exchange(answered, {})[0]);
  ASSERT_EQ(asked.size(), 1u);
  AppendProbe(asked[0], ping_request);
  other.OnFrame(kTarget, std::exchange(asked, {})[0]);
  ASSERT_EQ(answered.size(), 1u);
  AppendProbe(answered[0], ping_request);
  ExpectGoldenWire("link-probes/errand", ping_request);
}

}  // namespace golden_peer_test
}  // namespace gossamer
