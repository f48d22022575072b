// Reports of a transport's failed attempts to connect: a line for people,
// seldom, however often a peer tries; and which of them are refusals.
//
// This header is pure and knows nothing of transports or of where lines go.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_CONNECTION_PROBLEMS_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_CONNECTION_PROBLEMS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/throttle.h"

namespace gossamer {

class ConnectionProblems {
 public:
  // The time between two lines about one member, and about all others together.
  static constexpr absl::Duration kApart = absl::Seconds(10);
  // A problem that passes within this time is none: two peers learn of a view,
  // and begin, at different times.
  static constexpr absl::Duration kPasses = absl::Seconds(2);
  // Attempts that fail follow each other in less, also those that are silent
  // for as long as they may be.
  static constexpr absl::Duration kFollows = absl::Seconds(30);

  // The line, or nothing if one came lately, or the problem may pass.
  std::string LineOf(PeerId peer, bool member, const absl::Status& why,
                     absl::Time now) {
    Known& known = known_[member ? peer : PeerId{}];
    if (!IsRefusal(peer, why)) {
      if (now - known.last > kFollows) known.since = now;
      known.last = now;
      if (now - known.since < kPasses) return "";
    }
    Throttle& throttle = known.throttle;
    if (throttle.Due(now) == 0) return "";
    return absl::StrCat("connection to peer ", peer.value, ": ",
                        PlainText(why.message(), kMaxReasonBytes), " (",
                        throttle.seen(), " so far)");
  }

  // True if one end does not want the other, or cannot read what it says; false
  // for a peer that has gone, is not there yet, or is silent.
  static bool IsRefusal(PeerId peer, const absl::Status& why) {
    return absl::IsUnauthenticated(why) || absl::IsFailedPrecondition(why) ||
           absl::IsResourceExhausted(why) || absl::IsDataLoss(why) ||
           absl::IsUnimplemented(why) ||  // what gRPC says of compression
           (absl::IsDeadlineExceeded(why) && peer == PeerId{});
  }

 private:
  static constexpr size_t kMaxReasonBytes = 1000;
  struct Known {
    Throttle throttle{kApart};
    // The first and the last of the problems that may pass and followed each
    // other.
    absl::Time since = absl::InfinitePast(), last = absl::InfinitePast();
  };
  std::map<PeerId, Known> known_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_CONNECTION_PROBLEMS_H_
