// Who may still get a first certificate, and who has: one file per token in
// tokens/ of an authority's folder.
//
// A token is good for one identity, one key and one certificate, until a time.
// It belongs to the key that uses it first: the same key gets the same
// certificate again (its answer may have been lost), any other is refused.
// That is on disk before anybody is told.  Knows nothing of connections.

#ifndef GOSSAMER_RUNTIME_IDENTITY_JOIN_DESK_H_
#define GOSSAMER_RUNTIME_IDENTITY_JOIN_DESK_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/identity.h"
#include "runtime/identity/join_token.h"

namespace gossamer {

// What a token is good for.
struct Grant {
  Identity identity;               // a peer of the authority's run
  std::vector<std::string> names;  // as of AuthorityFolder::Issue
  absl::Time until;                // of the token
  absl::Duration life;             // of the certificate
};

// One thread at a time.
class JoinDesk {
 public:
  // `path`: the authority's folder.
  static absl::StatusOr<JoinDesk> Open(const std::string& path);

  const AuthorityFolder& authority() const { return authority_; }

  absl::StatusOr<JoinToken> MakeToken(const Grant& grant, absl::Time now);
  // `id` in hexadecimal.  kNotFound.  What it was used for stays.
  absl::Status Cancel(const std::string& id);

  // One process at a time admits; kFailedPrecondition if another does.  For as
  // long as this lives.
  absl::Status Claim();

  struct Admission {
    Identity identity;
    std::string serial;
    std::string certificate;  // PEM
    bool again = false;       // it had been issued before
  };
  // After Claim().  kPermissionDenied for a token that is none, with the same
  // words whatever is wrong with it, unless the secret is known; then it says
  // what is.  kInvalidArgument for what is no signing request.
  absl::StatusOr<Admission> Admit(absl::string_view id,
                                  absl::string_view request,
                                  absl::string_view proof, absl::Time now);

  // Tokens that can still be used.  Forgets what is long over.
  absl::StatusOr<int> CountUnused(absl::Time now);

 private:
  struct Record {
    Grant grant;
    std::string secret;
    std::string key;  // SHA-256 of the public key that used it; empty: none has
    std::string serial;
  };
  struct CloseFile {
    void operator()(const int* file) const;
  };

  JoinDesk(AuthorityFolder authority, std::string folder)
      : authority_(std::move(authority)), folder_(std::move(folder)) {}
  std::string FileOf(absl::string_view id) const;
  absl::StatusOr<Record> Read(const std::string& file) const;
  absl::Status Write(const std::string& file, const Record& record) const;

  AuthorityFolder authority_;
  std::string folder_;
  std::unique_ptr<int, CloseFile> claim_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_JOIN_DESK_H_
