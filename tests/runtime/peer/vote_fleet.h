// DataLens without networks: teachers vote by a formula, and the student's
// images are what it has learnt.
//
// This header knows nothing of what is tested.

#ifndef GOSSAMER_TESTS_RUNTIME_PEER_VOTE_FLEET_H_
#define GOSSAMER_TESTS_RUNTIME_PEER_VOTE_FLEET_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/game/game.h"
#include "algorithms/privacy/roles.h"
#include "algorithms/privacy/settings.h"
#include "algorithms/privacy/topagg.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {

inline constexpr int kDimensions = 12;
inline constexpr int kClasses = 3;

inline DataLensSettings VoteSettings() {
  DataLensSettings s;
  s.teachers = 17;
  s.top = 4;
  s.sigma = 20;
  s.batch = 5;
  s.budget.epsilon = 8;
  return s;
}

class FormulaTeachers : public TeacherGroup {
 public:
  FormulaTeachers(int first, int count) : first_(first), count_(count) {}
  int first() const override { return first_; }
  int count() const override { return count_; }
  absl::StatusOr<std::vector<int16_t>> Vote(uint64_t step,
                                            const ImageBatch& batch) override {
    ++votes;
    not_finite_ = 0;
    for (size_t j = 0; j < kDimensions; ++j) {
      memory_[j] = 0.9f * memory_[j] + batch.images[j];
    }
    std::vector<int16_t> sums(batch.images.size());
    for (int t = first_; t < first_ + count_; ++t) {
      std::vector<float> gradient(kDimensions);
      bool all_finite = true;
      for (size_t i = 0; i < batch.labels.size(); ++i) {
        for (size_t j = 0; j < kDimensions; ++j) {
          gradient[j] = std::sin(static_cast<float>(t + 1) * (j + 1)) -
                        batch.images[i * kDimensions + j] + batch.labels[i] -
                        memory_[j] / 4;
        }
        if (t == spoilt) std::ranges::fill(gradient, value);
        const absl::StatusOr<bool> finite =
            AddVote(gradient, 4, 1e-5, RngKey(5).Fold(t).Fold(step).Fold(i),
                    std::span(sums).subspan(i * kDimensions, kDimensions));
        if (!finite.ok()) return finite.status();
        all_finite = all_finite && *finite;
      }
      not_finite_ += !all_finite;
    }
    return sums;
  }
  void VisitState(StateVisitor& visitor) override {
    visitor.Floats("memory", memory_);
  }
  int NotFinite() const override { return not_finite_; }
  int votes = 0;
  // All of this teacher's gradients are of this value.
  int spoilt = -1;
  float value = 0;

 private:
  const int first_, count_;
  int not_finite_ = 0;
  std::vector<float> memory_ = std::vector<float>(kDimensions);
};

class TableStudent : public Student {
 public:
  std::span<float> parameters() override { return table; }
  absl::StatusOr<ImageBatch> Ask(uint64_t step) override {
    ImageBatch batch;
    for (int i = 0; i < VoteSettings().batch; ++i) {
      batch.labels.push_back(static_cast<uint8_t>((step + i) % kClasses));
    }
    batch.images = table;
    return batch;
  }
  absl::Status Learn(std::span<const int8_t> direction) override {
    if (++learnt == fails_at) {
      std::ranges::fill(table, NAN);
      return absl::InternalError("the student's table is not finite");
    }
    for (size_t j = 0; j < table.size(); ++j) {
      table[j] = std::clamp(table[j] + 0.1f * direction[j], -1.0f, 1.0f);
    }
    return absl::OkStatus();
  }
  void VisitState(StateVisitor&) override {}
  int learnt = 0;    // releases of this incarnation
  int fails_at = 0;  // 0: never
  std::vector<float> table =
      std::vector<float>(VoteSettings().batch * size_t{kDimensions});
};

class VoteGame : public Game {
 public:
  VoteGame(int rank, int peers) {
    if (rank == 0) return;
    const int n = VoteSettings().teachers;
    const int first = FirstTeacher(n, rank - 1, peers - 1);
    teachers_ = std::make_unique<FormulaTeachers>(
        first, FirstTeacher(n, rank, peers - 1) - first);
  }
  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override { return student.table; }
  DeviceSpan<const float> device_gradients() const override { return {}; }
  absl::StatusOr<Losses> Gradient(Players, RngKey) override {
    return absl::UnimplementedError("learns from votes");
  }
  void VisitState(StateVisitor& visitor) override {
    if (teachers_ != nullptr) teachers_->VisitState(visitor);
  }
  VotingRole voting() override {
    return {.student = teachers_ == nullptr ? &student : nullptr,
            .teachers = teachers_.get(),
            .dimensions = kDimensions,
            .classes = kClasses};
  }
  FormulaTeachers& teachers() { return *teachers_; }
  TableStudent student;

 private:
  const ParameterLayout layout_{{{"generator.table",
                                  Player::kGenerator,
                                  {VoteSettings().batch, kDimensions},
                                  {}}}};
  std::unique_ptr<FormulaTeachers> teachers_;
};

// A student and groups of teachers; kept noise, and no disks.
inline SimFleetOptions VoteFleet(int groups) {
  SimFleetOptions o;
  o.peers = groups + 1;
  o.peer.averaging = Averaging::kVotes;
  o.peer.votes = VoteSettings();
  o.peer.overlap_steps = 0;
  o.peer.liveness_limit = absl::Minutes(1);
  o.schedule.graph = "complete";
  o.step.generator = {.name = "sgd", .learning_rate = 1};
  o.step.discriminator = o.step.generator;
  o.game = [peers = o.peers](int rank) {
    return std::make_unique<VoteGame>(rank, peers);
  };
  o.voting = [](int) {
    return VotingParts{.noise = RngKey(9), .noise_repeats = true};
  };
  return o;
}

inline VoteGame& GameOf(SimFleet& fleet, int rank) {
  return static_cast<VoteGame&>(fleet.game(rank));
}
inline std::vector<float>& TableOf(SimFleet& fleet) {
  return GameOf(fleet, 0).student.table;
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_PEER_VOTE_FLEET_H_
