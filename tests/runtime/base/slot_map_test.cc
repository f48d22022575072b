// Ids of the slot map are given once, in rising order.

#include "runtime/base/slot_map.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace slot_map_test {

using ::testing::ElementsAre;

TEST(SlotMapTest, GivesAndTakesOnce) {
  SlotMap<std::unique_ptr<int>> map;
  const uint64_t a = map.Insert(std::make_unique<int>(1));
  const uint64_t b = map.Insert(std::make_unique<int>(2));
  EXPECT_NE(a, 0u);
  EXPECT_LT(a, b);
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(**map.Find(a), 1);
  EXPECT_EQ(**map.Take(a), 1);
  EXPECT_FALSE(map.Take(a));
  EXPECT_EQ(map.Find(a), nullptr);
  EXPECT_EQ(**map.Find(b), 2);
  EXPECT_EQ(map.size(), 1u);
}

// Order by id is order of insertion, also in slots that are used again.
TEST(SlotMapTest, IdsGrowAndAreNeverGivenTwice) {
  SlotMap<int> map;
  const uint64_t a = map.Insert(1);
  const uint64_t b = map.Insert(2);
  map.Take(a);
  const uint64_t c = map.Insert(3);
  EXPECT_GT(c, b);
  EXPECT_EQ(map.Find(a), nullptr) << "its slot is another's now";
  EXPECT_FALSE(map.Take(a));
  EXPECT_EQ(*map.Find(c), 3);
  map.Take(b);
  map.Take(c);
  EXPECT_EQ(map.Find(0), nullptr) << "also where the first slot is free";
  EXPECT_FALSE(map.Take(0));
  EXPECT_EQ(map.size(), 0u);
  map.Insert(2);
  map.Insert(3);
  EXPECT_EQ(map.Find(~uint64_t{0}), nullptr);
  std::vector<int> values;
  map.ForEach([&](int v) { values.push_back(v); });
  EXPECT_THAT(values, ElementsAre(2, 3)) << "by slot";
}

}  // namespace slot_map_test
}  // namespace gossamer
