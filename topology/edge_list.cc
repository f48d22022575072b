// ParseEdgeList of graph.h.

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr absl::string_view kSeparators = " \t\r\n,;";

// Reads A-B or A-B:WEIGHT.  Returns the fault of the text as the middle of a
// sentence, or an empty text if there is none.
absl::string_view ParseEdge(absl::string_view token, int size,
                            GraphEdge& edge) {
  const size_t dash = token.find('-');
  if (dash == absl::string_view::npos) return "is not A-B or A-B:WEIGHT";
  const size_t colon = token.find(':', dash);
  if (!absl::SimpleAtoi(token.substr(0, dash), &edge.a) ||
      !absl::SimpleAtoi(token.substr(dash + 1, colon - dash - 1), &edge.b)) {
    return "is not A-B or A-B:WEIGHT with whole numbers A and B";
  }
  if (edge.a < 0 || edge.b < 0 || edge.a >= size || edge.b >= size) {
    return "names a peer that is not there";
  }
  if (edge.a == edge.b) return "joins a peer to itself";
  // One direction for each edge, so that "0-1" and "1-0" are found to be the
  // same.
  if (edge.a > edge.b) std::swap(edge.a, edge.b);
  edge.weight = 0;
  if (colon != absl::string_view::npos &&
      !(absl::SimpleAtod(token.substr(colon + 1), &edge.weight) &&
        edge.weight > 0 && edge.weight <= 1)) {
    return "has a weight that is not in (0, 1]";
  }
  return {};
}

}  // namespace

absl::StatusOr<Graph> ParseEdgeList(const std::string& list, int size) {
  Graph graph{.size = size, .edges = {}};
  std::set<std::pair<int, int>> seen;
  const absl::string_view text = list;
  size_t at = text.find_first_not_of(kSeparators);
  while (at != absl::string_view::npos) {
    const size_t end =
        std::min(text.find_first_of(kSeparators, at), text.size());
    const absl::string_view token = text.substr(at, end - at);
    GraphEdge edge;
    absl::string_view fault = ParseEdge(token, size, edge);
    // A repeated edge is refused instead of merged: with two weights it would
    // not be clear which one is meant.
    if (fault.empty() && !seen.emplace(edge.a, edge.b).second) {
      fault = "is there twice";
    }
    if (!fault.empty()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "edges: \"%s\" at character %d %s; peers are 0 to %d, for example "
          "\"0-1 1-2:0.3\"",
          token, at + 1, fault, size - 1));
    }
    graph.edges.push_back(edge);
    at = text.find_first_not_of(kSeparators, end);
  }
  // The order of the text has no meaning; Graph promises edges sorted by (a,
  // b).
  std::sort(graph.edges.begin(), graph.edges.end(),
            [](const GraphEdge& x, const GraphEdge& y) {
              return std::pair(x.a, x.b) < std::pair(y.a, y.b);
            });
  return graph;
}

}  // namespace gossamer
