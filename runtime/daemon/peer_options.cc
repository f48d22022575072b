#include "runtime/daemon/peer_options.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/address.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

// Takes the certificates of `folder`, and this peer's number from them.
absl::Status OpenCertificatesOf(PeerProcessOptions& options,
                                const std::string& folder) {
  GOSSAMER_ASSIGN_OR_RETURN(
      options.certificates,
      OpenCertificates(
          {.certificates = folder, .insecure = options.insecure},
          IsLoopback(options.listen) ? options.topology : options.listen));
  // Without certificates there is no identity to agree with.
  if (options.certificates == nullptr) return absl::OkStatus();
  const Identity& identity = options.certificates->identity();
  if (identity.role != Role::kPeer || identity.run != options.config.name()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--certs: they are of ", ToUri(identity),
                     ", and this is a peer of "
                     "run \"",
                     options.config.name(), "\""));
  }
  // The certificate says whose it is; the flag may repeat it, and not differ.
  if (options.id == 0) options.id = identity.peer.value;
  if (options.id == identity.peer.value) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--id ", options.id, ", but --certs are of ", Describe(identity)));
}

}  // namespace

void AddPeerOptions(Command& program, PeerFlags& flags) {
  PeerProcessOptions& options = flags.process;
  program.AddOption("--topology", &options.topology,
                    "gossamer-topology; of several instances all",
                    {.required = true, .value_name = "HOST:PORT[,...]"});
  program.AddOption("--config", &flags.config,
                    "configuration file, the same at all peers",
                    {.required = true});
  program.AddOption("--set", &flags.set,
                    "override a field: mixing.codec=innov-int8",
                    {.one_at_a_time = true});
  program.AddOption(
      "--id", &options.id,
      "this peer's number; one above the configuration's peers joins, with the "
      "data of peer (id - 1) modulo peers (default: the service's choice)");
  program.AddOption("--listen", &options.listen, "host:port for neighbours",
                    {.show_default = true});
  program.AddOption("--advertise", &options.advertise,
                    "host:port at which neighbours reach it, if that differs");
  program.AddOption("--run-dir", &options.run_dir,
                    "folder for metrics, samples and checkpoints (default: "
                    "runs/<name>)");
  program.AddOption("--data", &options.data, "folder of the data files");
  program.AddOption("--log-limit", &options.log_limit,
                    "MB that metrics.jsonl, and events.jsonl, may take: the "
                    "oldest lines go; and decisions.log, which ends there and "
                    "cannot be replayed. Those of earlier processes "
                    "(--resume) together take no more: the oldest are "
                    "removed, but not that of the run's beginning (0: all are "
                    "kept, 330 bytes a round)",
                    {.value_name = "MB"});
  program.AddOption("--leave-within", &options.leave_within,
                    "time that SIGTERM leaves, at least 10: some five rounds "
                    "and seven heartbeats are needed to leave in good order",
                    {.show_default = true,
                     .value_name = "SECONDS",
                     .range = {{kMinToLeave, 3600}}});
  program.AddOption("--resume", &options.resume,
                    "offer this folder's checkpoints to resume from");
  program.AddOption("--replay", &options.replay,
                    "repeat the decisions that another run of this peer made "
                    "by the clock; all peers must replay theirs",
                    {.value_name = "FILE"});
  program.AddOption("--certs", &flags.certificates,
                    "folder of this peer's certificates; they say its --id",
                    {.value_name = "DIR"});
  program.AddOption("--insecure", &options.insecure,
                    "allow connections beyond this machine without "
                    "certificates");
}

absl::StatusOr<PeerProcessOptions> ResolveOptions(PeerFlags flags) {
  PeerProcessOptions options = std::move(flags.process);
  GOSSAMER_ASSIGN_OR_RETURN(options.config,
                            LoadRunConfig(flags.config, flags.set));
  if (!(options.log_limit >= 0 && options.log_limit < 1e9)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--log-limit ", options.log_limit,
        ": it must be 0 or a number of MB below a thousand million"));
  }
  if (options.run_dir.empty()) {
    options.run_dir = "runs/" + options.config.name();
  }
  for (const auto& [flag, addresses] :
       {std::pair("--topology", options.topology),
        {"--listen", options.listen}}) {
    if (AreAddresses(addresses)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", addresses, " is not of the form HOST:PORT"));
  }
  GOSSAMER_RETURN_IF_ERROR(OpenCertificatesOf(options, flags.certificates));
  return options;
}

}  // namespace gossamer
