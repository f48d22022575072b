#include "algorithms/collective/sum_agreement.h"

#include <algorithm>

#include "algorithms/base/seeded_bug.h"

namespace gossamer {

SumAgreement::SumAgreement(int rank, int size, uint64_t first)
    : rank_(rank),
      operation_(first),
      have_(first),
      started_(static_cast<size_t>(size)),
      failed_(static_cast<size_t>(size)) {}

void SumAgreement::Start(uint64_t operation) {
  operation_ = operation;
  have_ = std::max(have_, operation);
  OnStarted(rank_, operation);
}

void SumAgreement::Have() { have_ = operation_ + 1; }

void SumAgreement::Fail() { failed_[self()] = have_; }

void SumAgreement::OnStarted(int rank, uint64_t operation) {
  uint64_t& started = started_[static_cast<size_t>(rank)];
  started = std::max(started, operation + 1);
}

// The first report of a rank holds: it may get sums from others afterwards, but
// none from NCCL.
void SumAgreement::OnFailed(int rank, uint64_t operation) {
  std::optional<uint64_t>& failed = failed_[static_cast<size_t>(rank)];
  if (!failed) failed = operation;
}

// A rank that has not failed by this operation may have its sum, now or later.
// No rank takes back that it has failed, so all ranks come to the same answer.
bool SumAgreement::Possible(uint64_t operation) const {
  if (SeededBug("nccl-alone")) return MayHave(rank_, operation);
  for (size_t r = 0; r < failed_.size(); ++r) {
    if (MayHave(static_cast<int>(r), operation)) return true;
  }
  return false;
}

bool SumAgreement::all_started() const {
  return std::ranges::all_of(
      started_, [this](uint64_t started) { return started > operation_; });
}

bool SumAgreement::all_failed() const {
  return std::ranges::all_of(
      failed_, [](const auto& failed) { return failed.has_value(); });
}

bool SumAgreement::MayHave(int rank, uint64_t operation) const {
  const std::optional<uint64_t>& failed = failed_[static_cast<size_t>(rank)];
  return !failed || *failed > operation;
}

std::vector<int> SumAgreement::Awaited() const {
  std::vector<int> ranks;
  for (size_t r = 0; r < started_.size(); ++r) {
    if (started_[r] <= operation_) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

// No rank has the sum of an operation before every rank has begun it, and so
// has that of the one before: a rank lacks the last one here or none.
std::optional<uint64_t> SumAgreement::Owes(int rank) const {
  const std::optional<uint64_t>& failed = failed_[static_cast<size_t>(rank)];
  if (rank == rank_ || !failed || *failed >= have_) return std::nullopt;
  return *failed;
}

}  // namespace gossamer
