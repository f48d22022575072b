// A Fleet on a ring whose peers send heartbeats once a second.
//
// This header knows nothing of the test's changes to them.

#ifndef GOSSAMER_TESTS_TOPOLOGY_FLEET_BEATING_FLEET_H_
#define GOSSAMER_TESTS_TOPOLOGY_FLEET_BEATING_FLEET_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/fleet/fleet.h"

namespace gossamer {

// The fleet and its peers' heartbeats.  Peers whose heartbeat is removed are
// silent; incarnation ids are 100 + id.
class BeatingFleet : public testing::Test {
 protected:
  void Assemble(int n, const std::string& graph = "ring", int expected = 0) {
    options_.run_id = "run";
    options_.expected = expected == 0 ? n : expected;
    options_.schedule.graph = graph;
    fleet_ = *Fleet::Create(options_, std::nullopt, now_);
    for (int i = 1; i <= n; ++i) {
      ASSERT_TRUE(Register(i, 100 + i).ok());
      beats_[i] = Beat(i, 100 + i);
    }
  }
  absl::StatusOr<PeerId> Register(uint64_t id, uint64_t incarnation,
                                  bool has_parameters = false,
                                  std::vector<uint64_t> checkpoints = {}) {
    Registration r;
    r.run_id = "run";
    r.peer_id = {id};
    r.incarnation_id = incarnation;
    r.address = "host:" + std::to_string(id);
    r.has_parameters = has_parameters;
    r.checkpoint_rounds = std::move(checkpoints);
    return fleet_->Register(r, now_);
  }
  static FleetHeartbeat Beat(uint64_t id, uint64_t incarnation) {
    FleetHeartbeat h;
    h.run_id = "run";
    h.peer_id = {id};
    h.incarnation_id = incarnation;
    h.report.round = h.round_begun = 100;
    h.report.rounds_per_second = 10;
    return h;
  }
  // Every peer in beats_ sends one heartbeat a second.
  void Run(int seconds) {
    for (int s = 0; s < seconds; ++s) {
      now_ += absl::Seconds(1);
      for (auto& [id, beat] : beats_) {
        beat.round_begun = beat.report.round = beat.report.round + 10;
        const auto answer = fleet_->Heartbeat(beat, now_);
        ASSERT_TRUE(answer.ok()) << answer.status();
        answers_[id] = *answer;
      }
      fleet_->Tick(now_);
    }
  }
  std::vector<uint64_t> Members() const {
    std::vector<uint64_t> ids;
    for (const Member& m : fleet_->record().view.members) {
      ids.push_back(m.id.value);
    }
    return ids;
  }
  void Suspect(int by, std::vector<PeerId> whom) {
    beats_[by].suspected = std::move(whom);
  }
  // Peer 3 of a ring of four freezes until it is evicted, and then sends again.
  void EvictThree() {
    const FleetHeartbeat frozen = beats_[3];
    beats_.erase(3);
    Suspect(2, {{3}});
    Suspect(4, {{3}});
    Run(6);
    ASSERT_EQ(Members().size(), 3);
    Suspect(2, {});
    Suspect(4, {});
    beats_[3] = frozen;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  FleetOptions options_;
  std::unique_ptr<Fleet> fleet_;
  std::map<int, FleetHeartbeat> beats_;
  std::map<int, FleetAnswer> answers_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TOPOLOGY_FLEET_BEATING_FLEET_H_
