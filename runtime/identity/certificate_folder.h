// A folder with the certificates that a program shows to others and believes of
// them:
//
//   ca.pem    the run's authority
//   cert.pem  this program's certificate
//   key.pem   its private key, for the owner's eyes only
//   signer.pem, signer-key.pem  what the topology service signs views with
//   crl.pem   the revoked certificates: an empty list, but not no list
//
// Every file may be replaced (by a rename) while the program runs.  A list that
// lacks a certificate that was revoked before and has not ended is not taken.
// This header knows nothing of connections.

#ifndef GOSSAMER_RUNTIME_IDENTITY_CERTIFICATE_FOLDER_H_
#define GOSSAMER_RUNTIME_IDENTITY_CERTIFICATE_FOLDER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/identity.h"

namespace gossamer {

// Any thread.  A function that answers by the files as they are now is not
// const: it reads those that have changed and keeps them.
class CertificateFolder {
 public:
  using Clock = std::function<absl::Time()>;

  // `clock` gives the time of day. kInvalidArgument names the file that is
  // missing, open to others, of another authority, expired or not of `identity`
  // and says what to do.
  static absl::StatusOr<std::shared_ptr<CertificateFolder>> Open(
      const std::string& path, Clock clock = absl::Now);

  const Identity& identity() const { return identity_; }
  std::string authority_path() const { return path_ + "/ca.pem"; }
  std::string certificate_path() const { return path_ + "/cert.pem"; }
  std::string key_path() const { return path_ + "/key.pem"; }
  std::string signer_path() const { return path_ + "/signer.pem"; }
  std::string signer_key_path() const { return path_ + "/signer-key.pem"; }
  std::string crl_path() const { return path_ + "/crl.pem"; }

  // Checks the certificate that the other end of a connection shows, by the
  // files as they are now; if they cannot be used, as they last could.  Errors:
  // Trust::Check's, and kUnauthenticated for a certificate of another run.
  absl::StatusOr<Certificate> Check(absl::string_view pem) {
    return Check(pem, /*signs=*/false);
  }
  // The same for the certificate that a view was signed with.
  absl::StatusOr<Certificate> CheckSigner(absl::string_view pem) {
    return Check(pem, /*signs=*/true);
  }

  // The problem of ca.pem and crl.pem as they are now, for which those read
  // before stay in force; empty: none.
  std::string Problem() ABSL_LOCKS_EXCLUDED(mu_);

  // Serial numbers of the revoked certificates, ascending, by the list as it is
  // now; if that cannot be used, as it last could.
  std::vector<std::string> Revoked() ABSL_LOCKS_EXCLUDED(mu_);

  // A warning, and what to do, if one of this program's own certificates, as
  // the files are now, has ended, or has less than a week and less than a tenth
  // of its validity left.  Returns "" if neither holds, or if the same was
  // returned within a day.  Called again and again.
  std::string TakeExpiryWarning() ABSL_LOCKS_EXCLUDED(mu_);

  struct Signature {
    std::string certificate;  // PEM, of the signer
    std::string bytes;
  };
  // By the topology service's signer as it is now, also if it has expired:
  // peers refuse such a view and say why, and hear what else the service
  // answers.
  absl::StatusOr<Signature> Sign(absl::string_view context,
                                 absl::string_view bytes) const;

 private:
  // Tells two contents of a file apart.
  struct Stamp {
    int64_t device = 0, file = 0, size = -1, seconds = 0, nanoseconds = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  using Stamps = std::pair<Stamp, Stamp>;

  CertificateFolder(std::string path, Clock clock, std::string authority,
                    Trust trust, Stamps stamps)
      : path_(std::move(path)),
        clock_(std::move(clock)),
        authority_(std::move(authority)),
        trust_(std::move(trust)),
        stamps_(stamps) {}
  static Stamps StampsOf(const std::string& path);
  std::string ExpiryOf(const std::string& path, absl::Time now) const;
  absl::StatusOr<Certificate> Check(absl::string_view pem, bool signs)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Reads ca.pem and crl.pem if they have changed, and keeps them if they can
  // be used.
  void ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string path_;
  const Clock clock_;
  Identity identity_;
  Mutex mu_;
  std::string authority_ ABSL_GUARDED_BY(mu_);  // PEM
  Trust trust_ ABSL_GUARDED_BY(mu_);
  Stamps stamps_ ABSL_GUARDED_BY(mu_);  // of what was read last
  std::string problem_ ABSL_GUARDED_BY(mu_);
  bool damaged_ ABSL_GUARDED_BY(mu_) = false;  // as of the last look
  std::string warned_of_ ABSL_GUARDED_BY(mu_);
  absl::Time warned_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

// The command line's word on connections from beyond this machine.
struct Exposure {
  std::string certificates;  // folder; empty: none
  bool insecure = false;
};

// Opens the folder of `exposure`; null if there is none.  kInvalidArgument, in
// the words of the command line, if `address` can be reached from other
// machines and there are neither certificates nor --insecure.
absl::StatusOr<std::shared_ptr<CertificateFolder>> OpenCertificates(
    const Exposure& exposure, const std::string& address);

// The text of a file, at most kMaxPemBytes.  kNotFound, kInvalidArgument.
absl::StatusOr<std::string> ReadPemFile(const std::string& path);
// The same of a list of revoked certificates, at most kMaxCrlBytes.
absl::StatusOr<std::string> ReadCrlFile(const std::string& path);
// kInvalidArgument if anybody but its owner may read or write it.
absl::Status CheckPrivate(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_CERTIFICATE_FOLDER_H_
