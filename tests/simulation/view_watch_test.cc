#include "tests/simulation/view_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::simulation {
namespace view_watch_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Taken = ViewWatch::Taken;

View ViewOf(uint64_t epoch, uint64_t from_round = 1) {
  View view;
  view.generation = 1;
  view.epoch = epoch;
  view.from_round = from_round;
  view.members.resize(2);
  for (uint64_t i = 0; i < 2; ++i) view.members[i].id = {i + 1};
  return view;
}

class ViewWatchTest : public ::testing::Test {
 protected:
  ViewWatch Make() {
    return ViewWatch(
        known_, [this](const std::string& what) { wrong_.push_back(what); });
  }

  KnownViews known_;
  std::vector<std::string> wrong_;
};

TEST_F(ViewWatchTest, AViewIsTakenOnce) {
  ViewWatch watch = Make();
  EXPECT_EQ(watch.Check(View(), false), Taken::kNone);
  EXPECT_EQ(watch.Check(ViewOf(1), true), Taken::kFirst);
  EXPECT_EQ(watch.Check(ViewOf(1), true), Taken::kNone);
  EXPECT_EQ(watch.Check(ViewOf(2), true), Taken::kLater);
  watch.BeginIncarnation();
  EXPECT_EQ(watch.Check(ViewOf(3), true), Taken::kFirst);
  EXPECT_THAT(wrong_, IsEmpty());
}

TEST_F(ViewWatchTest, AnOlderViewIsAViolation) {
  ViewWatch watch = Make();
  watch.Check(ViewOf(2), true);
  watch.Check(ViewOf(1), true);
  EXPECT_THAT(wrong_, ElementsAre(HasSubstr("older")));
}

TEST_F(ViewWatchTest, LivingPeersHaveTheSameViewByTheSameNumber) {
  ViewWatch one = Make();
  one.Check(ViewOf(1, 5), true);
  {
    ViewWatch two = Make();
    two.Check(ViewOf(1, 6), true);
    EXPECT_THAT(wrong_, ElementsAre(HasSubstr("not the one that others have")));
  }
  // Nobody has the first view any more, so that its number is free.
  one.BeginIncarnation();
  one.Check(ViewOf(1, 7), true);
  EXPECT_EQ(wrong_.size(), 1u);
}

}  // namespace view_watch_test
}  // namespace gossamer::simulation
