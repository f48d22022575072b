// Ranks that average gradients: the real compressors and the real all-reduce,
// with messages in an order drawn from a key.
//
// It knows no network and no clock; benchmarks use it too.

#ifndef GOSSAMER_TESTS_ALGORITHMS_COMPRESS_GRADIENT_FLEET_H_
#define GOSSAMER_TESTS_ALGORITHMS_COMPRESS_GRADIENT_FLEET_H_

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/collective/all_reduce.h"
#include "algorithms/collective/collective_message.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/linear_coder.h"

namespace gossamer {

// Copies every vector of a state, or writes them back.
class StateCopy final : public StateVisitor {
 public:
  bool loads() const override { return restoring; }
  void Floats(std::string_view name, std::span<float> values) override {
    std::vector<float>& copy = floats[std::string(name)];
    if (restoring) {
      std::ranges::copy(copy, values.begin());
    } else {
      copy.assign(values.begin(), values.end());
    }
  }
  void Counter(std::string_view name, uint64_t& value) override {
    uint64_t& copy = counters[std::string(name)];
    restoring ? value = copy : copy = value;
  }
  void Bytes(std::string_view name, std::vector<std::byte>& value) override {
    auto& copy = bytes[std::string(name)];
    restoring ? value = copy : copy = value;
  }
  bool restoring = false;
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, uint64_t> counters;
  std::map<std::string, std::vector<std::byte>> bytes;
};

// Ends the program if a property that every method has does not hold; without
// gtest, since benchmarks use it too.
inline void MustHold(bool holds, const char* claim, int rank) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: does not hold: %s\n", rank, claim);
  std::abort();
}

class GradientFleet {
 public:
  using Vectors = std::vector<std::vector<float>>;

  GradientFleet(std::string_view method, const ParameterLayout& layout,
                int size, std::string_view schedule = "",
                const ValueCoderMaker& coders = MakeLinearCoder)
      : size_(size), sent_(size) {
    for (int r = 0; r < size; ++r) {
      auto made =
          GradientCompressor::Create(method, layout, HostKernels(), coders);
      MustHold(made.ok(), "the method can be made", r);
      ranks_.push_back(*std::move(made));
    }
    schedule_ = !schedule.empty()       ? schedule
                : ranks_[0]->summable() ? "mesh"
                                        : "all-gather";
  }

  // Runs one step; a gradient may be empty.  Returns the mean, which must have
  // the same bits at all ranks.  With `ahead` leaders send their next message
  // beforehand if they can.
  std::vector<float> Step(const Vectors& gradients, RngKey order = RngKey(1),
                          bool repeats = false, bool ahead = false) {
    for (int r = 0; r < size_; ++r) {
      auto op =
          AllReduce::Create(schedule_, r, size_, ranks_[r]->Form(step_, size_));
      MustHold(op.ok(), "the operation can be made", r);
      ops_.push_back(*std::move(op));
    }
    vectors_.assign(size_, {});
    begun_.assign(size_, false);
    for (auto& [rank, message] : leader_messages_) {
      ops_[rank].SetLeaderMessage(message);
    };
    Run(gradients, order, repeats);
    const std::vector<float> mean = Finish(ahead);
    ops_.clear();
    ++step_;
    return mean;
  }

  // Returns the bytes that a rank has sent so far, with heads.
  size_t bytes_sent(int rank) const { return sent_[rank]; }
  GradientCompressor& rank(int r) { return *ranks_[r]; }
  StateCopy Save(int r) {
    StateCopy copy;
    ranks_[r]->VisitState(copy);
    return copy;
  }
  std::vector<float> Residual(int r) { return Save(r).floats["residual"]; }
  void Restore(int r, StateCopy copy, uint64_t step) {
    copy.restoring = true;
    ranks_[r]->VisitState(copy);
    step_ = step;
  }
  uint64_t step() const { return step_; }

 private:
  struct InFlight {
    int from, to;
    uint32_t step;
    SharedBytes bytes;
  };

  void Run(const Vectors& gradients, RngKey key, bool repeats) {
    std::vector<int> waiting(size_);
    for (int r = 0; r < size_; ++r) waiting[r] = r;
    for (int r = 0; r < size_; ++r) Collect(r);
    uint64_t draw = 0;
    while (!waiting.empty() || !net_.empty()) {
      const size_t i = key.Below(waiting.size() + net_.size(), draw++);
      if (i < waiting.size()) {
        const int r = waiting[i];
        waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(i));
        Begin(r, gradients[r]);
        continue;
      }
      const auto at = net_.begin() + static_cast<ptrdiff_t>(i - waiting.size());
      const InFlight m = *at;
      if (!repeats || key.Below(3, draw++) > 0) {
        *at = net_.back();
        net_.pop_back();
      }
      MustHold(ops_[m.to].OnMessage(m.from, m.step, m.bytes).ok(),
               "an honest message is accepted", m.to);
      Contribute(m.to);
    }
  }

  void Begin(int r, std::span<const float> gradient) {
    ranks_[r]->Begin({step_, r, size_}, gradient);
    begun_[r] = true;
    const AllReduceForm form = ranks_[r]->Form(step_, size_);
    if (form.leader == r && !ops_[r].can_start()) {
      ops_[r].SetLeaderMessage(ranks_[r]->MakeLeaderMessage());
    }
    Contribute(r);
  }

  void Contribute(int r) {
    if (begun_[r] && ops_[r].can_start() && !ops_[r].started()) {
      vectors_[r].resize(ranks_[r]->Form(step_, size_).floats);
      SharedBytes own =
          ranks_[r]->Contribute(ops_[r].leader_message(), vectors_[r]);
      ops_[r].Start(vectors_[r], std::move(own));
    }
    Collect(r);
  }

  void Collect(int r) {
    for (AllReduce::Message& m : ops_[r].TakeOutgoing()) {
      sent_[r] += kCollectiveHeadBytes + m.bytes.size();
      net_.push_back({r, m.rank, m.step, m.bytes});
    }
  }

  std::vector<float> Finish(bool ahead) {
    std::vector<float> first;
    leader_messages_.clear();
    for (int r = 0; r < size_; ++r) {
      MustHold(ops_[r].done(), "all messages end the operation", r);
      const auto mean = ranks_[r]->Finish(vectors_[r]);
      if (r == 0) first.assign(mean.begin(), mean.end());
      MustHold(
          std::ranges::equal(mean, first, {}, std::bit_cast<uint32_t, float>,
                             std::bit_cast<uint32_t, float>),
          "the mean has the same bits everywhere", r);
      SharedBytes message = ranks_[r]->MakeNextLeaderMessage({step_, r, size_});
      if (ahead && !message.empty()) {
        leader_messages_.emplace(r, std::move(message));
      }
    }
    return first;
  }

  const int size_;
  std::string schedule_;
  std::vector<std::unique_ptr<GradientCompressor>> ranks_;
  std::vector<size_t> sent_;
  uint64_t step_ = 0;
  std::vector<AllReduce> ops_;
  Vectors vectors_;
  std::vector<bool> begun_;
  std::map<int, SharedBytes> leader_messages_;
  std::vector<InFlight> net_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_COMPRESS_GRADIENT_FLEET_H_
