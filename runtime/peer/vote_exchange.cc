#include "runtime/peer/vote_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/collective/collective_message.h"

namespace gossamer {
namespace {

// Steps of an operation.
constexpr uint32_t kQuestion = 0, kVotes = 1;

}  // namespace

void VoteExchange::SetMembers(const std::vector<PeerId>& members,
                              uint64_t first) {
  if (!others_.empty()) return;
  const int groups = static_cast<int>(members.size()) - 1;
  operation_ = first;
  if (!student()) {
    others_ = {{members[0], 0}};
    return;
  }
  for (int g = 0; g < groups; ++g) {
    others_[members[static_cast<size_t>(g) + 1]] =
        FirstTeacher(settings_.teachers, g + 1, groups) -
        FirstTeacher(settings_.teachers, g, groups);
  }
}

void VoteExchange::Ask(const ImageBatch& batch) {
  if (asked_) ++operation_;
  asked_ = true;
  last_ = SharedBytes::FromVector(EncodeImages(batch));
  sums_.assign(batch.images.size(), 0);
  for (const auto& [peer, teachers] : others_) awaited_.insert(peer);
  for (const PeerId peer : awaited_) Send(peer, operation_, kQuestion, last_);
}

void VoteExchange::Answer(std::span<const int16_t> votes) {
  question_.reset();
  last_ = SharedBytes::FromVector(EncodeVotes(votes));
  Send(others_.begin()->first, operation_, kVotes, last_);
  ++operation_;
}

std::string VoteExchange::Awaited() const {
  std::vector<uint64_t> ids;
  for (const auto& [peer, teachers] : others_) {
    if (!student() || awaited_.contains(peer)) ids.push_back(peer.value);
  }
  return absl::StrCat("peer ", absl::StrJoin(ids, ", "));
}

void VoteExchange::AnnounceEnd() {
  announced_end_ = true;
  for (const auto& [peer, teachers] : others_) SendFin(peer);
}

void VoteExchange::SendFin(PeerId peer) {
  Send(peer, Upcoming(), kFin, SharedBytes());
}

std::vector<PeerId> VoteExchange::NotEnded() const {
  std::vector<PeerId> not_ended;
  for (const auto& [peer, teachers] : others_) {
    if (!ended_.contains(peer)) not_ended.push_back(peer);
  }
  return not_ended;
}

// Without a connection it goes out when there is one.
void VoteExchange::Send(PeerId peer, uint64_t operation, uint32_t step,
                        SharedBytes body) {
  const CollectiveHead head{
      .operation = operation, .step = step, .body_bytes = body.size()};
  transport_->Send(
      peer, Channel::kCollective,
      {SharedBytes::FromVector(EncodeCollectiveHead(head)), std::move(body)});
}

absl::Status VoteExchange::OnFrame(PeerId peer, const Frame& frame) {
  if (!others_.contains(peer)) {
    return absl::DataLossError(
        absl::StrCat("peer ", peer.value,
                     " is not asked by, and does not ask, "
                     "this one"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      const CollectiveHead head,
      DecodeCollectiveHead(frame.head.bytes(), frame.body.size()));
  if (head.step == kFin) {
    ended_.insert(peer);
    ended_at_ = std::min(ended_at_, head.operation);
    return absl::OkStatus();
  }
  if (head.step != (student() ? kVotes : kQuestion)) {
    return absl::DataLossError(absl::StrCat(
        "peer ", peer.value, " sent step ", head.step,
        student() ? ", which no teachers send" : ", which no student sends"));
  }
  return student() ? TakeVotes(peer, head.operation, frame)
                   : TakeQuestion(head.operation, frame);
}

absl::Status VoteExchange::TakeQuestion(uint64_t operation,
                                        const Frame& frame) {
  if (operation + 1 == operation_ && !last_.empty()) {
    // The student may not have the answer.
    Send(others_.begin()->first, operation, kVotes, last_);
    return absl::OkStatus();
  }
  if (operation != operation_ || question_) return absl::OkStatus();
  GOSSAMER_ASSIGN_OR_RETURN(question_,
                            DecodeImages(frame.body.bytes(), settings_.batch,
                                         role_.dimensions, role_.classes));
  return absl::OkStatus();
}

absl::Status VoteExchange::TakeVotes(PeerId peer, uint64_t operation,
                                     const Frame& frame) {
  if (operation != operation_ || !awaited_.contains(peer)) {
    return absl::OkStatus();  // sent again
  }
  GOSSAMER_RETURN_IF_ERROR(
      AddVotes(frame.body.bytes(), others_.at(peer), sums_));
  awaited_.erase(peer);
  return absl::OkStatus();
}

void VoteExchange::OnUp(PeerId peer) {
  if (!others_.contains(peer)) return;
  if (student()) {
    if (awaited_.contains(peer)) Send(peer, operation_, kQuestion, last_);
  } else if (!last_.empty()) {
    Send(peer, operation_ - 1, kVotes, last_);
  }
  if (announced_end_) SendFin(peer);
}

}  // namespace gossamer
