#include "runtime/cli/issuer_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/base/status_macros.h"
#include "proto/issuer.grpc.pb.h"
#include "runtime/base/steady_time.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/newcomer.h"
#include "runtime/transport/grpc/steady_deadline.h"
#include "runtime/transport/grpc/tls.h"

namespace gossamer {
namespace {

// Certificates and the list of those that are revoked.
constexpr int kMostAnswered = kMaxCrlBytes + (256 << 10);
constexpr absl::Duration kCallLimit = absl::Seconds(10);
constexpr absl::Duration kAskAgain = absl::Seconds(1);

absl::StatusOr<wire::JoinResponse> Ask(const std::string& address,
                                       const JoinToken& token,
                                       const wire::JoinRequest& request,
                                       absl::Duration timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostAnswered);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  // Else a message may be inflated before it is refused.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const absl::Time end = SteadyNow() + timeout;
  while (true) {
    const auto stub = wire::Issuer::NewStub(grpc::CreateCustomChannel(
        address, NewcomerCredentials(token.authority), arguments));
    wire::JoinResponse response;
    grpc::ClientContext context;
    context.set_deadline(
        SteadyDeadline(std::min(kCallLimit, end - SteadyNow())));
    const grpc::Status status = stub->Join(&context, request, &response);
    if (status.ok()) return response;
    const bool silent =
        status.error_code() == grpc::StatusCode::UNAVAILABLE ||
        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!silent || SteadyNow() + kAskAgain >= end) {
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          absl::StrCat("the authority at ", address, ": ",
                                       status.error_message()));
    }
    absl::SleepFor(kAskAgain);
  }
}

}  // namespace

absl::StatusOr<Certificate> JoinRun(const std::string& address,
                                    const JoinToken& token,
                                    const std::string& out,
                                    absl::Duration timeout) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string key, KeyForNewcomer(out));
  GOSSAMER_ASSIGN_OR_RETURN(const SigningRequest own, MakeSigningRequest(key));
  wire::JoinRequest request;
  request.set_token_id(token.id);
  request.set_signing_request(own.der);
  request.set_proof(ProveJoin(token.secret, token.id, own.der));
  GOSSAMER_ASSIGN_OR_RETURN(const wire::JoinResponse response,
                            Ask(address, token, request, timeout));
  // The handshake has shown who answers; this is what its answer is worth.
  GOSSAMER_ASSIGN_OR_RETURN(const std::string authority,
                            Fingerprint(response.authority()));
  if (authority != token.authority) {
    return absl::UnauthenticatedError(
        "the answer is not of the authority that made the token");
  }
  return AcceptCertificate(out,
                           {.authority = response.authority(),
                            .certificate = response.certificate(),
                            .crl = response.crl()},
                           absl::Now());
}

}  // namespace gossamer
