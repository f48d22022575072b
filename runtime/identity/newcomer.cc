#include "runtime/identity/newcomer.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/pem_file.h"

namespace gossamer {

absl::StatusOr<std::string> KeyForNewcomer(const std::string& folder) {
  if (std::filesystem::exists(folder + "/cert.pem")) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " holds a certificate already"));
  }
  const std::string path = folder + "/key.pem";
  if (std::filesystem::exists(path)) {
    GOSSAMER_RETURN_IF_ERROR(CheckPrivate(path));
    return ReadPemFile(path);
  }
  GOSSAMER_ASSIGN_OR_RETURN(const SigningRequest made, MakeSigningRequest());
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(folder));
  GOSSAMER_RETURN_IF_ERROR(WriteFile(path, made.key, kSecret));
  return made.key;
}

absl::StatusOr<Certificate> AcceptCertificate(const std::string& folder,
                                              const FirstCertificate& first,
                                              absl::Time now) {
  GOSSAMER_ASSIGN_OR_RETURN(const Trust trust,
                            Trust::Create(first.authority, first.crl));
  GOSSAMER_ASSIGN_OR_RETURN(Certificate issued,
                            trust.Check(first.certificate, now));
  GOSSAMER_ASSIGN_OR_RETURN(const std::string key,
                            ReadPemFile(folder + "/key.pem"));
  if (!KeyFits(first.certificate, key)) {
    return absl::UnauthenticatedError(
        "the certificate that came is not for this machine's key");
  }
  if (first.crl.empty()) {
    return absl::UnauthenticatedError(
        "a certificate came without the list of revoked ones, which nobody "
        "can be kept out without");
  }
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(folder + "/ca.pem", first.authority, kPublic));
  GOSSAMER_RETURN_IF_ERROR(WriteFile(folder + "/crl.pem", first.crl, kPublic));
  // Last: with it the folder is whole.
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(folder + "/cert.pem", first.certificate, kPublic));
  return issued;
}

}  // namespace gossamer
