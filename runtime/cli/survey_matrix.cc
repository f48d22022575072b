#include "runtime/cli/survey_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/link_times.h"

namespace gossamer {
namespace {

constexpr double kMillisPerSecond = 1e3;

double MbitOf(double bytes_per_second) {
  const double mbit = 8e-6 * bytes_per_second / kPayloadShare;
  if (mbit <= 0 || mbit > kMostMatrixMbit) return 0;
  return std::max(mbit, kLeastMatrixMbit);
}

}  // namespace

absl::StatusOr<NetworkMatrix> MatrixOf(const wire::LinkSurveyStatus& status) {
  const int n = status.member_id_size();
  const auto cells = static_cast<int64_t>(n) * n;
  const std::set<uint64_t> members(status.member_id().begin(),
                                   status.member_id().end());
  if (n < 2 || n > kMostMatrixPeers ||
      members.size() != static_cast<size_t>(n) ||
      status.rtt_seconds_size() != cells ||
      status.bytes_per_second_size() != cells) {
    return absl::InternalError("the service's answer is no matrix");
  }
  NetworkMatrix matrix;
  std::vector<std::string> missing;
  for (int i = 0; i < n; ++i) {
    matrix.names.push_back(absl::StrCat("peer-", status.member_id(i)));
    std::vector<double>& rtt = matrix.rtt_ms.emplace_back();
    std::vector<double>& mbit = matrix.mbit.emplace_back();
    for (int j = 0; j < n; ++j) {
      const double there = kMillisPerSecond * status.rtt_seconds(i * n + j);
      const double back = kMillisPerSecond * status.rtt_seconds(j * n + i);
      const double rate = status.bytes_per_second(i * n + j);
      const bool measured =
          there >= 0 && there <= kMostMatrixMillis && std::isfinite(rate);
      if (i != j && !measured) {
        missing.push_back(absl::StrCat("peer ", status.member_id(i), " to ",
                                       status.member_id(j)));
      }
      // Both ends time the same way there and back.
      rtt.push_back(i == j ? 0 : std::min(there, back));
      mbit.push_back(i == j ? 0 : MbitOf(rate));
    }
  }
  if (missing.empty()) return matrix;
  return absl::UnavailableError(absl::StrCat(
      "not measured: ", absl::StrJoin(missing, ", "),
      "; do these peers reach each other?  See their events.jsonl, and "
      "measure again"));
}

std::string MatrixText(const NetworkMatrix& matrix) {
  std::string text = "names";
  for (const std::string& name : matrix.names)
    absl::StrAppend(&text, " ", name);
  const size_t n = matrix.names.size();
  for (const bool rtt : {true, false}) {
    absl::StrAppend(&text, rtt ? "\nrtt_ms\n" : "mbit\n");
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        const double v = rtt ? matrix.rtt_ms[i][j] : matrix.mbit[i][j];
        absl::StrAppend(&text, " ",
                        i == j           ? "-"
                        : !rtt && v == 0 ? "unlimited"
                                         : absl::StrFormat("%.3f", v));
      }
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

}  // namespace gossamer
