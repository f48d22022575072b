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

  // The line, or nothing if one came lately.
  std::string LineOf(PeerId peer, bool member, const absl::Status& why,
                     absl::Time now) {
    Throttle& throttle =
        throttles_.try_emplace(member ? peer : PeerId{}, kApart).first->second;
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
  std::map<PeerId, Throttle> throttles_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_CONNECTION_PROBLEMS_H_
