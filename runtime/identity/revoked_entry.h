// The end of a certificate in its entry of a list of revoked ones.
//
// Everybody refuses a certificate that has ended, so that its entry may leave
// the list; by the end in the entry a reader knows that nobody left it out.  No
// standard extension says it: the invalidityDate of RFC 5280 is since when a
// certificate is not to be trusted, and the expiredCertsOnCRL of X.509 is a
// word on a whole list.  This one is not critical, so that other tools still
// read the list.
//
// Internal to runtime/identity; knows nothing of authorities, files or clocks.

#ifndef GOSSAMER_RUNTIME_IDENTITY_REVOKED_ENTRY_H_
#define GOSSAMER_RUNTIME_IDENTITY_REVOKED_ENTRY_H_

#include <openssl/x509.h>

#include "absl/time/time.h"

namespace gossamer {

// Writes into `entry` that its certificate ends at `end`; InfiniteFuture writes
// nothing.  Returns false if OpenSSL cannot.
bool SetCertificateEnd(absl::Time end, X509_REVOKED* entry);

// InfiniteFuture for an entry that says no end, two, or one that cannot be
// read: such an entry stays for good and keeps nobody from reading the list,
// which may have new ones.
absl::Time CertificateEnd(const X509_REVOKED* entry);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_REVOKED_ENTRY_H_
