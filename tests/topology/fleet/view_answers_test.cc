// A peer gets a view whole or as a change of one that it has, and a message is
// made and signed once for all that get it.

#include "topology/fleet/view_answers.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "topology/fleet/view_change.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace view_answers_test {

constexpr uint64_t kPeers = 20;

class ViewAnswersTest : public testing::Test {
 protected:
  // The view of that epoch, without the peer of that id.
  std::shared_ptr<const View> Of(uint64_t epoch, uint64_t without = 0) {
    View view;
    view.run_id = "run";
    view.generation = 7;
    view.epoch = epoch;
    for (uint64_t id = 1; id <= kPeers; ++id) {
      if (id == without) continue;
      view.members.push_back({.id = {id}, .address = absl::StrCat("h:", id)});
    }
    return std::make_shared<const View>(std::move(view));
  }
  // The answer to a peer that has the view of epoch `known`.
  wire::HeartbeatResponse Answer(const std::shared_ptr<const View>& view,
                                 uint64_t known, bool takes_changes = true) {
    wire::HeartbeatRequest request;
    request.set_view_generation(known == 0 ? 0 : 7);
    request.set_view_epoch(known);
    request.set_takes_view_changes(takes_changes);
    wire::HeartbeatResponse response;
    EXPECT_EQ(answers_.Fill(view, request, now_, response), absl::OkStatus());
    return response;
  }

  int signed_ = 0;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  ViewAnswers answers_{[this](wire::ViewMessage& view) {
    view.set_signature(absl::StrCat("number ", ++signed_));
    return absl::OkStatus();
  }};
};

TEST_F(ViewAnswersTest, AChangeGoesToThoseThatHaveTheViewBefore) {
  const auto first = Of(1), second = Of(2, /*without=*/3);
  const wire::ViewMessage whole = Answer(first, 0).view();
  EXPECT_EQ(whole.member_id_size(), kPeers);
  const wire::HeartbeatResponse answer = Answer(second, 1);
  ASSERT_TRUE(answer.has_view_change());
  EXPECT_FALSE(answer.has_view());
  const auto applied = Apply(whole, answer.view_change());
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->SerializeAsString(),
            Answer(second, 0).view().SerializeAsString());
  // A peer of an earlier release does not say that it takes changes.
  EXPECT_TRUE(Answer(second, 1, /*takes_changes=*/false).has_view());
  // This service has not sent that view.
  EXPECT_TRUE(Answer(second, 9).has_view());
}

TEST_F(ViewAnswersTest, AMessageIsSignedOnceAMinute) {
  const auto first = Of(1);
  for (int i = 0; i < 10; ++i) Answer(first, 0);
  EXPECT_EQ(signed_, 1);
  now_ += absl::Minutes(2);
  EXPECT_EQ(Answer(first, 0).view().signature(), "number 2");
  for (int i = 0; i < 10; ++i) Answer(Of(2), 1);
  EXPECT_EQ(Answer(Of(2), 1).view_change().view().member_id_size(), 0);
}

TEST_F(ViewAnswersTest, AViewOfOthersGoesWhole) {
  Answer(Of(1), 0);
  View others = *Of(2);
  for (Member& m : others.members) m.address += "0";
  EXPECT_TRUE(Answer(std::make_shared<const View>(others), 1).has_view());
}

TEST_F(ViewAnswersTest, FewViewsAreKept) {
  for (uint64_t epoch = 1; epoch <= 20; ++epoch) Answer(Of(epoch), epoch - 1);
  EXPECT_TRUE(Answer(Of(20), 19).has_view_change());
  EXPECT_TRUE(Answer(Of(20), 2).has_view());
}

}  // namespace view_answers_test
}  // namespace gossamer
