// Certificates of unauthenticated connections, and new machines' requests for
// one.

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/identity.h"
#include "runtime/identity/openssl.h"
#include "runtime/identity/signing_request.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

const KeyPair& Authority() {
  static const auto& authority =
      *new KeyPair(MakeAuthority("run", kNow, absl::Hours(1)).value());
  return authority;
}

// Returns PEM as it is, and wraps other bytes as PEM to reach the code behind
// it.
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
  Require(!trust->Check(pem, kNow).ok(), "nobody has its key");
  const auto read = ReadCertificate(pem);
  if (read.ok()) {
    const auto again = ParseIdentity(ToUri(read->identity));
    Require(again.ok() && *again == read->identity,
            "an identity has one spelling");
  }
  (void)Trust::Create(pem, "");
}

// Making the authority costs a hundred times as much as seeing that most inputs
// are no list.
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

// A new machine's request for a certificate, once and twice in one text: the
// topology service's request has two parts.
void SigningRequestText(Bytes input) {
  const std::string pem = ToPem(input, "CERTIFICATE REQUEST");
  (void)ReadSigningRequest(pem + pem);
  const auto request = ReadSigningRequest(pem);
  if (!request.ok()) return;
  const Identity& asked = request->identity;
  const auto again = ParseIdentity(ToUri(asked));
  Require(again.ok() && *again == asked, "an identity has one spelling");
  Require(asked.role != Role::kAuthority, "nobody asks to be the authority");
  Require(request->signer_key.empty() == (asked.role != Role::kTopology),
          "only the service signs");
  const auto issued =
      IssueFor(Authority(), request->key, asked, {}, kNow, absl::Hours(1));
  Require(issued.ok(), "a key that was let through can be certified");
  const auto read = ReadCertificate(*issued);
  Require(read.ok() && read->identity == asked && !read->only_signs,
          "a certificate says what was asked for");
}

}  // namespace

std::span<const Target> IdentityTargets() {
  static constexpr Target kTargets[] = {
      {"certificate", CertificateText},
      {"revoked-list", RevokedList},
      {"identity", IdentityText},
      {"signing-request", SigningRequestText}};
  return kTargets;
}

}  // namespace gossamer::fuzz
