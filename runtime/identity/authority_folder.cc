#include "runtime/identity/authority_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/plain_file.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/pem_file.h"

namespace gossamer {
namespace {

// The time that this program waits for others, each of which holds the lock
// while it signs a list and writes a file.
constexpr absl::Duration kLockTimeout = absl::Seconds(10);

std::string AuthorityFile(const std::string& path) { return path + "/ca.pem"; }
std::string SecretFile(const std::string& path) { return path + "/ca-key.pem"; }
std::string CrlFile(const std::string& path) { return path + "/crl.pem"; }
std::string IssuedFile(const std::string& path, const std::string& serial) {
  return absl::StrCat(path, "/issued/", serial, ".pem");
}

// Returns OK if an answer may be written to `out`: beside the key that it is
// for, or in place of an earlier one of `identity`.
absl::Status CheckAnswer(const std::string& out, const Identity& identity,
                         const std::string& certificate) {
  const std::string key = out + "/key.pem";
  if (std::filesystem::exists(key)) {
    const absl::StatusOr<std::string> pem = ReadPemFile(key);
    // A certificate beside a foreign key would make the folder useless until
    // people find out why.
    if (pem.ok() && KeyFits(certificate, *pem)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        key, " is not the key of the request; choose another folder"));
  }
  const std::string earlier = out + "/cert.pem";
  if (!std::filesystem::exists(earlier)) return absl::OkStatus();
  const absl::StatusOr<std::string> pem = ReadPemFile(earlier);
  const absl::StatusOr<Certificate> read = ReadCertificate(pem.value_or(""));
  if (read.ok() && read->identity == identity) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      earlier, " is not of ", ToUri(identity), "; choose another folder"));
}

}  // namespace

absl::Status AuthorityFolder::Init(const std::string& path,
                                   const std::string& run, absl::Time now,
                                   absl::Duration valid) {
  if (std::filesystem::exists(SecretFile(path))) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " holds an authority already; choose another folder"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const KeyPair pair, MakeAuthority(run, now, valid));
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl,
                            gossamer::Revoke(pair, "", {}, now));
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(path + "/issued"));
  // The certificate comes last: with it the folder is one of an authority
  // (Open).
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

// The copy is kept before the folder is written: a certificate that is out can
// always be revoked by its serial.
absl::StatusOr<Certificate> AuthorityFolder::Keep(
    const std::string& certificate) const {
  GOSSAMER_ASSIGN_OR_RETURN(Certificate issued, ReadCertificate(certificate));
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(path_ + "/issued"));
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(IssuedFile(path_, issued.serial), certificate, kPublic));
  return issued;
}

absl::Status AuthorityFolder::WriteTrust(const std::string& out) const {
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(out));
  GOSSAMER_RETURN_IF_ERROR(Publish(out));
  return WriteFile(AuthorityFile(out), pair_.certificate, kPublic);
}

absl::StatusOr<Certificate> AuthorityFolder::Issue(
    const Identity& identity, const std::vector<std::string>& names,
    absl::Time now, absl::Duration valid, const std::string& out) const {
  GOSSAMER_ASSIGN_OR_RETURN(
      const KeyPair pair, gossamer::Issue(pair_, identity, names, now, valid));
  GOSSAMER_ASSIGN_OR_RETURN(Certificate issued, Keep(pair.certificate));
  GOSSAMER_RETURN_IF_ERROR(WriteTrust(out));
  GOSSAMER_RETURN_IF_ERROR(WriteFile(out + "/key.pem", pair.key, kSecret));
  if (identity.role == Role::kTopology) {
    // Only the service signs views, with a key that makes no connections.
    GOSSAMER_ASSIGN_OR_RETURN(const KeyPair signer,
                              IssueSigner(pair_, identity, now, valid));
    GOSSAMER_RETURN_IF_ERROR(Keep(signer.certificate).status());
    GOSSAMER_RETURN_IF_ERROR(
        WriteFile(out + "/signer-key.pem", signer.key, kSecret));
    GOSSAMER_RETURN_IF_ERROR(
        WriteFile(out + "/signer.pem", signer.certificate, kPublic));
  }
  // The certificate comes last: with it the folder is whole.
  GOSSAMER_RETURN_IF_ERROR(
      WriteFile(out + "/cert.pem", pair.certificate, kPublic));
  return issued;
}

absl::StatusOr<Certificate> AuthorityFolder::Sign(
    const SigningRequest& request, const std::vector<std::string>& names,
    absl::Time now, absl::Duration valid, const std::string& out) const {
  const Identity& identity = request.identity;
  if (identity.run != run()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is of run \"", identity.run, "\", and ",
                     path_, " is the authority of run \"", run(), "\""));
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::string certificate,
      IssueFor(pair_, request.key, identity, names, now, valid));
  std::string signer;
  if (identity.role == Role::kTopology) {
    GOSSAMER_ASSIGN_OR_RETURN(
        signer, IssueFor(pair_, request.signer_key, identity, {}, now, valid));
  }
  // The folder is checked before anything is kept: a refusal leaves no
  // certificate behind.
  GOSSAMER_RETURN_IF_ERROR(CheckAnswer(out, identity, certificate));
  GOSSAMER_ASSIGN_OR_RETURN(Certificate issued, Keep(certificate));
  if (!signer.empty()) {
    GOSSAMER_RETURN_IF_ERROR(Keep(signer).status());
  }
  GOSSAMER_RETURN_IF_ERROR(WriteTrust(out));
  if (!signer.empty()) {
    GOSSAMER_RETURN_IF_ERROR(WriteFile(out + "/signer.pem", signer, kPublic));
  }
  // The certificate comes last: with it the folder is whole.
  GOSSAMER_RETURN_IF_ERROR(WriteFile(out + "/cert.pem", certificate, kPublic));
  return issued;
}

absl::StatusOr<std::vector<AuthorityFolder::Issued>> AuthorityFolder::List()
    const {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl, ReadCrlFile(CrlFile(path_)));
  GOSSAMER_ASSIGN_OR_RETURN(const Trust trust,
                            Trust::Create(pair_.certificate, crl));
  const std::set<std::string>& revoked = trust.Revoked();
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
    // Revoked ones are listed, too: people ask for them.
    list.push_back(
        {.certificate = *read, .revoked = revoked.contains(read->serial)});
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
  // The list is read and written under one lock: of two revocations at once
  // neither is lost.
  GOSSAMER_ASSIGN_OR_RETURN(const FileLock lock, Lock());
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl, ReadCrlFile(CrlFile(path_)));
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::string newer,
      gossamer::Revoke(pair_, crl, {serials.begin(), serials.end()}, now));
  if (newer.size() > kMaxCrlBytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        CrlFile(path_), " would have ", newer.size(),
        " bytes, and no program reads more than ", kMaxCrlBytes,
        "; nothing was revoked: revoke by their serials those that are in use, "
        "or make another authority with gossamer certs init, and give "
        "everybody new certificates"));
  }
  return WriteFile(CrlFile(path_), newer, kPublic);
}

// The copy is made under the lock, so that an older list does not replace a
// newer one there.
absl::Status AuthorityFolder::Publish(const std::string& folder) const {
  GOSSAMER_ASSIGN_OR_RETURN(const FileLock lock, Lock());
  GOSSAMER_ASSIGN_OR_RETURN(const std::string crl, ReadCrlFile(CrlFile(path_)));
  return WriteFile(CrlFile(folder), crl, kPublic);
}

absl::StatusOr<FileLock> AuthorityFolder::Lock() const {
  const std::string file = path_ + "/lock";
  absl::StatusOr<FileLock> lock = FileLock::Take(file, kLockTimeout);
  if (!absl::IsDeadlineExceeded(lock.status())) return lock;
  return absl::UnavailableError(
      absl::StrCat("another program has changed ", path_, " for ",
                   absl::FormatDuration(kLockTimeout), " and holds ", file,
                   "; nothing was done: try again when it has ended (fuser ",
                   file, " says which it is)"));
}

}  // namespace gossamer
