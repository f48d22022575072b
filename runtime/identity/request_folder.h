// A folder of certificates (certificate_folder.h) whose certificate is still to
// be signed: private keys, and the request that is brought to the authority.
//
//   key.pem, signer-key.pem  as in a whole folder
//   request.pem              what travels; holds no secret
//
// This header knows nothing of the authority: the files of its answer, copied
// beside these, make the folder whole (AuthorityFolder::Sign).

#ifndef GOSSAMER_RUNTIME_IDENTITY_REQUEST_FOLDER_H_
#define GOSSAMER_RUNTIME_IDENTITY_REQUEST_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/identity/identity.h"
#include "runtime/identity/signing_request.h"

namespace gossamer {

enum class RequestedKey {
  kNew,   // a folder that holds a key already is refused
  kSame,  // the one that is there, as to renew its certificate
};

// Makes `folder`, or adds to it, and writes the request of `identity` there.
// Keys are never replaced.  kInvalidArgument says which file is in the way, is
// missing, or is open to others; kUnavailable: a file cannot be written.
absl::StatusOr<SigningRequest> WriteRequest(const std::string& folder,
                                            const Identity& identity,
                                            RequestedKey which);

// The request in the file `path`.  kInvalidArgument names the file.
absl::StatusOr<SigningRequest> ReadRequest(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_REQUEST_FOLDER_H_
