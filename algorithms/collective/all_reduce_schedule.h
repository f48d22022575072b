// The plan of an all-reduce: which rank sends which floats where, and in which
// order they are added; a list of steps for each rank.
//
// Pure tables; knows nothing of messages, memory or time.

#ifndef GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_SCHEDULE_H_
#define GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gossamer {

// A part of the vector, for or from a rank.
struct Transfer {
  int rank = 0;
  size_t offset = 0;  // in floats
  size_t size = 0;    // 0: nothing
};

enum class CombineKind : uint8_t {
  kAdd,
  kReplace,
  kReplaceKeepingOwn,  // puts this rank's own values aside first
  kAddOwn,             // receives nothing: adds what was put aside
};

// A message has the same step number at both of its ends.
struct AllReduceStep {
  std::vector<Transfer> sends;
  // The sends go out once so many steps have been combined; does not fall from
  // one step to the next.
  uint32_t after = 0;
  Transfer receive;
  CombineKind combine = CombineKind::kAdd;
  bool mean = false;  // the sum is complete: divide it
};

// An algorithm by its name.  Schedules differ in latencies and bytes, and give
// one rank's steps at a time: no rank needs the plan of all.
struct AllReduceSchedule {
  std::string_view name;
  // The steps of `rank` in [0, size) over vectors of `n` floats.
  std::vector<AllReduceStep> (*steps)(int rank, int size, size_t n);
  // Every message is all that one rank contributes: no sum of several ever
  // travels.
  bool own_only = false;
};

// With M ranks, and a one-way latency of half a round trip:
//   ring                2(M-1) latencies, 2n(M-1)/M floats sent by each rank
//                       (Patarasuk, Yuan, JPDC 2009)
//   mesh                2 latencies, as many floats: the same reduce-scatter
//                       and all-gather, with every rank at once
//   all-gather          1 latency, n(M-1) floats: all send all to all
//   recursive-doubling  log2 M latencies of n floats, two more if M is no power
//                       of two (Thakur, Rabenseifner, Gropp, IJHPCA 2005)
//   tree                2 log2 M latencies, at most n log2 M floats: a binomial
//                       tree up and down
//   star                2 latencies; rank 0 receives and sends n(M-1)
//   ring/4, mesh/4, recursive-doubling/4: the same in four parts, of which the
//                       later ones fill the links while the earlier ones wait:
//                       mesh/4 saves up to one latency of long vectors
const std::vector<AllReduceSchedule>& AllReduceSchedules();

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_SCHEDULE_H_
