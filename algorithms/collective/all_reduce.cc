#include "algorithms/collective/all_reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

static_assert(std::endian::native == std::endian::little);

// x += the floats in `bytes`, which need not be aligned.  By blocks of 4 KiB,
// so that the copy stays in the first-level cache and the kernel sees aligned
// floats.
void AddBytes(const Kernels& kernels, std::span<const std::byte> bytes,
              std::span<float> x) {
  std::array<float, 1024> block;
  for (size_t at = 0; at < x.size(); at += block.size()) {
    const size_t n = std::min(block.size(), x.size() - at);
    std::memcpy(block.data(), bytes.data() + at * sizeof(float),
                n * sizeof(float));
    kernels.add(std::span(block).first(n), x.subspan(at, n));
  }
}

}  // namespace

std::vector<std::string_view> AllReduce::Names() {
  std::vector<std::string_view> names;
  for (const AllReduceSchedule& s : AllReduceSchedules()) {
    names.push_back(s.name);
  }
  return names;
}

absl::StatusOr<AllReduce> AllReduce::Create(std::string_view name, int rank,
                                            int size, AllReduceForm form,
                                            const Kernels& kernels) {
  if (size < 1 || rank < 0 || rank >= size || form.leader >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-reduce of rank ", rank, " among ", size,
                     "; ranks run from 0 to size - 1"));
  }
  if (form.floats > kMaxFloats) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-reduce of ", form.floats, " floats; at most ",
                     kMaxFloats, ", reduce longer vectors in parts"));
  }
  for (const AllReduceSchedule& s : AllReduceSchedules()) {
    if (s.name != name) continue;
    if (form.payloads != nullptr && !s.own_only) {
      return absl::InvalidArgumentError(absl::StrCat(
          "all-reduce \"", std::string(name),
          "\" of payloads: they need all-gather, since the others send sums "
          "on, which would have to be encoded again at every hop"));
    }
    auto steps = s.steps(rank, size, form.floats);
    return AllReduce(std::move(steps), rank, size, std::move(form), kernels);
  }
  const std::vector<std::string_view> known = Names();
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown all-reduce \"", std::string(name), "\"; known: ",
      absl::StrJoin(std::vector<std::string>(known.begin(), known.end()),
                    ", ")));
}

void AllReduce::SetLeaderMessage(SharedBytes message) {
  assert(rank_ == form_.leader && leader_message_.empty() && !message.empty());
  leader_message_ = std::move(message);
  for (int to = 0; to < size_; ++to) {
    if (to != rank_) sent_.push_back({to, 0, leader_message_});
  }
}

void AllReduce::Start(std::span<float> vector, SharedBytes own) {
  assert(!started_ && can_start() && vector.size() == form_.floats);
  vector_ = vector;
  own_payload_ = std::move(own);
  started_ = true;
  // The own payload is decoded and added to zeros as at every other rank, so
  // that all have the same bits: the own vector may hold a negative zero, and
  // zeros that are added to have no sign.
  if (form_.payloads != nullptr) {
    auto accepted = form_.payloads->Accept(own_payload_);
    assert(accepted.ok());
    own_accepted_ = *std::move(accepted);
    Replace(own_accepted_.bytes(), vector_);
  }
  Advance();
}

absl::Status AllReduce::OnLeaderMessage(int rank, SharedBytes bytes) {
  if (rank != form_.leader || rank == rank_) {
    return absl::DataLossError(
        absl::StrCat("rank ", rank, " would lead an all-reduce that rank ",
                     form_.leader, " leads"));
  }
  // A repeat after a reconnect; the first one counts.
  if (!leader_message_.empty()) return absl::OkStatus();
  GOSSAMER_RETURN_IF_ERROR(form_.check_leader_message(bytes.bytes()));
  leader_message_ = std::move(bytes);
  return absl::OkStatus();
}

absl::Status AllReduce::OnMessage(int rank, uint32_t step, SharedBytes bytes) {
  if (step < first_step()) return OnLeaderMessage(rank, std::move(bytes));
  const uint32_t index = step - first_step();
  const Transfer expected =
      index < steps_.size() ? steps_[index].receive : Transfer{};
  // Everything that is accepted is in this rank's schedule, so memory is
  // bounded by the schedule whatever other ranks send.
  if (expected.size == 0 || expected.rank != rank) {
    return absl::DataLossError(
        absl::StrCat("rank ", rank, " sends step ", step,
                     ", which is none of this all-reduce over ", size_,
                     " ranks; all need the same all_reduce and view"));
  }
  const bool floats = form_.payloads == nullptr;
  if (floats && bytes.size() != expected.size * sizeof(float)) {
    return absl::DataLossError(
        absl::StrCat("rank ", rank, " sends ", bytes.size(), " bytes in step ",
                     step, ", this all-reduce of ", form_.floats,
                     " floats needs ", expected.size * sizeof(float),
                     "; all need the same game and gradient_codec"));
  }
  // Judged before it is ignored: a repeat that does not fit is still reported.
  if (index < next_ || !early_[index].empty()) return absl::OkStatus();
  if (!floats) {
    GOSSAMER_ASSIGN_OR_RETURN(bytes, form_.payloads->Accept(std::move(bytes)));
  }
  early_[index] = std::move(bytes);
  if (started_) Advance();
  return absl::OkStatus();
}

// Steps are combined in the order of the schedule and never in that of arrival.
// Sums of floats depend on their order, and all ranks must end with the same
// bits.
void AllReduce::Advance() {
  while (true) {
    while (sent_steps_ < steps_.size() && steps_[sent_steps_].after <= next_) {
      Send(sent_steps_++);
    }
    if (next_ == steps_.size()) return;
    if (steps_[next_].receive.size > 0 && early_[next_].empty()) return;
    Combine(next_);
    ++next_;
  }
}

void AllReduce::Send(uint32_t step) {
  SharedBytes same = own_payload_;  // several ranks may get the same part
  Transfer of;
  for (const Transfer& t : steps_[step].sends) {
    if (t.size == 0) continue;
    if (same.empty() || (form_.payloads == nullptr &&
                         (t.offset != of.offset || t.size != of.size))) {
      // Copied, since later steps change the vector while the message may still
      // wait to be sent, or to be sent again.
      const auto bytes = std::as_bytes(vector_.subspan(t.offset, t.size));
      same = SharedBytes::FromVector({bytes.begin(), bytes.end()});
      of = t;
    }
    sent_.push_back({t.rank, step + first_step(), same});
  }
}

void AllReduce::Replace(std::span<const std::byte> bytes,
                        std::span<float> part) {
  if (form_.payloads == nullptr) {
    std::ranges::copy(bytes, std::as_writable_bytes(part).begin());
    return;
  }
  std::ranges::fill(part, 0.0f);
  form_.payloads->Add(bytes, part);
}

void AllReduce::Combine(uint32_t step) {
  const AllReduceStep& s = steps_[step];
  const SharedBytes payload = std::exchange(early_[step], SharedBytes());
  const std::span<const std::byte> bytes = payload.bytes();
  std::span<float> part = vector_.subspan(s.receive.offset, s.receive.size);
  const bool floats = form_.payloads == nullptr;
  switch (s.combine) {
    case CombineKind::kAdd:
      if (floats) {
        AddBytes(*kernels_, bytes, part);
      } else if (s.receive.size > 0) {
        form_.payloads->Add(bytes, part);
      }
      break;
    case CombineKind::kReplaceKeepingOwn:
      if (floats) own_.assign(vector_.begin(), vector_.end());
      Replace(bytes, part);
      break;
    case CombineKind::kReplace:
      Replace(bytes, part);
      break;
    case CombineKind::kAddOwn:
      part = vector_;
      if (floats) {
        kernels_->add(own_, part);
      } else {
        form_.payloads->Add(own_accepted_.bytes(), part);
      }
      break;
  }
  if (s.mean) kernels_->scale(1.0f / static_cast<float>(size_), part);
}

std::vector<AllReduce::Message> AllReduce::TakeOutgoing() {
  // Messages stay in sent_ for SentTo: a connection that breaks may have lost
  // any of them.
  const std::vector<Message> out(sent_.begin() + taken_, sent_.end());
  taken_ = sent_.size();
  return out;
}

std::vector<AllReduce::Message> AllReduce::SentTo(int rank) const {
  std::vector<Message> out;
  for (const Message& m : sent_) {
    if (m.rank == rank) out.push_back(m);
  }
  return out;
}

std::optional<AllReduce::Awaited> AllReduce::awaited() const {
  if (!can_start() && rank_ != form_.leader) return Awaited{form_.leader, 0};
  if (!started_ || next_ == steps_.size()) return std::nullopt;
  return Awaited{steps_[next_].receive.rank, next_ + first_step()};
}

}  // namespace gossamer
