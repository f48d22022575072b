// Calls to a service at several addresses, of which not every one serves.
//
// Whoever serves is asked first the next time, and who could not be reached is
// on a new connection: how often is for the caller to say.  Knows nothing of
// what is asked.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_REPLICAS_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_REPLICAS_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"

namespace gossamer {

// Any thread.
class Replicas {
 public:
  using MakeChannel =
      std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;
  // One blocking call on the channel.
  using Call =
      std::function<grpc::Status(const std::shared_ptr<grpc::Channel>& channel,
                                 grpc::ClientContext* context)>;

  // `addresses`: host:port[,host:port...].  A channel is made when first used.
  Replicas(const std::string& addresses, MakeChannel make);

  // Makes the call at one after the other until one answers anything but
  // UNAVAILABLE; who is silent gets an equal share of what is left of `limit`.
  // If nobody serves, the code is the last one's and the message says what each
  // has answered.
  grpc::Status Ask(absl::Duration limit, const Call& call)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The next call is made on new connections.
  void Forget() ABSL_LOCKS_EXCLUDED(mu_);
  // Calls in flight end, and no more are made.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Null after Cancel().
  std::shared_ptr<grpc::Channel> Enter(size_t place,
                                       grpc::ClientContext* context)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<std::string> addresses_;
  const MakeChannel make_;
  Mutex mu_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mu_);
  size_t first_ ABSL_GUARDED_BY(mu_) = 0;  // whom to ask first
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::set<grpc::ClientContext*> in_flight_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_REPLICAS_H_
