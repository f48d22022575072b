// One peer of a run by itself: what its neighbours sent is kept, and with it
// the peer comes to the same bits, from the beginning and from a checkpoint.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/replay/inputs_log.h"
#include "runtime/replay/recorded_neighbors.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace {

using testing::HasSubstr;

constexpr int kRank = 1;

// A peer over RecordedNeighbors, as SimFleet makes one of several.
class AlonePeer {
 public:
  AlonePeer(const SimFleetOptions& o, const std::string& inputs,
            uint64_t from_round = 0, Decisions* decisions = nullptr)
      : log_(*InputsLog::Open(inputs)), neighbors_(&loop_, log_.get()) {
    View view = log_->view();
    view.resume_round = from_round;
    view.from_round = std::max<uint64_t>(1, from_round);
    fleet_ = std::make_unique<StaticFleet>(view);
    membership_ = fleet_->Join(log_->self(), &peer_loop_);
    game_ = o.game(kRank);
    LocalStepSpec step = o.step;
    step.last_round = o.peer.rounds;
    step_ = *LocalStep::Create(step, game_.get());
    if (!o.checkpoints.empty()) {
      checkpoints_ = std::make_unique<CheckpointStore>(
          o.checkpoints + "/peer-" + std::to_string(kRank), 9);
    }
    PeerSpec spec = o.peer;
    spec.self = log_->self();
    spec.run_id = "sim";
    spec.seed = o.seed;
    spec.epoch = MakeEpoch(2'000'000'000, 77);
    peer_ = *Peer::Create(
        spec, {.loop = &peer_loop_,
               .compute = &compute_,
               .transport = &neighbors_,
               .membership = membership_.get(),
               .game = game_.get(),
               .step = step_.get(),
               .codec = *Codec::Create(o.codec, game_->layout()),
               .gradients = nullptr,
               .metrics = &recorder_,
               .decisions = decisions != nullptr ? decisions : &replayed_,
               .checkpoints = checkpoints_.get(),
               .sketch = nullptr});
  }
  ~AlonePeer() {
    run_ = {};
    peer_.reset();
  }

  absl::Status Run() {
    run_ = peer_->Run();
    loop_.RunUntil([this] { return run_.done(); }, absl::Hours(1));
    return run_.done() ? run_.value()
                       : absl::DeadlineExceededError("still running");
  }
  std::vector<float> parameters() const {
    const auto x = game_->parameters();
    return {x.begin(), x.end()};
  }
  Game& game() { return *game_; }
  const Peer& peer() const { return *peer_; }
  const InputsLog& log() const { return *log_; }
  const RecordedNeighbors& neighbors() const { return neighbors_; }

 private:
  VirtualLoop loop_;
  VirtualPeerLoop peer_loop_{&loop_};
  VirtualCompute compute_{
      &peer_loop_, VirtualCompute::Around(RngKey(1), absl::Milliseconds(3), 0)};
  std::unique_ptr<InputsLog> log_;
  RecordedNeighbors neighbors_;
  Decisions replayed_ = *Decisions::Replay("");
  std::unique_ptr<StaticFleet> fleet_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<Game> game_;
  std::unique_ptr<LocalStep> step_;
  std::unique_ptr<CheckpointStore> checkpoints_;
  EventRecorder recorder_;
  std::unique_ptr<Peer> peer_;
  Task<absl::Status> run_;
};

class RecordedInputsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("gossamer_inputs_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    inputs_ = folder_ / "inputs.bin";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs the fleet and keeps what rank kRank hears; its parameters at the end.
  std::vector<float> Record(const SimFleetOptions& o) {
    SimFleet fleet(o);
    auto writer = *InputsWriter::Open(
        inputs_,
        {.self = SimFleet::IdOf(kRank),
         .layout = fleet.game(kRank).layout().fingerprint(),
         .view =
             [&fleet] {
               View view = fleet.fleet().view();
               for (Member& m : view.members) m.address = "sim:1";
               return view;
             }},
        [](const absl::Status& why) { ADD_FAILURE() << why; });
    fleet.peer(kRank).neighborhood().AddObservers(
        [&writer](PeerId peer) { return writer->Of(peer); });
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(kRank);
    const auto x = fleet.game(kRank).parameters();
    writer->End(fleet.peer(kRank).round(), x);
    return {x.begin(), x.end()};
  }

  std::filesystem::path folder_;
  std::string inputs_;
};

TEST_F(RecordedInputsTest, ThePeerAloneComesToTheSameBits) {
  for (const char* codec :
       {"dense-f32", "innov-int4:least=16", "squeeze-int4:least=16",
        "power-gossip:least=16", "qsgd:least=16,coding=omega"}) {
    for (const int overlap : {0, 1, 3}) {
      for (const char* schedule : {"fixed", "permuted-ring"}) {
        SCOPED_TRACE(testing::Message()
                     << codec << " h=" << overlap << " " << schedule);
        SimFleetOptions o = QuadraticFleet(5, 40);
        o.codec = codec;
        o.schedule.schedule = schedule;
        o.peer.overlap_steps = overlap;
        if (std::string(codec).starts_with("power") && overlap > 1) continue;
        const std::vector<float> x = Record(o);
        AlonePeer alone(o, inputs_);
        ASSERT_TRUE(alone.Run().ok());
        EXPECT_TRUE(alone.neighbors().status().ok())
            << alone.neighbors().status();
        EXPECT_GT(alone.neighbors().equal(), 30u);
        EXPECT_EQ(alone.parameters(), x);
        ASSERT_TRUE(alone.log().end().has_value());
        EXPECT_EQ(alone.log().end()->round, alone.peer().round());
        EXPECT_EQ(alone.log().end()->parameters,
                  Crc32c(std::as_bytes(alone.game().parameters())));
      }
    }
  }
}

// run 2N equals run N, stop, resume N, for one peer with its inputs recorded.
TEST_F(RecordedInputsTest, FromACheckpointTheSameBits) {
  for (const char* codec : {"dense-f32", "innov-int4:least=16"}) {
    for (const int overlap : {0, 1, 4}) {
      SCOPED_TRACE(testing::Message() << codec << " h=" << overlap);
      SimFleetOptions o = QuadraticFleet(4, 60);
      o.codec = codec;
      o.peer.overlap_steps = overlap;
      o.peer.ema = 0.9;
      const std::vector<float> x = Record(o);

      o.checkpoints = folder_ / "first";
      Decisions first_half = *Decisions::Replay("stop 31\n");
      {
        AlonePeer first(o, inputs_, 0, &first_half);
        ASSERT_TRUE(first.Run().ok());
        EXPECT_TRUE(first.peer().stopped());
        EXPECT_EQ(first.peer().round(), 31u);
        EXPECT_NE(first.parameters(), x);
      }
      AlonePeer second(o, inputs_, 31);
      ASSERT_TRUE(second.Run().ok());
      EXPECT_EQ(second.parameters(), x);
      EXPECT_TRUE(second.neighbors().status().ok())
          << second.neighbors().status();
      EXPECT_LT(second.neighbors().equal(), 80u);
      std::filesystem::remove_all(o.checkpoints);
    }
  }
}

// Frozen peers, broken links and deadlines: with the decisions of the clock
// and the inputs, the same bits again.
TEST_F(RecordedInputsTest, DeadlinesAndSkipsRepeat) {
  SimFleetOptions o = QuadraticFleet(5, 100);
  o.codec = "innov-int4:least=16";
  o.schedule.schedule = "permuted-ring";
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  std::string lines;
  Decisions kept([&lines](const std::string& l) { lines += l + "\n"; });
  o.decisions = [&kept](int rank) { return rank == kRank ? &kept : nullptr; };
  o.slowness = {{3, 5.0}};
  o.step_jitter = 0.5;
  const std::vector<float> x = Record(o);
  EXPECT_THAT(lines, HasSubstr("done"));
  Decisions again = *Decisions::Replay(lines);
  AlonePeer alone(o, inputs_, 0, &again);
  ASSERT_TRUE(alone.Run().ok());
  EXPECT_TRUE(alone.neighbors().status().ok()) << alone.neighbors().status();
  EXPECT_EQ(alone.parameters(), x);
}

// Another learning rate: the first payload that differs is named.
TEST_F(RecordedInputsTest, OtherBitsAreNoticedWhereTheyBegin) {
  SimFleetOptions o = QuadraticFleet(4, 30);
  Record(o);
  o.step.generator.learning_rate *= 1.001;
  AlonePeer alone(o, inputs_);
  ASSERT_TRUE(alone.Run().ok());
  EXPECT_EQ(alone.neighbors().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(alone.neighbors().status().message()),
              HasSubstr("in round 2 differs"));
}

// What a crash cut off is left out; the rest repeats up to there.
TEST_F(RecordedInputsTest, AFileThatEndsAnywhereIsRead) {
  SimFleetOptions o = QuadraticFleet(4, 30);
  Record(o);
  const auto whole = std::filesystem::file_size(inputs_);
  for (const auto cut : {whole - 1, whole - 36, whole / 2, whole / 3}) {
    std::filesystem::resize_file(inputs_, cut);
    const auto log = InputsLog::Open(inputs_);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_FALSE((*log)->end().has_value());
    EXPECT_LE((*log)->last_round(), 30u);
    Decisions decisions = *Decisions::Replay(
        "stop " + std::to_string((*log)->last_round()) + "\n");
    AlonePeer alone(o, inputs_, 0, &decisions);
    ASSERT_TRUE(alone.Run().ok());
    EXPECT_TRUE(alone.neighbors().status().ok()) << alone.neighbors().status();
    EXPECT_EQ(alone.peer().round(), (*log)->last_round());
  }
  for (const auto cut : {0u, 3u, 31u, 40u}) {
    std::filesystem::resize_file(inputs_, cut);
    EXPECT_EQ(InputsLog::Open(inputs_).status().code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(InputsLog::Open(folder_ / "none").status().code(),
            absl::StatusCode::kNotFound);
}

// Every byte is covered by a checksum: whatever is damaged, what is read is a
// beginning of what was written.
TEST_F(RecordedInputsTest, DamageIsNeverReadAsSomethingElse) {
  SimFleetOptions o = QuadraticFleet(4, 6);
  Record(o);
  std::ifstream file(inputs_, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t all = (*InputsLog::Open(inputs_))->exchanges();
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    std::ofstream(inputs_, std::ios::binary) << damaged;
    const auto log = InputsLog::Open(inputs_);
    if (!log.ok()) {
      EXPECT_EQ(log.status().code(), absl::StatusCode::kDataLoss);
      continue;
    }
    EXPECT_TRUE((*log)->exchanges() < all || !(*log)->end()) << at;
  }
}

}  // namespace
}  // namespace gossamer
