// A machine's request for a certificate: made where the private key is, read
// where the authority is.
//
// A request is PKCS #10 (RFC 2986) in PEM.  It carries the public key and, as a
// URI among its names, the identity that the machine wishes to have; its
// signature shows that the private key was there.  A request of the topology
// service is two of them, the second for the key that signs views.  Texts in,
// texts out: knows nothing of files or authorities.

#ifndef GOSSAMER_RUNTIME_IDENTITY_SIGNING_REQUEST_H_
#define GOSSAMER_RUNTIME_IDENTITY_SIGNING_REQUEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/identity/identity.h"

namespace gossamer {

// A request of the topology service has 1,000 bytes.
inline constexpr size_t kMaxSigningRequestBytes = 8192;

struct SigningRequest {
  Identity identity;       // a wish
  std::string key;         // SubjectPublicKeyInfo, DER; EC P-256
  std::string signer_key;  // the same, Ed25519; of the topology service only
};

// Two private keys, PEM; the second is empty except of the topology service.
struct RequestKeys {
  std::string key;
  std::string signer_key;
};
absl::StatusOr<RequestKeys> MakeRequestKeys(Role role);

// The request of `identity` for `keys`, PEM.  kInvalidArgument unless they are
// of the kinds that MakeRequestKeys() makes for the role.
absl::StatusOr<std::string> WriteSigningRequest(const Identity& identity,
                                                const RequestKeys& keys);

// kInvalidArgument says what is wrong with `pem`: its size, form, signature,
// the kind of its key, or its names, which must be one identity and no more.
absl::StatusOr<SigningRequest> ReadSigningRequest(absl::string_view pem);

// SHA-256 of the public key, or of both, in hexadecimal: what people compare to
// know that a request has come as it was sent.
std::string KeyDigest(const SigningRequest& request);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_SIGNING_REQUEST_H_
