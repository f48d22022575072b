// Calls to a service that has several addresses, of which some may not serve.
//
// The address that served last is asked first the next time.  An address that
// could not be reached or was silent gets a new connection at the next call;
// how often that is, the caller decides.  This header knows nothing of what is
// asked.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_INSTANCE_CALLS_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_INSTANCE_CALLS_H_

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

// Returns a channel for calls of one message each way: no compression, no proxy
// of the web, and a connection of its own, which shows these credentials.  An
// answer of more than `max_answer_bytes` is an error, and a machine that
// vanishes during a call is noticed within a minute.
std::shared_ptr<grpc::Channel> MakeCallChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    int max_answer_bytes);

// Safe to use from any thread.
class InstanceCalls {
 public:
  using MakeChannel =
      std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;
  // One blocking call on the channel.
  using Call =
      std::function<grpc::Status(const std::shared_ptr<grpc::Channel>& channel,
                                 grpc::ClientContext* context)>;

  // `addresses` is host:port[,host:port...].  A channel is made when it is
  // first used.  An address that was silent at `silent_calls` in a row gets a
  // new one: its machine may be gone, or TCP sends again after ever longer
  // times.  Over a long or full link a connection takes longer to be made than
  // one call may take; with two, the next call finds it made.
  InstanceCalls(const std::string& addresses, MakeChannel make,
                int silent_calls = 1);

  // Makes the call at one address after the other until one answers anything
  // but UNAVAILABLE.  A silent address gets an equal share of the time that is
  // left of `limit`; the one that was asked first is asked last the next time,
  // with all the time that the others leave it.  If no address serves, the code
  // is the last one's and the message has the answers of all.
  grpc::Status Run(absl::Duration limit, const Call& call)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the next call use new connections.
  void ResetChannels() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the calls in flight, and makes all later ones fail.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Returns null after Cancel().
  std::shared_ptr<grpc::Channel> Begin(size_t place,
                                       grpc::ClientContext* context)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<std::string> addresses_;
  const MakeChannel make_;
  const int silent_calls_;
  Mutex mu_;
  struct Instance {
    std::shared_ptr<grpc::Channel> channel;
    int silent = 0;  // calls in a row without an answer in time
  };
  std::vector<Instance> instances_ ABSL_GUARDED_BY(mu_);
  size_t first_ ABSL_GUARDED_BY(mu_) = 0;  // the place that is asked first
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::set<grpc::ClientContext*> in_flight_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_INSTANCE_CALLS_H_
