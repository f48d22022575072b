// Whether a restarted peer that the topology service does not answer may
// resume from its last view: it may if members of that view train by it.  They
// are asked for their rounds.
//
// Members that have all been restarted wait for the service: it knows which
// checkpoint they share.  This header knows nothing of checkpoints or of how a
// peer goes on.

#ifndef GOSSAMER_RUNTIME_PEER_RESUME_WITHOUT_SERVICE_H_
#define GOSSAMER_RUNTIME_PEER_RESUME_WITHOUT_SERVICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/base/event_loop.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/membership.h"
#include "topology/view.h"

namespace gossamer {

// Loop only.
class ResumeWithoutService {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    Transport* transport = nullptr;
    LinkProber* prober = nullptr;
    Membership* membership = nullptr;
    ScheduleMaker make_schedule = nullptr;  // null: View::MakeSchedule
  };
  // All of them outlive this object.
  ResumeWithoutService(PeerId self, Parts parts);
  ~ResumeWithoutService();
  ResumeWithoutService(const ResumeWithoutService&) = delete;

  // Asks, if there is a view to resume from and it is time to.
  void Tick();
  // When to call Tick() next; InfiniteFuture while there is nothing to ask.
  absl::Time next_tick() const;
  // The round to go on at: the smallest that a member has reported, once all
  // that were asked have answered or one has waited long enough for the others.
  // One member alone cannot send this peer to a round where nobody is, unless
  // no other one answers.
  std::optional<uint64_t> round() const;

 private:
  std::vector<Member> NeighborsIn(const View& view) const;

  const PeerId self_;
  const Parts parts_;
  std::vector<Member> asked_;
  std::map<PeerId, uint64_t> rounds_;
  absl::Time first_answer_ = absl::InfiniteFuture();
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_RESUME_WITHOUT_SERVICE_H_
