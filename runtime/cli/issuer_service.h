// A desk of an authority over gRPC: newcomers with a token get a certificate.
//
// The only door that opens without a certificate, which is why it is not one of
// the topology service's: the authority's key stays on the machine of the
// people who run the fleet, and the desk is open only while a token is.

#ifndef GOSSAMER_RUNTIME_CLI_ISSUER_SERVICE_H_
#define GOSSAMER_RUNTIME_CLI_ISSUER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "proto/issuer.grpc.pb.h"
#include "runtime/base/token_bucket.h"
#include "runtime/identity/join_desk.h"
#include "runtime/transport/grpc/stranger_gate.h"
#include "topology/fleet/service_event.h"

namespace gossamer {

// Any thread.
class IssuerService final : public wire::Issuer::CallbackService {
 public:
  using Clock = std::function<absl::Time()>;
  // A line for people per newcomer, from any thread, one at a time; of those
  // who are refused one in ten seconds.
  using Log = std::function<void(const std::string&)>;

  // `desk` has been claimed.
  IssuerService(JoinDesk desk, Clock clock, Log log);

  // As of JoinDesk.
  absl::StatusOr<int> CountUnused() ABSL_LOCKS_EXCLUDED(mu_);
  // To be called now and then: logs, sparingly, how many connections were hung
  // up on because too many were open that had not brought a token.
  void TellStrangers() ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const wire::JoinRequest* request,
                                 wire::JoinResponse* response) override;

  struct Server {
    std::unique_ptr<grpc::Server> server;
    int port = 0;
  };
  // Listens on "host:port"; port 0 takes a free one.  kUnavailable if it
  // cannot.  This outlives the server.
  absl::StatusOr<Server> Listen(const std::string& address)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Answer(const std::string& from, const wire::JoinRequest& request,
                      wire::JoinResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What `host` may still be refused before it is not listened to.
  TokenBucket& AllowanceOf(const std::string& host, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock clock_;
  const std::shared_ptr<StrangerGate> gate_;
  Mutex mu_;
  std::map<std::string, TokenBucket> allowances_ ABSL_GUARDED_BY(mu_);
  JoinDesk desk_ ABSL_GUARDED_BY(mu_);
  ServiceEvents events_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_ISSUER_SERVICE_H_
