// A machine's first certificate, for a token.
//
// The key is made here and stays here.  Blocks the caller.

#ifndef GOSSAMER_RUNTIME_CLI_ISSUER_CLIENT_H_
#define GOSSAMER_RUNTIME_CLI_ISSUER_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/join_token.h"

namespace gossamer {

// Asks the desk at `address` (host:port), again and again within `timeout`
// while it does not answer, and makes the folder `out` (certificate_folder.h).
// A key that an earlier attempt has left there is used again, since a token
// belongs to the key that used it first.  kInvalidArgument if `out` holds a
// certificate already; kPermissionDenied and kUnauthenticated say why there is
// none for this token.
absl::StatusOr<Certificate> JoinRun(const std::string& address,
                                    const JoinToken& token,
                                    const std::string& out,
                                    absl::Duration timeout);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_ISSUER_CLIENT_H_
