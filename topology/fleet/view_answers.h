// Views as the answers of the topology service carry them: whole to a peer that
// has none, and as a change to one that has a view which was sent lately.
//
// A message is made and signed once for all peers that get it.  This header
// knows nothing of who is a member.

#ifndef GOSSAMER_TOPOLOGY_FLEET_VIEW_ANSWERS_H_
#define GOSSAMER_TOPOLOGY_FLEET_VIEW_ANSWERS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "topology/view.h"

namespace gossamer {

// Signs a view as its peers will check it.
using SignView = std::function<absl::Status(wire::ViewMessage&)>;

class ViewAnswers {
 public:
  // Without `sign` views go out unsigned.
  explicit ViewAnswers(SignView sign) : sign_(std::move(sign)) {}

  // Adds `view` to the answer to `request`.  The errors are those of `sign`.
  absl::Status Fill(const std::shared_ptr<const View>& view,
                    const wire::HeartbeatRequest& request, absl::Time now,
                    wire::HeartbeatResponse& response);

 private:
  // Generation and epoch, which name a view.
  using Name = std::pair<uint64_t, uint64_t>;
  struct Message {
    wire::ViewMessage whole;
    std::map<Name, wire::ViewChange> changes;  // by the view that they change
  };

  absl::StatusOr<Message*> MessageOf(const std::shared_ptr<const View>& view);
  // The change from the view that the peer of `request` has; nullptr: it is not
  // known any more, or most members differ.
  const wire::ViewChange* ChangeFor(const wire::HeartbeatRequest& request,
                                    Message& message);

  const SignView sign_;
  // Of one view, for each round that members resume from.
  std::map<std::shared_ptr<const View>, Message> messages_;
  absl::Time made_;
  // The last views that were sent, without signatures, oldest first.
  std::deque<std::pair<Name, wire::ViewMessage>> sent_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_VIEW_ANSWERS_H_
