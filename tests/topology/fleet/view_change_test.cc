// A change applied to the view that it is of gives the other one byte for byte,
// and what is no change of that view is refused.

#include "topology/fleet/view_change.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace view_change_test {

// A view of some of the peers 1 to `most`, some at another address or on a
// device, as `key` draws them.
wire::ViewMessage Drawn(RngKey key, uint64_t epoch, uint64_t most = 40) {
  View view;
  view.run_id = "run";
  view.generation = 3;
  view.epoch = epoch;
  const bool devices = key.Fold("devices").Bits(0) % 2 == 1;
  for (uint64_t id = 1; id <= most; ++id) {
    const uint64_t draw = key.Bits(id) % 8;
    if (draw == 0 && id != most) continue;
    view.members.push_back({.id = {id},
                            .address = absl::StrCat(draw == 1, ":", id),
                            .device = devices && draw == 2 ? "host/0" : ""});
  }
  view.departures.push_back({{most + 1}, epoch, "gone:1"});
  wire::ViewMessage message = ToMessage(view);
  message.set_signature(absl::StrCat("signed ", epoch));
  return message;
}

TEST(ViewChangeTest, GivesTheOtherViewToTheByte) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const wire::ViewMessage base = Drawn(RngKey(seed).Fold("base"), 1);
    const wire::ViewMessage next = Drawn(RngKey(seed).Fold("next"), 2);
    const wire::ViewChange change = ChangeOf(base, next);
    const auto applied = Apply(base, change);
    ASSERT_TRUE(applied.ok()) << applied.status();
    EXPECT_EQ(applied->SerializeAsString(), next.SerializeAsString()) << seed;
  }
}

TEST(ViewChangeTest, IsSmallWhereFewMembersDiffer) {
  wire::ViewMessage base = Drawn(RngKey(1), 1, 1000);
  wire::ViewMessage next = base;
  next.set_epoch(2);
  next.set_member_address(500, "elsewhere:1");
  const wire::ViewChange change = ChangeOf(base, next);
  EXPECT_EQ(change.view().member_id_size(), 1);
  EXPECT_EQ(change.gone_id_size(), 0);
  EXPECT_LT(change.ByteSizeLong(), 200u);
}

TEST(ViewChangeTest, OfAnotherViewIsRefused) {
  const wire::ViewMessage base = Drawn(RngKey(1), 1);
  const wire::ViewChange change = ChangeOf(base, Drawn(RngKey(2), 2));
  EXPECT_TRUE(absl::IsDataLoss(Apply(Drawn(RngKey(1), 5), change).status()));
  EXPECT_TRUE(absl::IsDataLoss(Apply({}, change).status()));
  // Two views may have one name, after a service has lost its disk.
  EXPECT_TRUE(absl::IsDataLoss(Apply(Drawn(RngKey(3), 1), change).status()));
  wire::ViewChange unnamed = change;
  unnamed.clear_epoch();
  unnamed.clear_generation();
  EXPECT_TRUE(absl::IsDataLoss(Apply({}, unnamed).status()));
}

TEST(ViewChangeTest, ListsThatCannotBeAreRefused) {
  const wire::ViewMessage base = Drawn(RngKey(1), 1);
  const wire::ViewChange change = ChangeOf(base, Drawn(RngKey(2), 2));
  ASSERT_GT(change.view().member_id_size(), 2);
  wire::ViewChange bad = change;
  bad.mutable_view()->mutable_member_address()->RemoveLast();
  EXPECT_TRUE(absl::IsDataLoss(Apply(base, bad).status()));
  bad = change;
  bad.mutable_view()->set_member_id(1, bad.view().member_id(0));
  EXPECT_TRUE(absl::IsDataLoss(Apply(base, bad).status()));
  bad = change;
  bad.mutable_view()->add_member_device("host/0");
  bad.mutable_view()->add_member_device("host/0");
  bad.mutable_view()->mutable_member_id()->RemoveLast();
  EXPECT_TRUE(absl::IsDataLoss(Apply(base, bad).status()));
}

}  // namespace view_change_test
}  // namespace gossamer
