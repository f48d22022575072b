// Parts that the tests of one edge share: pairs to start from, an end's whole
// state as text, and frames taken apart.

#ifndef GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_TESTING_H_
#define GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_TESTING_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/rng.h"
#include "algorithms/edge/edge.h"
#include "gtest/gtest.h"
#include "tests/algorithms/edge/edge_pair.h"

namespace gossamer {

inline constexpr float kC = 0.25f;
inline constexpr uint64_t kMaxEpoch = uint64_t{1} << 63;

inline EdgePair::Vectors Start() {
  EdgePair::Vectors x;
  for (int e : {0, 1}) {
    x[e].resize(PairLayout().size());
    RngKey(e).FillGaussian(x[e]);
  }
  return x;
}

inline EdgePair MakePair(std::string_view codec, int window = 1) {
  return EdgePair(PairCodec(codec), Start(), window);
}

// Returns all of an end's state as text, to show that nothing has changed.
inline std::string StateOf(const Edge& edge) {
  const auto& s = edge.state();
  std::string text;
  for (const uint64_t v :
       {s.epoch, s.peer_epoch, s.basis, s.decided, s.received, s.done,
        s.peer_done, s.last, s.announced}) {
    absl::StrAppend(&text, v, " ");
  }
  absl::StrAppend(&text, s.window, s.peer_window, s.connected, s.ready,
                  s.ack_due);
  for (const auto* queue : {&s.mine, &s.theirs}) {
    absl::StrAppend(&text, " queue");
    for (const auto& held : *queue) {
      absl::StrAppend(&text, " ", held.id, ",", held.prev, ",", held.token.c,
                      ",", Crc32c(held.token.bytes.bytes()));
    }
  }
  const EdgeCodecState::Saved saved = edge.codec_state().Save();
  for (const auto* v : {&saved.replica, &saved.difference}) {
    absl::StrAppend(&text, " ", Crc32c(std::as_bytes(std::span(*v))));
  }
  for (const EdgeCodecState::Progress& p : saved.progress) {
    absl::StrAppend(&text, " ", p.first, p.emit_interval, p.complete_interval);
  }
  return absl::StrCat(text, " ", edge.corrections());
}

inline EdgeHeader HeaderOf(const Edge::OutFrame& frame) {
  return DecodeHeader(frame.head).value();
}

// Returns the frame that end 0 sends to end 1 for its exchange `id`.
inline Edge::OutFrame PayloadFrame(EdgePair& pair, ExchangeId id) {
  EXPECT_TRUE(pair.edge[0]->Emit(id, kC, true));
  std::vector<Edge::OutFrame> frames = pair.edge[0]->TakeFrames();
  EXPECT_EQ(frames.size(), 1u);
  return frames.at(0);
}

// A hello that `from` might send.
inline EdgeHeader HelloOf(const Edge& from) {
  EdgeHeader h;
  h.kind = FrameKind::kHello;
  h.epoch = from.state().epoch;
  h.peer_epoch = from.state().peer_epoch;
  h.layout = FoldFingerprint(PairLayout().fingerprint());
  h.run_id = "run";
  h.replica = from.codec_state().codec().needs_replica();
  return h;
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_TESTING_H_
