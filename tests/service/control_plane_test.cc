// What the service's log says of strangers.

#include "topology/service/control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/membership/protocol.h"

namespace gossamer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class ControlPlaneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FleetOptions options;
    options.run_id = "run";
    options.expected = 2;
    auto plane = ControlPlane::Create(
        options, std::nullopt,
        [](const FleetRecord&) { return absl::OkStatus(); },
        [this] { return now_; },
        [this](const std::string& line) { lines_.push_back(line); });
    ASSERT_TRUE(plane.ok()) << plane.status();
    plane_ = *std::move(plane);
  }
  absl::Status Register(const std::string& run, const std::string& address) {
    wire::RegisterRequest request;
    request.set_protocol_version(kControlVersions.newest);
    request.set_run_id(run);
    request.set_boot_id(7);
    request.set_address(address);
    wire::RegisterResponse response;
    return plane_->Register(request, response);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::vector<std::string> lines_;
  std::unique_ptr<ControlPlane> plane_;
};

TEST_F(ControlPlaneTest, WhatStrangersSayIsOneShortLine) {
  const std::string bad = "\n12:00:00 stop at round 1 agreed\x1b[2J";
  EXPECT_FALSE(Register("run", bad + std::string(60'000, 'a')).ok());
  now_ += absl::Minutes(1);
  EXPECT_FALSE(Register("other" + bad + std::string(60'000, 'r'), "a:1").ok());
  ASSERT_TRUE(Register("run", "a:1" + bad).ok());
  ASSERT_THAT(lines_, SizeIs(3));
  EXPECT_THAT(lines_, Each(Not(HasSubstr("\n"))));
  EXPECT_THAT(lines_, Each(Not(HasSubstr("\x1b"))));
  for (const std::string& line : lines_) EXPECT_LT(line.size(), 1500u);
}

TEST_F(ControlPlaneTest, AFloodOfRefusedPeersIsNoFloodOfLines) {
  EXPECT_FALSE(Register("other", "a:1").ok());
  for (int i = 0; i < 1000; ++i) {
    now_ += absl::Milliseconds(1);
    EXPECT_FALSE(Register("other", "a:1").ok());
  }
  EXPECT_THAT(lines_, SizeIs(1));
  now_ += absl::Minutes(1);
  EXPECT_FALSE(Register("other", "b:2").ok());
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("a:1"), HasSubstr("b:2")));
  EXPECT_THAT(lines_[1], HasSubstr("1002 so far"));
}

}  // namespace
}  // namespace gossamer
