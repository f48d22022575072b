#include "runtime/identity/request_folder.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/plain_file.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/pem_file.h"

namespace gossamer {
namespace {

absl::StatusOr<std::string> ReadKey(const std::string& path) {
  const absl::Status secret = CheckPrivate(path);
  const absl::StatusOr<std::string> key =
      secret.ok() ? ReadPemFile(path) : secret;
  // Only a missing key needs other words: with --same-key the folder named on
  // the command line is the wrong one.
  if (!absl::IsNotFound(key.status())) return key;
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " cannot be read: --same-key asks again with keys that are there; choose "
      "another folder to make new ones"));
}

absl::StatusOr<RequestKeys> KeysIn(const std::string& folder, Role role) {
  RequestKeys keys;
  GOSSAMER_ASSIGN_OR_RETURN(keys.key, ReadKey(folder + "/key.pem"));
  if (role == Role::kTopology) {
    GOSSAMER_ASSIGN_OR_RETURN(keys.signer_key,
                              ReadKey(folder + "/signer-key.pem"));
  }
  return keys;
}

// A folder that is in use must not lose its key before the answer has come.
absl::StatusOr<RequestKeys> MakeKeysIn(const std::string& folder, Role role) {
  for (const char* name :
       {"key.pem", "cert.pem", "signer-key.pem", "ca-key.pem"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!std::filesystem::exists(path)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is there already, and nothing is overwritten; --same-key asks again "
        "with the key in that folder, or choose another folder"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(RequestKeys keys, MakeRequestKeys(role));
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(folder));
  // key.pem comes last: a folder that has it has both keys.
  if (!keys.signer_key.empty()) {
    GOSSAMER_RETURN_IF_ERROR(
        WriteFile(folder + "/signer-key.pem", keys.signer_key, kSecret));
  }
  GOSSAMER_RETURN_IF_ERROR(WriteFile(folder + "/key.pem", keys.key, kSecret));
  return keys;
}

}  // namespace

absl::StatusOr<SigningRequest> WriteRequest(const std::string& folder,
                                            const Identity& identity,
                                            RequestedKey which) {
  GOSSAMER_ASSIGN_OR_RETURN(const RequestKeys keys,
                            which == RequestedKey::kSame
                                ? KeysIn(folder, identity.role)
                                : MakeKeysIn(folder, identity.role));
  GOSSAMER_ASSIGN_OR_RETURN(const std::string pem,
                            WriteSigningRequest(identity, keys));
  GOSSAMER_RETURN_IF_ERROR(WriteFile(folder + "/request.pem", pem, kPublic));
  // The request is read back as the authority will read it: the caller shows
  // people what travels.
  return ReadSigningRequest(pem);
}

absl::StatusOr<SigningRequest> ReadRequest(const std::string& path) {
  const absl::StatusOr<std::string> pem = ReadPemFile(path);
  if (absl::IsNotFound(pem.status())) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " cannot be read; gossamer certs request makes one"));
  }
  GOSSAMER_RETURN_IF_ERROR(pem.status());
  absl::StatusOr<SigningRequest> request = ReadSigningRequest(*pem);
  if (request.ok()) return request;
  return absl::Status(request.status().code(),
                      absl::StrCat(path, ": ", request.status().message()));
}

}  // namespace gossamer
