// The edge protocol, searched: its invariants hold in every interleaving, and
// without any one of its rules the search finds a violation.

#include "tests/algorithms/edge/edge_search.h"

#include <ostream>
#include <string>

#include "gtest/gtest.h"

namespace gossamer {
namespace edge_search_test {

struct SearchCase {
  std::string name;
  SearchBounds bounds;
  friend std::ostream& operator<<(std::ostream& os, const SearchCase& c) {
    return os << c.name;
  }
};

std::string NameOf(const testing::TestParamInfo<SearchCase>& info) {
  return info.param.name;
}

class SoundTest : public testing::TestWithParam<SearchCase> {};

TEST_P(SoundTest, HoldsInEveryInterleaving) {
  const SearchResult result = SearchEdge(GetParam().bounds);
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete) << "search stopped at its bound";
  EXPECT_GT(result.end_states, 0);
  EXPECT_GT(result.all_corrected, 0);
  RecordProperty("states", static_cast<int>(result.states));
}

INSTANTIATE_TEST_SUITE_P(
    Edge, SoundTest,
    testing::Values(
        SearchCase{"Clean", {.exchanges = 5, .window = 2}},
        SearchCase{"Disconnect", {.disconnects = 1}},
        SearchCase{"DisconnectWindow2", {.window = 2, .disconnects = 1}},
        SearchCase{"DisconnectResync",
                   {.window = 2, .disconnects = 1, .resync_at = 2}},
        SearchCase{"DisconnectReset", {.disconnects = 1, .resets = 1}},
        SearchCase{"DisconnectJump", {.disconnects = 1, .forced_skips = 1}},
        SearchCase{"FirstContactBothDial",
                   {.disconnects = 1,
                    .double_dials = 1,
                    .connected = false,
                    .eager = true}},
        SearchCase{
            "RestartOfAnyKind",
            {.disconnects = 1, .restarts = 1, .record_cut = 2, .eager = true}},
        SearchCase{"RestartOfAnyKindWindow2",
                   {.window = 2,
                    .disconnects = 1,
                    .restarts = 1,
                    .record_cut = 2,
                    .eager = true}},
        SearchCase{"TwoRestarts",
                   {.restarts = 2, .record_cut = 2, .eager = true}},
        SearchCase{"RecordWithPendingExchanges",
                   {.window = 2,
                    .restarts = 2,
                    .restart_kinds = kFromRecord,
                    .record_cut = 3}}),
    NameOf);

// A transport that lies may leave the edge incomplete, but never unsafe.
TEST(LyingTransportTest, IsSafe) {
  const SearchResult result =
      SearchEdge({.window = 2, .disconnects = 1, .lies = 1, .eager = true});
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete);
}

class BrokenRuleTest : public testing::TestWithParam<SearchCase> {};

TEST_P(BrokenRuleTest, IsFound) {
  const SearchResult result = SearchEdge(GetParam().bounds);
  EXPECT_NE(result.violation, "") << result.states << " states searched";
}

INSTANTIATE_TEST_SUITE_P(
    Edge, BrokenRuleTest,
    testing::Values(
        SearchCase{"RefuseGap",
                   {.window = 2, .lies = 1, .broken = Rule::kRefuseGap}},
        SearchCase{"AckCompleted",
                   {.resets = 1, .broken = Rule::kAckCompleted}},
        SearchCase{"Rise", {.restarts = 1, .broken = Rule::kRise}},
        SearchCase{"BasisOnce",
                   {.restarts = 3,
                    .restart_kinds = kFromRecord,
                    .record_cut = 2,
                    .eager = true,
                    .broken = Rule::kBasisOnce}},
        SearchCase{"Resend", {.disconnects = 1, .broken = Rule::kResend}},
        SearchCase{"RetainUntilDone",
                   {.disconnects = 1, .broken = Rule::kRetainUntilDone}},
        SearchCase{
            "ResetWhenEmpty",
            {.disconnects = 1, .resets = 1, .broken = Rule::kResetWhenEmpty}},
        SearchCase{"Nonce", {.restarts = 2, .broken = Rule::kNonce}},
        SearchCase{"EpochFromDisk",
                   {.restarts = 2,
                    .restart_kinds = kFromRecordStoredEpoch,
                    .record_cut = 2,
                    .eager = true}}),
    NameOf);

}  // namespace edge_search_test
}  // namespace gossamer
