// Signed views, as members receive them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/membership/view_signature.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "topology/fleet/parse_message.h"

namespace gossamer::fuzz {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr PeerId kPeer{9};

// A run with keys of its own.
struct Run {
  Run()
      : path(Folder() + "/trust"),
        made(AuthorityFolder::Init(path, "run", kNow, absl::Hours(2))),
        authority(AuthorityFolder::Open(path).value()),
        service(Member({.run = "run", .role = Role::kTopology, .peer = {}},
                       "service")),
        peer(Member({.run = "run", .role = Role::kPeer, .peer = kPeer},
                    "peer")) {
    Require(made.ok(), "an authority can be made");
  }
  std::shared_ptr<CertificateFolder> Member(const Identity& identity,
                                            const std::string& name) {
    const std::string folder = absl::StrCat(path, "/", name);
    Require(authority.Issue(identity, {}, kNow, absl::Hours(1), folder).ok() &&
                authority.Publish(folder).ok(),
            "it issues");
    return CertificateFolder::Open(folder, [] { return kNow; }).value();
  }
  std::string path;
  absl::Status made;
  AuthorityFolder authority;
  std::shared_ptr<CertificateFolder> service, peer;
};

Run& TheRun() {
  static Run& run = *new Run;
  return run;
}

std::string WithoutSignature(wire::ViewMessage view) {
  view.clear_signature();
  view.clear_certificate();
  return view.SerializeAsString();
}

// An unsigned view, and one that the service has signed and in which one byte
// was changed on the way: the input says where and how.
void SignedView(Bytes input) {
  SilenceProtobuf();
  Run& run = TheRun();
  Input in(input);
  const uint64_t where = in.Number();
  const auto change = static_cast<char>(in.Byte());
  wire::ViewMessage view;
  if (!ParseMessage(in.Rest(), view)) return;
  Require(!CheckView(*run.peer, view).ok(), "nobody has its key");
  if (!Sign(*run.service, view).ok()) return;
  Require(CheckView(*run.peer, view).ok() == (view.run_id() == "run"),
          "what the service signs is of its run, and believed");
  std::string bytes = view.SerializeAsString();
  bytes[where % bytes.size()] ^= change;
  wire::ViewMessage changed;
  if (!ParseMessage(std::as_bytes(std::span(bytes)), changed) ||
      !CheckView(*run.peer, changed).ok()) {
    return;
  }
  Require(WithoutSignature(changed) == WithoutSignature(view),
          "nothing that was signed can be changed");
}

}  // namespace

std::span<const Target> TrustTargets() {
  static constexpr Target kTargets[] = {{"signed-view", SignedView}};
  return kTargets;
}

}  // namespace gossamer::fuzz
