#include "runtime/cli/issuer_service.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/transport/grpc/tls.h"

namespace gossamer {
namespace {

constexpr int kMaxJoinBytes = 8 << 10;
constexpr absl::Duration kTellRefused = absl::Seconds(10);

}  // namespace

absl::StatusOr<int> IssuerService::CountUnused() {
  MutexLock lock(&mu_);
  return desk_.CountUnused(clock_());
}

absl::Status IssuerService::Answer(const std::string& from,
                                   const wire::JoinRequest& request,
                                   wire::JoinResponse& response) {
  const absl::Time now = clock_();
  const absl::StatusOr<JoinDesk::Admission> admitted = desk_.Admit(
      request.token_id(), request.signing_request(), request.proof(), now);
  if (!admitted.ok()) {
    ++refused_;
    // A flood of attempts is not to become a flood of lines.
    if (now - told_refused_ > kTellRefused) {
      told_refused_ = now;
      log_(absl::StrCat("refused a newcomer from ", from, ": ",
                        admitted.status().message(), " (", refused_,
                        " so far)"));
    }
    return admitted.status();
  }
  GOSSAMER_ASSIGN_OR_RETURN(*response.mutable_crl(), desk_.authority().Crl());
  response.set_authority(desk_.authority().pem());
  response.set_certificate(admitted->certificate);
  log_(absl::StrCat(Describe(admitted->identity), " at ", from, " has ",
                    admitted->again ? "asked again for" : "got",
                    " its certificate, serial ", admitted->serial));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* IssuerService::Join(
    grpc::CallbackServerContext* context, const wire::JoinRequest* request,
    wire::JoinResponse* response) {
  absl::Status status;
  {
    MutexLock lock(&mu_);
    status = Answer(context->peer(), *request, *response);
  }
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                               std::string(status.message())));
  return reactor;
}

absl::StatusOr<IssuerService::Server> IssuerService::Listen(
    const std::string& address) {
  KeyPair shown;
  {
    MutexLock lock(&mu_);
    GOSSAMER_ASSIGN_OR_RETURN(shown, desk_.authority().MakeDesk(clock_()));
  }
  Server started;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, DeskCredentials(shown), &started.port);
  builder.RegisterService(this);
  builder.SetMaxReceiveMessageSize(kMaxJoinBytes);
  // A compressed message is inflated before any limit is checked.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                             1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  // One short call is all that anybody has to make here.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
  started.server = builder.BuildAndStart();
  if (started.server == nullptr || started.port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address,
        ": the port is in use, or the address is not one of this machine; "
        "choose another with --listen (port 0 takes a free one)"));
  }
  return started;
}

}  // namespace gossamer
