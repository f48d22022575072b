// A fleet moves to a new release peer by peer: peers of the release before and
// of this one train with each other meanwhile.

#include "gtest/gtest.h"
#include "tests/runtime/transport/grpc_node.h"

namespace gossamer {
namespace mixed_versions_test {

class MixedVersionsTest : public testing::TestWithParam<bool> {};

TEST_P(MixedVersionsTest, NeighboursExchangeAllThatBothKnow) {
  const bool dialling_is_older = GetParam();
  constexpr VersionRange kOlder = {kTransportVersions.oldest,
                                   kTransportVersions.newest - 1};
  GrpcOptions dials = OptionsOf(kA), listens = OptionsOf(kB);
  dials.lanes = listens.lanes = 2;
  (dialling_is_older ? dials : listens).versions = kOlder;
  Node a(dials), b(listens);
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.open.empty(); }));
  ASSERT_TRUE(b.Await([](const Seen& s) { return !s.open.empty(); }));
  constexpr size_t kBytes = 900'000;  // several chunks, over both lanes
  ASSERT_TRUE(a.Send(kB, kBytes));
  ASSERT_TRUE(b.Send(kA, kBytes));
  const auto whole = [](const Seen& s) {
    return s.frames.size() == 1 && s.frames[0].frame.body.size() == kBytes;
  };
  EXPECT_TRUE(a.Await(whole));
  EXPECT_TRUE(b.Await(whole));
  EXPECT_TRUE(a.recorder.With([](const Seen& s) { return s.downs.empty(); }));
  EXPECT_EQ(a.CountProblems() + b.CountProblems(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Roles, MixedVersionsTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "OlderDials" : "OlderListens";
                         });

TEST(VersionsTest, WithoutACommonVersionBothAreNamed) {
  GrpcOptions later = OptionsOf(kB);
  later.versions = {kTransportVersions.newest + 1,
                    kTransportVersions.newest + 2};
  Node a(OptionsOf(kA)), b(later);
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  const std::string why(b.AwaitProblem().message());
  EXPECT_NE(why.find(later.versions.Text()), std::string::npos) << why;
  EXPECT_NE(why.find(kTransportVersions.Text()), std::string::npos) << why;
  EXPECT_TRUE(b.recorder.With([](const Seen& s) { return s.ups.empty(); }));
}

}  // namespace mixed_versions_test
}  // namespace gossamer
