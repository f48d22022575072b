#include "runtime/cli/issuer_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/status_macros.h"
#include "runtime/transport/grpc/socket_tuning.h"
#include "runtime/transport/grpc/tls.h"

namespace gossamer {
namespace {

constexpr int kMaxJoinBytes = 8 << 10;
// Connections that have not brought a token that holds, half of them of one
// host.
constexpr size_t kMostStrangers = 64;
// Nobody guesses 256 bits; each guess is a file looked for, though.  Who is let
// in pays nothing, so that many newcomers may stand behind one address.
constexpr double kMostRefused = 10, kRefusedPerSecond = 1;
constexpr size_t kMostHosts = 1024;

// "ipv4:10.0.0.2:4711" without its port.
std::string HostOf(const std::string& from) {
  return from.substr(0, from.rfind(':'));
}

}  // namespace

IssuerService::IssuerService(JoinDesk desk, Clock clock, Log log)
    : clock_(std::move(clock)),
      gate_(std::make_shared<StrangerGate>(kMostStrangers)),
      desk_(std::move(desk)),
      events_(std::move(log)) {}

void IssuerService::TellStrangers() {
  const uint64_t refused = gate_->refused();
  MutexLock lock(&mu_);
  events_.TellSparingly("strangers_refused", refused,
                        "connections so far: as many were open as may be that "
                        "had not brought a token");
}

// Where there are too many hosts they share what is left, under no name.
TokenBucket& IssuerService::AllowanceOf(const std::string& host,
                                        absl::Time now) {
  const auto known = allowances_.find(host);
  if (known != allowances_.end()) return known->second;
  if (allowances_.size() >= kMostHosts) {
    std::erase_if(allowances_,
                  [now](const auto& a) { return a.second.IsFull(now); });
  }
  return allowances_
      .try_emplace(allowances_.size() < kMostHosts ? host : std::string(),
                   kMostRefused, kRefusedPerSecond, now)
      .first->second;
}

absl::StatusOr<int> IssuerService::CountUnused() {
  MutexLock lock(&mu_);
  return desk_.CountUnused(clock_());
}

absl::Status IssuerService::Answer(const std::string& from,
                                   const wire::JoinRequest& request,
                                   wire::JoinResponse& response) {
  const absl::Time now = clock_();
  TokenBucket& allowance = AllowanceOf(HostOf(from), now);
  absl::StatusOr<JoinDesk::Admission> admitted = absl::ResourceExhaustedError(
      "too many tokens that do not hold have come from this address; ask again "
      "in some seconds");
  if (allowance.Tokens(now) >= 1) {
    admitted = desk_.Admit(request.token_id(), request.signing_request(),
                           request.proof(), now);
  }
  if (!admitted.ok()) {
    allowance.Take(1, now);
    events_.TellSeldom("newcomer_refused", now,
                       absl::StrCat("from ", from, ": ",
                                    PlainText(admitted.status().message())));
    return admitted.status();
  }
  gate_->Believe(from);
  GOSSAMER_ASSIGN_OR_RETURN(*response.mutable_crl(), desk_.authority().Crl());
  response.set_authority(desk_.authority().pem());
  response.set_certificate(admitted->certificate);
  events_.Tell("certificate_given",
               absl::StrCat(Describe(admitted->identity), " at ", from, " has ",
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
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  // One short call is all that anybody has to make here.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
  AddTuning({}, gate_, &builder);
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
