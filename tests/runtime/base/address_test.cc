// Lists of addresses: which belong to this machine, and their hosts and ports.

#include "runtime/base/address.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AddressTest, AListIsOfThisMachineIfAllOfItIs) {
  for (const char* own : {"127.0.0.1:1", "localhost:1,127.1.2.3:2", "[::1]:1",
                          "unix:/tmp/x", "127.0.0.1:1,[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(own)) << own;
  }
  for (const char* others : {"", ",", "10.0.0.1:1", "127.0.0.1:1,10.0.0.1:1",
                             "127.0.0.1.example.org:1"}) {
    EXPECT_FALSE(IsLoopback(others)) << others;
  }
}

TEST(AddressTest, AListHasHostsAndPorts) {
  for (const char* well : {"host:1", "10.0.0.1:65535,[::1]:0"}) {
    EXPECT_TRUE(AreAddresses(well)) << well;
  }
  for (const char* ill : {"", "host", ":1", "host:", "host:65536", "host:-1",
                          "host:1,", "host:1/x", "http://host:1", "a b:1"}) {
    EXPECT_FALSE(AreAddresses(ill)) << ill;
  }
  EXPECT_THAT(SplitAddresses("a:1,b:2"), ElementsAre("a:1", "b:2"));
  EXPECT_THAT(SplitAddresses(","), IsEmpty());
}

}  // namespace
}  // namespace gossamer
