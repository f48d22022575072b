#include "runtime/identity/authority_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/pem_file.h"

namespace gossamer {
namespace {

// Others hold it for as long as it takes to sign and to write a file.
constexpr absl::Duration kPatience = absl::Seconds(10);

std::string AuthorityFile(const std::string& path) { return path + "/ca.pem"; }
std::string SecretFile(const std::string& path) { return path + "/ca-key.pem"; }
std::string CrlFile(const std::string& path) { return path + "/crl.pem"; }
std::string IssuedFile(const std::string& path, const std::string& serial) {
  return absl::StrCat(path, "/issued/", serial, ".pem");
}

}  // namespace

absl::Status AuthorityFolder::Init(const std::string& path,
                                   const std::string& run, absl::Time now,
                                   absl::Duration life) {
  if (std::filesystem::exists(SecretFile(path))) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " holds an authority already; choose another folder"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const KeyPair pair, MakeAuthority(run, now, life));
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl,
                            gossamer::Revoke(pair, "", {}, now));
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(path + "/issued"));
  GOSSAMER_RETURN_IF_ERROR(WriteFile(SecretFile(path), pair.key, kSecret));
  GOSSAMER_RETURN_IF_ERROR(WriteFile(CrlFile(path), crl, kPublic));
  return WriteFile(AuthorityFile(path), pair.certificate, kPublic);
}

absl::StatusOr<AuthorityFolder> AuthorityFolder::Open(const std::string& path) {
  KeyPair pair;
  absl::StatusOr<std::string> certificate = ReadPemFile(AuthorityFile(path));
  if (!certificate.ok() || !std::filesystem::exists(SecretFile(path))) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is not the folder of an authority; gossamer certs init makes "
        "one"));
  }
  pair.certificate = *std::move(certificate);
  GOSSAMER_RETURN_IF_ERROR(CheckPrivate(SecretFile(path)));
  GOSSAMER_ASSIGN_OR_RETURN(pair.key, ReadPemFile(SecretFile(path)));
  absl::StatusOr<Certificate> own = ReadCertificate(pair.certificate);
  if (!own.ok() || own->identity.role != Role::kAuthority ||
      !KeyFits(pair.certificate, pair.key)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds no authority of a run, or not its key"));
  }
  return AuthorityFolder(path, std::move(pair), *std::move(own));
}

absl::StatusOr<Certificate> AuthorityFolder::Issue(
    const Identity& identity, const std::vector<std::string>& names,
    absl::Time now, absl::Duration life, const std::string& out) const {
  GOSSAMER_ASSIGN_OR_RETURN(const KeyPair pair,
                            gossamer::Issue(pair_, identity, names, now, life));
  GOSSAMER_ASSIGN_OR_RETURN(Certificate issued,
                            ReadCertificate(pair.certificate));
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(path_ + "/issued"));
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(IssuedFile(path_, issued.serial), pair.certificate, kPublic));
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(out));
  GOSSAMER_RETURN_IF_ERROR(Publish(out));
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(AuthorityFile(out), pair_.certificate, kPublic));
  GOSSAMER_RETURN_IF_ERROR(WriteFile(out + "/key.pem", pair.key, kSecret));
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(out + "/cert.pem", pair.certificate, kPublic));
  if (identity.role == Role::kTopology) {
    GOSSAMER_RETURN_IF_ERROR(IssueSigner(identity, now, life, out));
  }
  return issued;
}

absl::Status AuthorityFolder::IssueSigner(const Identity& identity,
                                          absl::Time now, absl::Duration life,
                                          const std::string& out) const {
  GOSSAMER_ASSIGN_OR_RETURN(const KeyPair pair,
                            gossamer::IssueSigner(pair_, identity, now, life));
  GOSSAMER_ASSIGN_OR_RETURN(const Certificate issued,
                            ReadCertificate(pair.certificate));
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(IssuedFile(path_, issued.serial), pair.certificate, kPublic));
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(out + "/signer-key.pem", pair.key, kSecret));
  return WriteFile(out + "/signer.pem", pair.certificate, kPublic);
}

absl::StatusOr<std::string> AuthorityFolder::IssueFor(
    absl::string_view request, const Identity& identity,
    const std::vector<std::string>& names, absl::Time now,
    absl::Duration life) const {
  GOSSAMER_ASSIGN_OR_RETURN(
      std::string pem,
      gossamer::IssueFor(pair_, request, identity, names, now, life));
  GOSSAMER_ASSIGN_OR_RETURN(const Certificate issued, ReadCertificate(pem));
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(path_ + "/issued"));
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(IssuedFile(path_, issued.serial), pem, kPublic));
  return pem;
}

absl::StatusOr<std::string> AuthorityFolder::IssuedPem(
    const std::string& serial) const {
  return ReadPemFile(IssuedFile(path_, serial));
}

absl::StatusOr<std::string> AuthorityFolder::Crl() const {
  return ReadCrlFile(CrlFile(path_));
}

absl::StatusOr<KeyPair> AuthorityFolder::MakeDesk(absl::Time now) const {
  GOSSAMER_ASSIGN_OR_RETURN(
      KeyPair desk,
      gossamer::Issue(pair_, own_.identity, {}, now, absl::InfiniteDuration()));
  desk.certificate += pair_.certificate;
  return desk;
}

absl::StatusOr<std::vector<AuthorityFolder::Issued>> AuthorityFolder::List()
    const {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl, ReadCrlFile(CrlFile(path_)));
  GOSSAMER_ASSIGN_OR_RETURN(const Trust trust,
                            Trust::Create(pair_.certificate, crl));
  const std::vector<std::string> revoked = trust.Revoked();
  std::vector<Issued> list;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(path_ + "/issued", error)) {
    if (entry.path().extension() != ".pem") continue;
    GOSSAMER_ASSIGN_OR_RETURN(const std::string pem,
                              ReadPemFile(entry.path().string()));
    const absl::StatusOr<Certificate> read = ReadCertificate(pem);
    if (!read.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(entry.path().string(), ": ", read.status().message()));
    }
    list.push_back({.certificate = *read,
                    .revoked = std::binary_search(
                        revoked.begin(), revoked.end(), read->serial)});
  }
  std::sort(list.begin(), list.end(), [](const Issued& a, const Issued& b) {
    const auto key = [](const Issued& i) {
      const Certificate& c = i.certificate;
      return std::tuple(c.identity.role, c.identity.peer.value, c.from,
                        c.serial);
    };
    return key(a) < key(b);
  });
  return list;
}

absl::Status AuthorityFolder::Revoke(const std::vector<std::string>& serials,
                                     absl::Time now) const {
  GOSSAMER_ASSIGN_OR_RETURN(const FolderLock lock, Lock());
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl, ReadCrlFile(CrlFile(path_)));
  GOSSAMER_ASSIGN_OR_RETURN(const std::string longer,
                            gossamer::Revoke(pair_, crl, serials, now));
  if (longer.size() > kMaxCrlBytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        CrlFile(path_), " would have ", longer.size(),
        " bytes, and no program reads more than ", kMaxCrlBytes,
        "; nothing was revoked: revoke by their serials those that are in use, "
        "or make another authority with gossamer certs init, and give "
        "everybody new certificates"));
  }
  return WriteFile(CrlFile(path_), longer, kPublic);
}

// Under the lock, so that an older list does not replace a newer one there.
absl::Status AuthorityFolder::Publish(const std::string& folder) const {
  GOSSAMER_ASSIGN_OR_RETURN(const FolderLock lock, Lock());
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl, ReadCrlFile(CrlFile(path_)));
  return WriteFile(CrlFile(folder), crl, kPublic);
}

absl::StatusOr<FolderLock> AuthorityFolder::Lock() const {
  const std::string file = path_ + "/lock";
  absl::StatusOr<FolderLock> lock = FolderLock::Take(file, kPatience);
  if (!absl::IsDeadlineExceeded(lock.status())) return lock;
  return absl::UnavailableError(
      absl::StrCat("another program has changed ", path_, " for ",
                   absl::FormatDuration(kPatience), " and holds ", file,
                   "; nothing was done: try again when it has ended (fuser ",
                   file, " says which it is)"));
}

}  // namespace gossamer
