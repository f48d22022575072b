// The folder of a run's authority:
//
//   ca.pem, ca-key.pem   itself; a reader of the key can be anybody
//   crl.pem              what it has revoked
//   issued/SERIAL.pem    what it has issued
//   lock                 held while crl.pem is read and written again
//
// The folder stays with the people who run the fleet; no program of a run needs
// it.

#ifndef GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_FOLDER_H_
#define GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_FOLDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/file_lock.h"
#include "runtime/identity/identity.h"
#include "runtime/identity/signing_request.h"

namespace gossamer {

class AuthorityFolder {
 public:
  // kInvalidArgument if there is one at `path` already: a second one would make
  // every certificate of the first worthless.
  static absl::Status Init(const std::string& path, const std::string& run,
                           absl::Time now, absl::Duration valid);
  // kInvalidArgument says what is missing, or readable by others.
  static absl::StatusOr<AuthorityFolder> Open(const std::string& path);

  const std::string& run() const { return own_.identity.run; }

  // Makes or renews the folder `out` of `identity` (certificate_folder.h), with
  // a signer if it is the topology service: a program that uses it notices
  // within seconds.
  absl::StatusOr<Certificate> Issue(const Identity& identity,
                                    const std::vector<std::string>& names,
                                    absl::Time now, absl::Duration valid,
                                    const std::string& out) const;
  // The answer to `request`: the same folder without the private keys, which
  // are where the request was made.  The caller answers for the identity that
  // is asked for.  kInvalidArgument if that is of another run, or `out` is the
  // folder of another key or identity; nothing is issued then.
  absl::StatusOr<Certificate> Sign(const SigningRequest& request,
                                   const std::vector<std::string>& names,
                                   absl::Time now, absl::Duration valid,
                                   const std::string& out) const;
  struct Issued {
    Certificate certificate;
    bool revoked = false;
  };
  // Returns all certificates, by identity, then by age.
  absl::StatusOr<std::vector<Issued>> List() const;
  // Adds to crl.pem, and takes out of it what has ended everywhere; every
  // folder that is to know the list needs a copy of it.  Two revocations at
  // once both count. kFailedPrecondition, and nothing is changed, if the list
  // would be longer than programs read.
  absl::Status Revoke(const std::vector<std::string>& serials,
                      absl::Time now) const;
  // Copies crl.pem into a folder of certificates.
  absl::Status Publish(const std::string& folder) const;

 private:
  AuthorityFolder(std::string path, KeyPair pair, Certificate own)
      : path_(std::move(path)), pair_(std::move(pair)), own_(std::move(own)) {}
  // Keeps a copy of an issued certificate, from which List() is made.
  absl::StatusOr<Certificate> Keep(const std::string& certificate) const;
  // The authority's own part of the folder `out`.
  absl::Status WriteTrust(const std::string& out) const;
  // Takes the lock that is held while crl.pem is read and written again.
  // kUnavailable if another program has it for seconds.
  absl::StatusOr<FileLock> Lock() const;

  std::string path_;
  KeyPair pair_;
  Certificate own_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_FOLDER_H_
