// A network as a person types it: round trips and rates between all pairs.
//
//   # Comments, and blank lines, are skipped.
//   names virginia frankfurt tokyo        optional
//   rtt_ms                                M rows of M; symmetric
//     -  90 148
//    90   - 228
//   148 228   -
//   mbit                                  row sends to column
//     - 200 150
//   200   - 100
//   150 100   -
//
// A value after `rtt_ms` or `mbit` holds for all pairs instead of rows; `mbit`
// also takes `unlimited`.  Text only; knows nothing of files or of what the
// network is for.

#ifndef GOSSAMER_RUNTIME_PLAN_MATRIX_TEXT_H_
#define GOSSAMER_RUNTIME_PLAN_MATRIX_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

inline constexpr int kMostMatrixPeers = 200;  // as many as a lab has hosts
inline constexpr double kMostMatrixMillis = 60'000;
inline constexpr double kLeastMatrixMbit = 1e-3;
inline constexpr double kMostMatrixMbit = 1e6;

struct NetworkMatrix {
  std::vector<std::string> names;           // by rank; host-0, ... if not given
  std::vector<std::vector<double>> rtt_ms;  // diagonal 0
  std::vector<std::vector<double>> mbit;    // [from][to]; 0: no limit
};

// kInvalidArgument, "file:line: " and what to do: an unknown word, a row of
// another length, a value that is no number or out of range (0 to 60,000 ms,
// 0.001 to 1,000,000 Mbit/s), round trips that differ by direction, names
// twice, a part missing or given twice, fewer than 2 or more than 200 peers.
absl::StatusOr<NetworkMatrix> ParseNetworkMatrix(std::string_view text,
                                                 std::string_view file);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PLAN_MATRIX_TEXT_H_
