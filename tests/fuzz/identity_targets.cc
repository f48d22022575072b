// What strangers and newcomers show: certificates, tokens, and requests for a
// first certificate.

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/identity.h"
#include "runtime/identity/join_desk.h"
#include "runtime/identity/join_token.h"
#include "runtime/identity/openssl.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

const KeyPair& Authority() {
  static const auto& authority =
      *new KeyPair(MakeAuthority("run", kNow, absl::Hours(1)).value());
  return authority;
}

// PEM as it is; what is none is put into one, so that what lies behind is
// reached.
std::string ToPem(Bytes input, absl::string_view label) {
  if (absl::StartsWith(AbslText(input), "-----BEGIN")) {
    return std::string(AbslText(input));
  }
  return absl::StrCat("-----BEGIN ", label, "-----\n",
                      absl::Base64Escape(AbslText(input)), "\n-----END ", label,
                      "-----\n");
}

void CertificateText(Bytes input) {
  static const Trust* const trust =
      new Trust(Trust::Create(Authority().certificate, "").value());
  const std::string pem = ToPem(input, "CERTIFICATE");
  Require(
      !trust->Check(pem, kNow).ok() && !trust->CheckAuthority(pem, kNow).ok(),
      "nobody has its key");
  const auto read = ReadCertificate(pem);
  if (read.ok()) {
    const auto again = ParseIdentity(ToUri(read->identity));
    Require(again.ok() && *again == read->identity,
            "an identity has one spelling");
  }
  (void)Trust::Create(pem, "");
}

// The authority beside it costs a hundred times what it takes to see that most
// inputs are no list.
void RevokedList(Bytes input) {
  const std::string pem = ToPem(input, "X509 CRL");
  if (!openssl::ReadCrlPem(pem)) return;
  (void)Trust::Create(Authority().certificate, pem);
}

void IdentityText(Bytes input) {
  const auto identity = ParseIdentity(AbslText(input));
  if (!identity.ok()) return;
  Require(ToUri(*identity) == AbslText(input), "an identity has one spelling");
}

void TokenText(Bytes input) {
  const auto token = ParseJoinToken(AbslText(input));
  if (!token.ok()) return;
  const auto again = ParseJoinToken(ToText(*token));
  Require(again.ok() && again->id == token->id &&
              again->secret == token->secret &&
              again->authority == token->authority,
          "a token says the same once more");
}

// A desk, and the one token that it has given away.
struct Desk {
  Desk()
      : path(absl::StrCat(Folder(), "/ca")),
        made(AuthorityFolder::Init(path, "run", kNow, absl::Hours(2))),
        desk(JoinDesk::Open(path).value()),
        token(desk.MakeToken({.identity = {.run = "run", .peer = {9}},
                              .names = {},
                              .until = kNow + absl::Hours(1),
                              .life = absl::Hours(1)},
                             kNow)
                  .value()) {
    Require(made.ok() && desk.Claim().ok(), "a desk can be opened");
  }
  std::string path;
  absl::Status made;
  JoinDesk desk;
  JoinToken token;
};

// A newcomer's id, proof and request; a bit each says that the first two are
// right.
void SigningRequestBytes(Bytes input) {
  static Desk& desk = *new Desk;
  (void)CheckSigningRequest(AbslText(input));
  Input in(input);
  const uint8_t right = in.Byte();
  std::string id(AbslText(in.TakePiece()));
  std::string proof(AbslText(in.TakePiece()));
  const Bytes request = in.Rest();
  if (right & 1) id = desk.token.id;
  if (right & 2) proof = ProveJoin(desk.token.secret, id, AbslText(request));
  const auto admitted = desk.desk.Admit(id, AbslText(request), proof, kNow);
  if (!admitted.ok()) return;
  Require((right & 3) == 3, "who has no token gets nothing");
  Require(CheckSigningRequest(AbslText(request)).ok(),
          "only who has a key gets a certificate");
  const auto issued = ReadCertificate(admitted->certificate);
  Require(issued.ok() && issued->identity.peer == PeerId{9} &&
              issued->identity.role == Role::kPeer,
          "a request says nothing of whose certificate it is");
}

}  // namespace

std::span<const Target> IdentityTargets() {
  static constexpr Target kTargets[] = {
      {"certificate", CertificateText},
      {"revoked-list", RevokedList},
      {"identity", IdentityText},
      {"join-token", TokenText},
      {"signing-request", SigningRequestBytes}};
  return kTargets;
}

}  // namespace gossamer::fuzz
