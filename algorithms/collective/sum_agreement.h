// Which ranks have the sum of an operation that NCCL makes, and so whether it
// counts.
//
// NCCL sums one vector of every rank whole, but may bring the sum to some ranks
// and fail at others.  Then a rank that has it gives it to those that lack it,
// and only if no rank has it do all ranks sum in another way: no two ranks ever
// go on with different sums.  This header is pure and knows nothing of vectors,
// time or messages.

#ifndef GOSSAMER_ALGORITHMS_COLLECTIVE_SUM_AGREEMENT_H_
#define GOSSAMER_ALGORITHMS_COLLECTIVE_SUM_AGREEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace gossamer {

// One rank's knowledge of all.  Operations count up by one, and a rank starts
// one only when it has the sum of the one before, by whichever way.  A rank
// that has failed uses NCCL no more.
class SumAgreement {
 public:
  // `first` is the first operation.
  SumAgreement(int rank, int size, uint64_t first);

  // This rank has begun `operation`.
  void Start(uint64_t operation);
  // The sum of the operation that is under way is here, from NCCL or from
  // another rank.
  void Have();
  // NCCL has failed here.  Once.
  void Fail();
  // Another rank says so of itself: that it has begun an operation; that it
  // lacks the sum of one, and of all later ones.
  void OnStarted(int rank, uint64_t operation);
  void OnFailed(int rank, uint64_t operation);

  bool failed() const { return failed_[self()].has_value(); }
  // The first operation whose sum this rank lacks, once it has failed.
  std::optional<uint64_t> lacks() const { return failed_[self()]; }
  bool done() const { return have_ > operation_; }
  // NCCL can still bring the sum of `operation`, or another rank has it.
  bool Possible(uint64_t operation) const;
  bool all_failed() const;
  // The rank has not said that it lacks the sum of `operation`.
  bool MayHave(int rank, uint64_t operation) const;
  // All ranks have begun the operation that is under way.
  bool all_started() const;
  // The ranks that have not.
  std::vector<int> Awaited() const;
  // The operation whose sum this rank has and `rank` lacks; nullopt if none.
  std::optional<uint64_t> Owes(int rank) const;

 private:
  size_t self() const { return static_cast<size_t>(rank_); }

  const int rank_;
  uint64_t operation_;  // under way, or the first
  uint64_t have_;       // one more than the last whose sum is here
  // By rank: one more than the last operation that it has begun, and the first
  // that it lacks.
  std::vector<uint64_t> started_;
  std::vector<std::optional<uint64_t>> failed_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COLLECTIVE_SUM_AGREEMENT_H_
