#include "topology/fleet/view_answers.h"

#include <algorithm>
#include <cstddef>

#include "algorithms/base/status_macros.h"
#include "topology/fleet/view_change.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

// A member that is several views behind has missed as many heartbeats.
constexpr size_t kViewsKept = 8;
// Members that resume from different rounds get different messages.
constexpr size_t kMessagesKept = 16;
// A signature is made anew after so long: the certificate that it was made with
// may have been renewed.
constexpr absl::Duration kSignatureKept = absl::Minutes(1);

}  // namespace

absl::StatusOr<ViewAnswers::Message*> ViewAnswers::MessageOf(
    const std::shared_ptr<const View>& view) {
  const auto known = messages_.find(view);
  if (known != messages_.end()) return &known->second;
  wire::ViewMessage whole = ToMessage(*view);
  const Name name(view->generation, view->epoch);
  if (sent_.empty() || sent_.back().first != name) {
    messages_.clear();
    sent_.emplace_back(name, whole);
    if (sent_.size() > kViewsKept) sent_.pop_front();
  }
  if (messages_.size() >= kMessagesKept) messages_.clear();
  if (sign_) GOSSAMER_RETURN_IF_ERROR(sign_(whole));
  return &messages_.emplace(view, Message{std::move(whole), {}}).first->second;
}

const wire::ViewChange* ViewAnswers::ChangeFor(
    const wire::HeartbeatRequest& request, Message& message) {
  if (!request.takes_view_changes()) return nullptr;
  const Name name(request.view_generation(), request.view_epoch());
  const auto base =
      std::ranges::find(sent_, name, [](const auto& s) { return s.first; });
  if (base == sent_.end()) return nullptr;
  const auto [change, fresh] = message.changes.try_emplace(name);
  if (fresh) change->second = ChangeOf(base->second, message.whole);
  const int differ =
      change->second.gone_id_size() + change->second.view().member_id_size();
  return 2 * differ <= message.whole.member_id_size() ? &change->second
                                                      : nullptr;
}

absl::Status ViewAnswers::Fill(const std::shared_ptr<const View>& view,
                               const wire::HeartbeatRequest& request,
                               absl::Time now,
                               wire::HeartbeatResponse& response) {
  if (now - made_ > kSignatureKept || now < made_) {
    messages_.clear();
    made_ = now;
  }
  GOSSAMER_ASSIGN_OR_RETURN(Message* const message, MessageOf(view));
  if (const wire::ViewChange* change = ChangeFor(request, *message)) {
    *response.mutable_view_change() = *change;
  } else {
    *response.mutable_view() = message->whole;
  }
  return absl::OkStatus();
}

}  // namespace gossamer
