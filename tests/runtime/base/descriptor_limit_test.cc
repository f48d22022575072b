// A process raises its soft limit of descriptors to the hard one.

#include "runtime/base/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace gossamer {
namespace {

TEST(DescriptorLimitTest, TheSoftLimitBecomesTheHardOne) {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_GT(limit.rlim_max, 64u);
  limit.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(DescriptorLimit(), 64u);
  EXPECT_EQ(RaiseDescriptorLimit(), limit.rlim_max);
  EXPECT_EQ(DescriptorLimit(), limit.rlim_max);
}

}  // namespace
}  // namespace gossamer
