#include "runtime/identity/join_token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/openssl.h"

namespace gossamer {
namespace {

constexpr absl::string_view kTokenPrefix = "gossamer-join-1.";
constexpr size_t kFingerprintBytes = 32;

absl::StatusOr<std::string> RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(size)) != 1) {
    return openssl::Error("no random bytes are to be had");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<JoinToken> MakeJoinToken(absl::string_view pem) {
  JoinToken token;
  GOSSAMER_ASSIGN_OR_RETURN(token.id, RandomBytes(kTokenIdBytes));
  GOSSAMER_ASSIGN_OR_RETURN(token.secret, RandomBytes(kTokenSecretBytes));
  GOSSAMER_ASSIGN_OR_RETURN(token.authority, Fingerprint(pem));
  return token;
}

std::string ToText(const JoinToken& token) {
  return absl::StrCat(
      kTokenPrefix, absl::WebSafeBase64Escape(
                        absl::StrCat(token.id, token.secret, token.authority)));
}

absl::StatusOr<JoinToken> ParseJoinToken(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  std::string bytes;
  if (!absl::ConsumePrefix(&text, kTokenPrefix) ||
      !absl::WebSafeBase64Unescape(text, &bytes) ||
      bytes.size() != kTokenIdBytes + kTokenSecretBytes + kFingerprintBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no whole token: one is a line that begins with ", kTokenPrefix));
  }
  return JoinToken{
      .id = bytes.substr(0, kTokenIdBytes),
      .secret = bytes.substr(kTokenIdBytes, kTokenSecretBytes),
      .authority = bytes.substr(kTokenIdBytes + kTokenSecretBytes)};
}

std::string ProveJoin(absl::string_view secret, absl::string_view id,
                      absl::string_view request) {
  // The id has a fixed length, so no two pairs make one message.
  const std::string message =
      absl::StrCat("gossamer join", absl::string_view("\0", 1), id, request);
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       mac, &size);
  return {reinterpret_cast<const char*>(mac), size};
}

bool ProofHolds(absl::string_view secret, absl::string_view id,
                absl::string_view request, absl::string_view proof) {
  const std::string right = ProveJoin(secret, id, request);
  return proof.size() == right.size() && !right.empty() &&
         CRYPTO_memcmp(proof.data(), right.data(), right.size()) == 0;
}

}  // namespace gossamer
