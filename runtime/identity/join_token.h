// One-time tokens with which a machine gets its first certificate, and proofs
// that somebody holds one.
//
// A token names itself, the authority that is to answer, and a secret that
// never travels: what travels is an HMAC-SHA256 by it over the request, so
// whoever hears, or answers in the authority's place, learns nothing to reuse.
// Texts in, texts out; knows nothing of files or of what a token is good for.

#ifndef GOSSAMER_RUNTIME_IDENTITY_JOIN_TOKEN_H_
#define GOSSAMER_RUNTIME_IDENTITY_JOIN_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gossamer {

inline constexpr size_t kTokenIdBytes = 16;
inline constexpr size_t kTokenSecretBytes = 32;

struct JoinToken {
  std::string id;
  std::string secret;     // nobody guesses 256 bits
  std::string authority;  // its Fingerprint()
};

// A new one of the authority `pem`.
absl::StatusOr<JoinToken> MakeJoinToken(absl::string_view pem);

// One line, as people hand it on; and back.  kInvalidArgument for anything
// else, which the message does not repeat: it may be a secret.
std::string ToText(const JoinToken& token);
absl::StatusOr<JoinToken> ParseJoinToken(absl::string_view text);

// That the holder of `secret` makes this signing request by token `id`.
std::string ProveJoin(absl::string_view secret, absl::string_view id,
                      absl::string_view request);
// In a time that says nothing of where a wrong proof differs.
bool ProofHolds(absl::string_view secret, absl::string_view id,
                absl::string_view request, absl::string_view proof);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_JOIN_TOKEN_H_
