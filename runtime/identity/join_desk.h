// Who may still get a first certificate, and who has: one file per token in
// tokens/ of an authority's folder.
//
// A token is good for one identity, one key and one certificate, until a time.
// It belongs to the key that uses it first: the same key gets the same
// certificate again (its answer may have been lost), any other is refused.
// That is on disk before anybody is told.  A token that is cancelled while it
// is used either lets nobody in, or has let somebody in and says so.  Knows
// nothing of connections.

#ifndef GOSSAMER_RUNTIME_IDENTITY_JOIN_DESK_H_
#define GOSSAMER_RUNTIME_IDENTITY_JOIN_DESK_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/folder_lock.h"
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
  struct Cancelled {
    std::string id;      // in hexadecimal
    Identity identity;   // not of a damaged one
    std::string serial;  // of the certificate that it was used for, which stays
  };
  // `id` in hexadecimal.  kNotFound.
  absl::StatusOr<Cancelled> Cancel(const std::string& id);
  // All of `whose` that nobody has used.
  absl::StatusOr<std::vector<Cancelled>> CancelUnused(const Identity& whose);

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

  struct Counts {
    int unused = 0;  // that can still be used
    int used = 0;    // whose certificate the same key can still ask for again
  };
  // Forgets what is long over.
  absl::StatusOr<Counts> Count(absl::Time now);
  absl::StatusOr<int> CountUnused(absl::Time now);

 private:
  struct Record {
    Grant grant;
    std::string secret;
    std::string key;  // SHA-256 of the public key that used it; empty: none has
    std::string serial;
  };

  JoinDesk(AuthorityFolder authority, std::string folder)
      : authority_(std::move(authority)), folder_(std::move(folder)) {}
  std::string FileOf(absl::string_view id) const;
  // Of the tokens' files.
  absl::StatusOr<std::vector<std::string>> Files() const;
  // Of a lock that is held.
  absl::StatusOr<Cancelled> Remove(const std::string& file);
  absl::StatusOr<Record> Read(const std::string& file) const;
  absl::Status Write(const std::string& file, const Record& record) const;

  AuthorityFolder authority_;
  std::string folder_;
  std::optional<FolderLock> claim_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_JOIN_DESK_H_
