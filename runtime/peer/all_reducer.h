// All-reduces of one peer, one after the other, over its transport.
//
// Keeps what was sent until nobody can need it and sends it again on a new
// connection, so a lost connection costs time and nothing else.  Knows nothing
// of gradients.

#ifndef GOSSAMER_RUNTIME_PEER_ALL_REDUCER_H_
#define GOSSAMER_RUNTIME_PEER_ALL_REDUCER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/collective/all_reduce.h"
#include "runtime/base/ids.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class AllReducer {
 public:
  // `transport` outlives it.
  explicit AllReducer(Transport* transport) : transport_(transport) {}

  // `members` by rank, this one being `rank`; vectors of `n` floats; `first` is
  // the first operation.  Errors of AllReduce::Create.
  absl::Status SetMembers(const std::string& name, int rank,
                          std::vector<PeerId> members, size_t n,
                          uint64_t first);

  // Contributes `vector`, which becomes the mean over all members once done().
  // Operations count up by one, at every member alike.
  void Start(uint64_t operation, std::span<float> vector);
  bool done() const { return current_ && current_->done(); }

  // kDataLoss if the frame is not of this run's collectives; it is dropped.
  absl::Status OnFrame(PeerId peer, const Frame& frame);
  // A new connection: whatever the other may have missed goes out again.
  void OnUp(PeerId peer);

 private:
  AllReduce Make() const;
  void SendTo(int rank, uint64_t operation, const AllReduce::Message& m);
  void SendOutgoing();

  Transport* const transport_;
  std::string name_;
  int rank_ = 0;
  std::vector<PeerId> members_;
  size_t n_ = 0;
  uint64_t operation_ = 0;
  std::optional<AllReduce> current_;
  // The one before: a member may still be in it.  The one after: a member may
  // already be in it.  Nobody is further away, since every operation needs
  // every member.
  std::optional<AllReduce> previous_;
  std::optional<AllReduce> next_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_ALL_REDUCER_H_
