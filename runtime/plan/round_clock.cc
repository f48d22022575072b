#include "runtime/plan/round_clock.h"

#include <algorithm>
#include <span>

namespace gossamer {
namespace {

// Enough for a fleet to fall into step, twice; and for what is drawn to average
// out, twice.
constexpr int kRounds = 240;
constexpr int kDrawnRounds = 480;
constexpr int kOperations = 24;  // the same of all-reduces
constexpr int kFirstOperation = 8;
constexpr double kSizeOfFloat = 4;

class RoundClock {
 public:
  RoundClock(const LinkTimes& links, const ScheduleRounds& schedule,
             const RoundCosts& costs, int overlap)
      : links_(links),
        schedule_(schedule),
        costs_(costs),
        overlap_(overlap),
        kept_(std::max(1, overlap)),
        begin_(links.size),
        free_(links.links.size()),
        there_(links.links.size() * kept_) {}

  RoundTimes Run() {
    double counted = 0;
    const int last = schedule_.drawn() ? kDrawnRounds : kRounds;
    for (int k = 0; k < last; ++k) {
      if (k == last / 2) {
        counted = *std::ranges::max_element(begin_);
        bytes_ = 0;
        exchange_ = 0;
      }
      for (int i = 0; i < links_.size; ++i) Send(i, k);
      for (int i = 0; i < links_.size; ++i) End(i, k);
    }
    const double rounds = last - last / 2;
    return {.round = (*std::ranges::max_element(begin_) - counted) / rounds,
            .exchange = exchange_,
            .sent = bytes_ / rounds / links_.size};
  }

 private:
  std::span<const Neighbor> Row(int i, int k) const {
    return schedule_.Rows(k)[i].neighbors;
  }
  size_t Edge(int from, int to) const {
    return static_cast<size_t>(from) * links_.size + to;
  }
  double& There(int from, int to, int k) {
    return there_[Edge(from, to) * kept_ + k % kept_];
  }
  double Encoding(int i, int k) const {
    if (Row(i, k).empty()) return 0;
    return costs_.encode_once +
           costs_.encode_edge * static_cast<double>(Row(i, k).size());
  }

  // A frame goes out as soon as it is encoded, behind those before it.
  void Send(int i, int k) {
    double ready = begin_[i] + (Row(i, k).empty() ? 0 : costs_.encode_once);
    for (const Neighbor& n : Row(i, k)) {
      ready += costs_.encode_edge;
      const LinkTimes::Link& link = links_(i, n.rank);
      double& free = free_[Edge(i, n.rank)];
      free = std::max(free, ready) + costs_.bytes * link.seconds_per_byte;
      const double there = free + link.latency;
      There(i, n.rank, k) = there;
      exchange_ = std::max(exchange_, there - begin_[i]);
      bytes_ += costs_.bytes;
    }
  }

  void End(int i, int k) {
    const double encoded = begin_[i] + Encoding(i, k);
    const int due = overlap_ == 0 ? k : k + 1 - overlap_;
    double now = overlap_ == 0 ? encoded : encoded + costs_.step;
    if (due >= 0) {
      for (const Neighbor& n : Row(i, due)) {
        now = std::max(now, There(n.rank, i, due));
      }
      now += costs_.apply_edge * static_cast<double>(Row(i, due).size());
    }
    begin_[i] = overlap_ == 0 ? now + costs_.step : now;
  }

  const LinkTimes& links_;
  const ScheduleRounds& schedule_;
  const RoundCosts& costs_;
  const int overlap_;
  const int kept_;             // rounds whose exchanges are under way
  std::vector<double> begin_;  // of the round at hand
  std::vector<double> free_;   // when a link has sent what it was given
  std::vector<double> there_;
  double bytes_ = 0;
  double exchange_ = 0;
};

// When each rank has combined each step of one all-reduce.
class AllReduceClock {
 public:
  AllReduceClock(const LinkTimes& links, const AllReduceSchedule& schedule,
                 size_t floats)
      : links_(links), free_(links.links.size()) {
    for (int rank = 0; rank < links.size; ++rank) {
      steps_.push_back(schedule.steps(rank, links.size, floats));
    }
  }

  // From when each rank has its gradient to when each has the mean.
  std::vector<double> Run(const std::vector<double>& ready) {
    size_t most = 0;
    for (const auto& steps : steps_) most = std::max(most, steps.size());
    combined_.clear();
    for (double r : ready) combined_.push_back({r});
    // No message of a step waits for a later one.
    std::vector<double> there(links_.links.size());
    for (size_t s = 0; s < most; ++s) {
      for (int i = 0; i < links_.size; ++i) SendStep(i, s, there);
      for (int i = 0; i < links_.size; ++i) CombineStep(i, s, there);
    }
    std::vector<double> done;
    for (const auto& times : combined_) done.push_back(times.back());
    return done;
  }

 private:
  size_t Edge(int from, int to) const {
    return static_cast<size_t>(from) * links_.size + to;
  }

  void SendStep(int i, size_t s, std::vector<double>& there) {
    if (s >= steps_[i].size()) return;
    const AllReduceStep& step = steps_[i][s];
    for (const Transfer& t : step.sends) {
      if (t.size == 0) continue;
      const LinkTimes::Link& link = links_(i, t.rank);
      double& free = free_[Edge(i, t.rank)];
      free = std::max(free, combined_[i][step.after]) +
             kSizeOfFloat * static_cast<double>(t.size) * link.seconds_per_byte;
      there[Edge(i, t.rank)] = free + link.latency;
    }
  }

  void CombineStep(int i, size_t s, const std::vector<double>& there) {
    if (s >= steps_[i].size()) return;
    const Transfer& from = steps_[i][s].receive;
    double now = combined_[i].back();
    if (from.size > 0) now = std::max(now, there[Edge(from.rank, i)]);
    combined_[i].push_back(now);
  }

  const LinkTimes& links_;
  std::vector<std::vector<AllReduceStep>> steps_;  // by rank
  std::vector<double> free_;
  std::vector<std::vector<double>> combined_;  // by rank; [n]: n steps
};

}  // namespace

ScheduleRounds::ScheduleRounds(const MixingSchedule& schedule)
    : drawn_(schedule.period() == 0) {
  const uint64_t rounds = drawn_ ? kDrawnRounds : schedule.period();
  for (uint64_t k = 1; k <= rounds; ++k) {
    std::vector<MixingRow>& rows = rows_.emplace_back();
    for (int i = 0; i < schedule.size(); ++i) {
      rows.push_back(schedule.Row(i, k));
    }
  }
}

RoundTimes PredictRound(const LinkTimes& links, const ScheduleRounds& schedule,
                        const RoundCosts& costs, int overlap) {
  return RoundClock(links, schedule, costs, overlap).Run();
}

double PredictAllReduceRound(const LinkTimes& links,
                             const AllReduceSchedule& schedule, size_t floats,
                             double step) {
  AllReduceClock clock(links, schedule, floats);
  std::vector<double> ready(links.size, step);
  double counted = 0;
  for (int k = 0; k < kOperations; ++k) {
    ready = clock.Run(ready);
    if (k + 1 == kFirstOperation) counted = *std::ranges::max_element(ready);
    for (double& r : ready) r += step;
  }
  const double end = *std::ranges::max_element(ready) - step;
  return (end - counted) / (kOperations - kFirstOperation);
}

AllReducePrediction FastestAllReduce(const LinkTimes& links, size_t floats,
                                     double step) {
  AllReducePrediction best;
  for (const AllReduceSchedule& schedule : AllReduceSchedules()) {
    const double round = PredictAllReduceRound(links, schedule, floats, step);
    if (best.name.empty() || round < best.round) best = {schedule.name, round};
  }
  return best;
}

}  // namespace gossamer
