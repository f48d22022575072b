#include "algorithms/collective/all_reduce_schedule.h"

#include <bit>
#include <utility>

namespace gossamer {
namespace {

using Steps = std::vector<AllReduceStep>;

int Modulo(int a, int m) { return (a % m + m) % m; }

// Chunk i of M is [⌊in/M⌋, ⌊(i+1)n/M⌋).  The chunks cover n floats for any n,
// and their sizes differ by one at most, so no rank has more to send than
// another.
Transfer Chunk(int peer, int chunk, int size, size_t n) {
  const size_t m = size;
  const size_t i = Modulo(chunk, size);
  const size_t begin = i * n / m;
  return {peer, begin, (i + 1) * n / m - begin};
}

// One send, then one receive, after all steps before.
AllReduceStep& Append(Steps& steps) {
  AllReduceStep& step = steps.emplace_back();
  step.after = static_cast<uint32_t>(steps.size() - 1);
  return step;
}

// In step s of the reduce-scatter, rank r sends its partial sum of chunk r − s
// on, to which it has just added; after it, rank r holds the sum of chunk r + 1
// and all others get their bits from there (Patarasuk, Yuan, JPDC 2009).
Steps RingSteps(int rank, int size, size_t n) {
  const int right = Modulo(rank + 1, size);
  const int left = Modulo(rank - 1, size);
  Steps steps;
  for (int s = 0; s + 1 < size; ++s) {
    AllReduceStep& step = Append(steps);
    step.sends = {Chunk(right, rank - s, size, n)};
    step.receive = Chunk(left, rank - s - 1, size, n);
    step.mean = s + 2 == size;
  }
  for (int s = 0; s + 1 < size; ++s) {
    AllReduceStep& step = Append(steps);
    step.sends = {Chunk(right, rank + 1 - s, size, n)};
    step.receive = Chunk(left, rank - s, size, n);
    step.combine = CombineKind::kReplace;
  }
  return steps;
}

// Rank r sums chunk r, in the order r, r − 1, r − 2, … of ranks.  All of the
// first half goes out at once: no rank waits for another one before it sends,
// so a half costs one latency and not M − 1.
Steps MeshSteps(int rank, int size, size_t n) {
  Steps steps;
  for (int s = 1; s < size; ++s) {
    const int to = Modulo(rank + s, size);
    steps.push_back({.sends = {Chunk(to, to, size, n)},
                     .after = 0,
                     .receive = Chunk(Modulo(rank - s, size), rank, size, n),
                     .mean = s + 1 == size});
  }
  const auto own_is_complete = static_cast<uint32_t>(steps.size());
  for (int s = 1; s < size; ++s) {
    const int from = Modulo(rank - s, size);
    steps.push_back({.sends = {Chunk(Modulo(rank + s, size), rank, size, n)},
                     .after = own_is_complete,
                     .receive = Chunk(from, from, size, n),
                     .combine = CombineKind::kReplace});
  }
  return steps;
}

// Step j is the message of rank j: every rank adds in the order of ranks, its
// own values in their place.
Steps AllGatherSteps(int rank, int size, size_t n) {
  Steps steps(static_cast<size_t>(size));
  if (size == 1) return {};
  for (int j = 0; j < size; ++j) {
    AllReduceStep& step = steps[static_cast<size_t>(j)];
    if (j != rank) {
      step.receive = {j, 0, n};
      if (j == 0) step.combine = CombineKind::kReplaceKeepingOwn;
      // Rank 0 begins with its own values in place; the others have put theirs
      // aside to make room for rank 0's.
    } else if (rank > 0) {
      step.combine = CombineKind::kAddOwn;
    }
    step.mean = j + 1 == size;
  }
  for (int to = 0; to < size; ++to) {
    if (to != rank) {
      steps[static_cast<size_t>(rank)].sends.push_back({to, 0, n});
    }
  }
  return steps;
}

// With p the largest power of two in M, ranks from p on first give their vector
// to rank − p and last get the result from there; the rest exchange everything
// with rank ⊕ 1, ⊕ 2, … ⊕ p/2.  Both partners form the same sum, as a + b and
// b + a are the same bits, so ranks agree without another exchange.
Steps RecursiveDoublingSteps(int rank, int size, size_t n) {
  const int p = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const bool folded = rank >= p;
  const bool partner_of_folded = rank + p < size;
  Steps steps;
  if (p < size) {
    AllReduceStep& fold = Append(steps);
    if (folded) fold.sends = {{rank - p, 0, n}};
    if (partner_of_folded) fold.receive = {rank + p, 0, n};
  }
  for (int bit = 1; bit < p; bit *= 2) {
    AllReduceStep& exchange = Append(steps);
    if (!folded) {
      exchange.sends = {{rank ^ bit, 0, n}};
      exchange.receive = {rank ^ bit, 0, n};
    }
    exchange.mean = 2 * bit >= p;
  }
  if (p < size) {
    AllReduceStep& unfold = Append(steps);
    if (partner_of_folded) unfold.sends = {{rank + p, 0, n}};
    if (folded) unfold.receive = {rank - p, 0, n};
    unfold.combine = CombineKind::kReplace;
  }
  return steps;
}

// A binomial tree.  On the way up, at bit b, a rank whose lowest set bit is b
// gives the sum of its subtree to rank − b; rank 0 ends with the sum of all.
// The way down passes the mean along the same edges.  Ranks without a part at
// some level keep an empty step, so that step numbers are the same at all
// ranks.
Steps TreeSteps(int rank, int size, size_t n) {
  Steps steps;
  int root_bit = 1;
  for (int bit = 1; bit < size; bit *= 2) {
    root_bit = bit;
    AllReduceStep& up = Append(steps);
    if (rank % bit != 0) continue;
    if ((rank & bit) != 0) {
      up.sends = {{rank - bit, 0, n}};
    } else if (rank + bit < size) {
      up.receive = {rank + bit, 0, n};
      // Only rank 0 receives at the last level.
      up.mean = 2 * bit >= size;
    }
  }
  for (int bit = root_bit; bit > 0 && size > 1; bit /= 2) {
    AllReduceStep& down = Append(steps);
    down.combine = CombineKind::kReplace;
    if (rank % (2 * bit) == 0 && rank + bit < size) {
      down.sends = {{rank + bit, 0, n}};
    } else if (rank % (2 * bit) == bit) {
      down.receive = {rank - bit, 0, n};
    }
  }
  return steps;
}

// Step j is what rank j sends to rank 0; the last is what that sends back.
Steps StarSteps(int rank, int size, size_t n) {
  if (size == 1) return {};
  Steps steps(static_cast<size_t>(size) + 1);
  AllReduceStep& back = steps.back();
  back.combine = CombineKind::kReplace;
  if (rank > 0) {
    steps[static_cast<size_t>(rank)].sends = {{0, 0, n}};
    back.receive = {0, 0, n};
    return steps;
  }
  // Rank 0 sends once all steps before are combined; the others send at once.
  back.after = static_cast<uint32_t>(size);
  for (int j = 1; j < size; ++j) {
    AllReduceStep& step = steps[static_cast<size_t>(j)];
    step.receive = {j, 0, n};
    step.mean = j + 1 == size;
    back.sends.push_back({j, 0, n});
  }
  return steps;
}

// With four parts, mesh keeps one of its two latencies on long vectors
// (README.md).
constexpr size_t kParts = 4;

// `Base` for each part of the vector, side by side: of every group of steps
// whose sends wait for the same, first those of part 0, then of part 1, … so
// that the second group of an early part goes out while the first group of the
// late ones is still under way.  Groups are the same at all ranks.
template <Steps (*Base)(int, int, size_t)>
Steps InParts(int rank, int size, size_t n) {
  std::vector<Steps> parts;
  for (size_t c = 0; c < kParts; ++c) {
    const size_t begin = c * n / kParts;
    Steps& part =
        parts.emplace_back(Base(rank, size, (c + 1) * n / kParts - begin));
    for (AllReduceStep& step : part) {
      step.receive.offset += begin;
      for (Transfer& t : step.sends) t.offset += begin;
    }
  }
  Steps steps;
  const size_t count = parts[0].size();
  size_t before = 0;  // where the group before begins in `steps`
  size_t length_before = 0;
  for (size_t first = 0, end = 0; first < count; first = end) {
    while (end < count && parts[0][end].after == parts[0][first].after) ++end;
    const size_t here = steps.size();
    for (size_t c = 0; c < kParts; ++c) {
      for (size_t s = first; s < end; ++s) {
        AllReduceStep& step = steps.emplace_back(std::move(parts[c][s]));
        // Part c of a group waits for part c of the group before, and for the
        // parts ahead of it, which are combined first.
        step.after = static_cast<uint32_t>(
            first == 0 ? 0 : before + (c + 1) * length_before);
      }
    }
    before = here;
    length_before = end - first;
  }
  return steps;
}

}  // namespace

const std::vector<AllReduceSchedule>& AllReduceSchedules() {
  static const auto& schedules = *new std::vector<AllReduceSchedule>{
      {"ring", RingSteps},
      {"mesh", MeshSteps},
      {"all-gather", AllGatherSteps, true},
      {"recursive-doubling", RecursiveDoublingSteps},
      {"tree", TreeSteps},
      {"star", StarSteps},
      {"ring/4", InParts<RingSteps>},
      {"mesh/4", InParts<MeshSteps>},
      {"recursive-doubling/4", InParts<RecursiveDoublingSteps>}};
  return schedules;
}

}  // namespace gossamer
