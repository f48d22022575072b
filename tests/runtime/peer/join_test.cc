// A joiner whose donors never answer ends with the reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/forwarding_membership.h"

namespace gossamer {
namespace join_test {

// A peer in no view, whose donor does not exist.
class Newcomer final : public ForwardingMembership {
 public:
  using ForwardingMembership::ForwardingMembership;
  const View& view() const override { return none_; }
  std::vector<Member> donors() const override { return {{{99}, ""}}; }

 private:
  const View none_ = {};
};

TEST(JoinTest, DonorsThatNeverGiveAreNotAskedForEver) {
  SimFleetOptions o = QuadraticFleet(2, 100);
  o.peer.liveness_limit = absl::Minutes(1);
  o.membership = [](std::unique_ptr<Membership> m) {
    return std::make_unique<Newcomer>(std::move(m));
  };
  SimFleet fleet(o);
  EXPECT_FALSE(fleet.Run(absl::Minutes(5)));
  EXPECT_EQ(fleet.StatusOf(0).code(), absl::StatusCode::kDeadlineExceeded)
      << fleet.StatusOf(0);
  EXPECT_THAT(std::string(fleet.StatusOf(0).message()),
              testing::HasSubstr("liveness_limit"));
}

}  // namespace join_test
}  // namespace gossamer
