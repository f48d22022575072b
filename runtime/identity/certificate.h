// Certificates of a run: what one says, whether to believe it, and signatures
// made with its key.
//
// Texts in, answers out: knows nothing of files, clocks or connections.

#ifndef GOSSAMER_RUNTIME_IDENTITY_CERTIFICATE_H_
#define GOSSAMER_RUNTIME_IDENTITY_CERTIFICATE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/identity/identity.h"

namespace gossamer {

// The most bytes of a certificate or key in PEM; those of this program have
// some 1 KiB.
inline constexpr size_t kMaxPemBytes = 64 << 10;
// The most bytes of a list of revoked certificates, which has room for some
// 18,000.
inline constexpr size_t kMaxCrlBytes = 1 << 20;

struct Certificate {
  Identity identity;
  std::vector<std::string> names;  // hosts and addresses, if it has any
  std::string serial;              // lower-case hexadecimal
  absl::Time from;
  absl::Time until;
  bool only_signs = false;  // an Ed25519 key, of no use for a connection
};

// The first certificate of `pem`, unchecked.  kInvalidArgument if there is none
// or it does not have exactly one identity.
absl::StatusOr<Certificate> ReadCertificate(absl::string_view pem);

// Returns whether `key` is the private key of `certificate`, both PEM.
bool KeyFits(absl::string_view certificate, absl::string_view key);

// An authority and the certificates that it has revoked.  Any thread.
class Trust {
 public:
  // `authority` is a PEM certificate, `crl` a PEM list or empty.
  // kInvalidArgument for anything else, such as another authority's list.
  static absl::StatusOr<Trust> Create(absl::string_view authority,
                                      absl::string_view crl);
  Trust(Trust&&) noexcept;
  Trust& operator=(Trust&&) noexcept;
  ~Trust();

  // The first certificate of `pem`, if the authority issued it, it has not been
  // revoked, and `now` lies within its days.  kUnauthenticated says which of
  // these is not so, and what to do.
  absl::StatusOr<Certificate> Check(absl::string_view pem,
                                    absl::Time now) const;
  // The serial numbers in the list.
  const std::set<std::string>& Revoked() const;

 private:
  struct Impl;
  explicit Trust(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A signature by the Ed25519 key `key` (PEM), 64 bytes.  `context` says what is
// signed, so that nothing signed for one purpose passes for another.
absl::StatusOr<std::string> SignBytes(absl::string_view key,
                                      absl::string_view context,
                                      absl::string_view bytes);
// kUnauthenticated unless the holder of `certificate` (PEM, of an Ed25519 key)
// signed just this.
absl::Status CheckSignature(absl::string_view certificate,
                            absl::string_view context, absl::string_view bytes,
                            absl::string_view signature);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_CERTIFICATE_H_
