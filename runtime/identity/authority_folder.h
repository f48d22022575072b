// The folder of a run's authority:
//
//   ca.pem, ca-key.pem   itself; whoever reads the key can be anybody
//   crl.pem              what it has revoked
//   issued/SERIAL.pem    what it has issued
//   tokens/              who may still get a first one (join_desk.h)
//   lock                 held by whoever changes what another may change, too
//
// Stays with the people who run the fleet; no program needs it.

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
#include "runtime/identity/folder_lock.h"
#include "runtime/identity/identity.h"

namespace gossamer {

class AuthorityFolder {
 public:
  // kInvalidArgument if there is one at `path` already: a second one would make
  // every certificate of the first worthless.
  static absl::Status Init(const std::string& path, const std::string& run,
                           absl::Time now, absl::Duration life);
  // kInvalidArgument says what is missing, or readable by others.
  static absl::StatusOr<AuthorityFolder> Open(const std::string& path);

  const std::string& run() const { return own_.identity.run; }
  absl::Time until() const { return own_.until; }

  // Makes or renews the folder `out` of `identity` (certificate_folder.h), with
  // a signer if it is the topology service: a program that uses it notices
  // within seconds.
  absl::StatusOr<Certificate> Issue(const Identity& identity,
                                    const std::vector<std::string>& names,
                                    absl::Time now, absl::Duration life,
                                    const std::string& out) const;
  // The same for the key of a signing request (authority.h), without a folder:
  // the certificate, PEM.
  absl::StatusOr<std::string> IssueFor(absl::string_view request,
                                       const Identity& identity,
                                       const std::vector<std::string>& names,
                                       absl::Time now,
                                       absl::Duration life) const;
  // What was issued with this serial number; kNotFound.
  absl::StatusOr<std::string> IssuedPem(const std::string& serial) const;
  absl::StatusOr<std::string> Crl() const;
  const std::string& pem() const { return pair_.certificate; }
  // A key of its own for TLS with newcomers, and its certificate with the
  // authority's behind it.  Of the authority's identity: no member of the run
  // believes it.
  absl::StatusOr<KeyPair> MakeDesk(absl::Time now) const;
  struct Issued {
    Certificate certificate;
    bool revoked = false;
  };
  // By identity, then age.
  absl::StatusOr<std::vector<Issued>> List() const;
  // Adds to crl.pem, which every folder that is to know needs a copy of.  Of
  // two at once none is lost.  kFailedPrecondition, and nothing is changed, if
  // the list would be longer than programs read.
  absl::Status Revoke(const std::vector<std::string>& serials,
                      absl::Time now) const;
  // Copies crl.pem into a folder of certificates.
  absl::Status Publish(const std::string& folder) const;

  // For whoever reads something here and writes it again.  Revoke and Publish
  // take it themselves.  kUnavailable if another has it for seconds.
  absl::StatusOr<FolderLock> Lock() const;

 private:
  AuthorityFolder(std::string path, KeyPair pair, Certificate own)
      : path_(std::move(path)), pair_(std::move(pair)), own_(std::move(own)) {}
  absl::Status IssueSigner(const Identity& identity, absl::Time now,
                           absl::Duration life, const std::string& out) const;

  std::string path_;
  KeyPair pair_;
  Certificate own_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_FOLDER_H_
