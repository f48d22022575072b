// What members and newcomers are asked to believe: signed views, who answers
// for the authority, a first certificate, and what a token is good for.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/topology.pb.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/join_desk.h"
#include "runtime/identity/join_token.h"
#include "runtime/identity/newcomer.h"
#include "runtime/membership/view_signature.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "topology/fleet/parse_message.h"

namespace gossamer::fuzz {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr PeerId kPeer{9};
// Of the one token, of whose file the seeds know the secret.
constexpr absl::string_view kTokenId = "sixteen bytes id";
constexpr absl::string_view kSecret = "thirty-two bytes, and no secret.";
static_assert(kTokenId.size() == kTokenIdBytes &&
              kSecret.size() == kTokenSecretBytes);

// A run with keys that nobody else has.
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

// A view as it comes, and one that the service has signed, of which a byte was
// changed on its way: where, and how.
void SignedView(Bytes input) {
  const google::protobuf::LogSilencer silent;
  Run& run = TheRun();
  Input in(input);
  const uint64_t where = in.Number();
  const auto change = static_cast<char>(in.Byte());
  wire::ViewMessage view;
  if (!ParseMessage(in.Rest(), view)) return;
  Require(!CheckView(*run.peer, view).ok(), "nobody has its key");
  if (!SignView(*run.service, &view).ok()) return;
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

// What a newcomer is shown, who knows an authority's fingerprint: the input's
// own, so that what lies behind it is reached, and ours.
void AuthorityChain(Bytes input) {
  static const std::string& ours =
      *new std::string(Fingerprint(TheRun().authority.pem()).value());
  const absl::string_view chain = AbslText(input);
  Require(!CheckAuthorityChain(chain, ours, kNow).ok(), "nobody has its key");
  constexpr absl::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  const size_t second = chain.find(kBegin, kBegin.size());
  if (second == chain.npos) return;
  const auto shown = Fingerprint(chain.substr(second));
  if (!shown.ok()) return;
  if (!CheckAuthorityChain(chain, *shown, kNow).ok()) return;
  const auto own = ReadCertificate(chain.substr(0, second));
  Require(own.ok() && own->identity.role == Role::kAuthority,
          "only an authority shows itself");
}

struct Newcomer {
  Newcomer()
      : folder(TheRun().path + "/newcomer"),
        key(KeyForNewcomer(folder).value()),
        right{.authority = TheRun().authority.pem(),
              .certificate =
                  TheRun()
                      .authority
                      .IssueFor(
                          MakeSigningRequest(key)->der,
                          {.run = "run", .role = Role::kPeer, .peer = kPeer},
                          {}, kNow, absl::Hours(1))
                      .value(),
              .crl = TheRun().authority.Crl().value()} {}
  std::string folder;
  std::string key;
  FirstCertificate right;
};

// The three parts of an answer; a bit each says that it is the right one, with
// a byte of it changed.
void JoinAnswer(Bytes input) {
  static const Newcomer& newcomer = *new Newcomer;
  Input in(input);
  const uint8_t right = in.Byte();
  const auto part = [&](int bit, const std::string& whole) {
    const Bytes piece = in.TakePiece();
    if ((right & bit) == 0) return std::string(Text(piece));
    Input change(piece);
    std::string changed = whole;
    changed[change.Number() % changed.size()] ^=
        static_cast<char>(change.Byte());
    return changed;
  };
  FirstCertificate first;
  first.authority = part(1, newcomer.right.authority);
  first.certificate = part(2, newcomer.right.certificate);
  first.crl = part(4, newcomer.right.crl);
  (void)Fingerprint(first.authority);
  const auto accepted = AcceptCertificate(newcomer.folder, first, kNow);
  if (!accepted.ok()) return;
  Require((right & 7) == 7, "nobody has its key");
  Require(accepted->identity ==
              Identity{.run = "run", .role = Role::kPeer, .peer = kPeer},
          "what is accepted says who this is");
}

// A desk, and who asks it for a certificate.
struct Desk {
  Desk()
      : path(Folder() + "/desk"),
        made(AuthorityFolder::Init(path, "run", kNow, absl::Hours(2))),
        desk(JoinDesk::Open(path).value()),
        request(MakeSigningRequest()->der),
        proof(ProveJoin(kSecret, kTokenId, request)) {
    Require(made.ok() && desk.Claim().ok(), "a desk can be opened");
  }
  absl::StatusOr<JoinDesk::Admission> Ask() {
    return desk.Admit(kTokenId, request, proof, kNow);
  }
  std::string path;
  absl::Status made;
  JoinDesk desk;
  std::string request, proof;
};

// A token's file as a disk or a hand may leave it: what it is good for, asked
// by who knows the secret.
void TokenFile(Bytes input) {
  static Desk& open = *new Desk;
  Write(
      absl::StrCat("desk/tokens/", absl::BytesToHexString(kTokenId), ".token"),
      input);
  const auto admitted = open.Ask();
  if (admitted.ok() && !admitted->again) {
    const auto again = open.Ask();
    Require(again.ok() && again->again &&
                again->certificate == admitted->certificate,
            "a token gets the same certificate again");
    std::filesystem::remove(
        absl::StrCat(open.path, "/issued/", admitted->serial, ".pem"));
  }
  const auto unused = open.desk.CountUnused(kNow);
  Require(!unused.ok() || *unused <= 1, "there is one token");
}

}  // namespace

std::span<const Target> TrustTargets() {
  static constexpr Target kTargets[] = {{"signed-view", SignedView},
                                        {"authority-chain", AuthorityChain},
                                        {"join-answer", JoinAnswer},
                                        {"token-file", TokenFile}};
  return kTargets;
}

}  // namespace gossamer::fuzz
