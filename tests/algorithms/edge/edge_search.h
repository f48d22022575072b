// Exhaustive search of the edge protocol on its production source (PROTOCOL.md
// 13).
//
// Two ends with small integers for ids and epochs take every interleaving,
// within given bounds, of emission, completion, delivery, dials, disconnects
// with every pair of lost suffixes, restarts, lossless resets and lies of the
// transport.  A 64-bit hash names a state (hash compaction).  Every state is
// checked for bounded queues, and for D and corrections that are equal and
// opposite where both ends have completed the same.  Every end state must be
// complete, and a cycle of moves without a fault is an error too.

#ifndef GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_SEARCH_H_
#define GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_SEARCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/edge/edge_state.h"

namespace gossamer {

// Ways in which a process may come back, as bits.
enum RestartKind {
  kEmptyLowEpoch = 1,
  kEmptyHighEpoch = 2,
  kFromRecord = 4,
  kFromRecordStoredEpoch = 8,  // "stored + 1": unsound on purpose
};

// The size of the search: the run, and how often each fault may happen.
struct SearchBounds {
  int exchanges = 3;
  int window = 1;
  int disconnects = 0;
  int restarts = 0;
  int restart_kinds = kEmptyLowEpoch | kEmptyHighEpoch | kFromRecord;
  int double_dials = 0;
  int forced_skips = 0;
  int resets = 0;
  int lies = 0;           // the transport loses, repeats or swaps a frame
  int record_cut = 0;     // exchange before which a record is taken; 0: none
  int resync_at = 0;      // first exchange of a new resync interval; 0: none
  bool connected = true;  // start with an open, agreed edge
  bool eager = false;     // completion on receipt only, not at any later moment
  int64_t max_states = 60'000'000;
  std::optional<Rule> broken = std::nullopt;
};

// The states that were searched, and the violation if there is one.
struct SearchResult {
  int64_t states = 0;
  int64_t end_states = 0;
  int64_t all_corrected = 0;  // end states in which no exchange was a skip
  bool complete = false;      // searched to the end
  std::string violation;      // empty if there is none
};

SearchResult SearchEdge(const SearchBounds& bounds);

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_SEARCH_H_
