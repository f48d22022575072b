#include "runtime/identity/certificate_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/address.h"

namespace gossamer {
namespace {

// The end of a certificate's validity that is warned of: long enough for people
// to renew it.
constexpr absl::Duration kSoon = absl::Hours(7 * 24);
constexpr int kPartOfValidity = 10;
constexpr absl::Duration kWarnAgain = absl::Hours(24);

// Returns false for a clock that has gone back: it must not silence a warning
// for years.
bool Within(absl::Time now, absl::Time since, absl::Duration duration) {
  return now >= since && now - since < duration;
}

absl::Status Wrong(const std::string& file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", why));
}

absl::StatusOr<std::string> ReadAtMost(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(absl::StrCat(
        path, " cannot be read; gossamer certs issue makes such folders"));
  }
  std::string text;
  std::array<char, 4096> block;
  // The size is bounded while reading: another program may still be writing the
  // file.
  while (file.read(block.data(), block.size()), file.gcount() > 0) {
    text.append(block.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > most) {
      return Wrong(path, absl::StrCat("has more than ", most, " bytes"));
    }
  }
  return text;
}

struct TrustFiles {
  std::string authority;
  std::string crl;
};

absl::StatusOr<TrustFiles> ReadTrustFiles(const std::string& path) {
  TrustFiles files;
  GOSSAMER_ASSIGN_OR_RETURN(files.authority, ReadPemFile(path + "/ca.pem"));
  const std::string crl = path + "/crl.pem";
  absl::StatusOr<std::string> read = ReadCrlFile(crl);
  if (absl::IsNotFound(read.status())) {
    return absl::NotFoundError(absl::StrCat(
        crl,
        " cannot be read: without the list of revoked certificates nobody "
        "could be kept out; copy crl.pem from the authority's folder"));
  }
  GOSSAMER_RETURN_IF_ERROR(read.status());
  files.crl = *std::move(read);
  return files;
}

struct Own {
  std::string pem;
  Certificate read;
};

// Reads a certificate of this program, and checks that its key fits and that
// nobody else may read it.
absl::StatusOr<Own> ReadOwn(const std::string& certificate_path,
                            const std::string& key_path) {
  // Errors are kInvalidArgument, whatever they were: the command line has named
  // a folder that is of no use.
  if (const absl::Status s = CheckPrivate(key_path); !s.ok()) {
    return absl::InvalidArgumentError(s.message());
  }
  const absl::StatusOr<std::string> key = ReadPemFile(key_path);
  if (!key.ok()) return absl::InvalidArgumentError(key.status().message());
  absl::StatusOr<std::string> pem = ReadPemFile(certificate_path);
  if (!pem.ok()) return absl::InvalidArgumentError(pem.status().message());
  if (!KeyFits(*pem, *key)) {
    return Wrong(key_path,
                 absl::StrCat("is not the private key of ", certificate_path));
  }
  absl::StatusOr<Certificate> read = ReadCertificate(*pem);
  if (!read.ok()) return Wrong(certificate_path, read.status().message());
  return Own{.pem = *std::move(pem), .read = *std::move(read)};
}

}  // namespace

absl::StatusOr<std::string> ReadPemFile(const std::string& path) {
  return ReadAtMost(path, kMaxPemBytes);
}

absl::StatusOr<std::string> ReadCrlFile(const std::string& path) {
  return ReadAtMost(path, kMaxCrlBytes);
}

absl::Status CheckPrivate(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat(
        path, " cannot be read; gossamer certs issue makes such folders"));
  }
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  return Wrong(path, absl::StrCat("others may read or write this private key; "
                                  "close it with: chmod 600 ",
                                  path));
}

CertificateFolder::Stamps CertificateFolder::StampsOf(const std::string& path) {
  const auto stamp = [](const std::string& file) {
    struct stat info = {};
    if (::stat(file.c_str(), &info) != 0) return Stamp{};
    return Stamp{.device = static_cast<int64_t>(info.st_dev),
                 .file = static_cast<int64_t>(info.st_ino),
                 .size = info.st_size,
                 .seconds = info.st_mtim.tv_sec,
                 .nanoseconds = info.st_mtim.tv_nsec};
  };
  return {stamp(path + "/ca.pem"), stamp(path + "/crl.pem")};
}

absl::StatusOr<std::shared_ptr<CertificateFolder>> CertificateFolder::Open(
    const std::string& path, Clock clock) {
  // The stamps are taken before the files are read: a change in between is
  // noticed at the next check.
  const Stamps stamps = StampsOf(path);
  const absl::StatusOr<TrustFiles> files = ReadTrustFiles(path);
  if (!files.ok()) return absl::InvalidArgumentError(files.status().message());
  absl::StatusOr<Trust> trust = Trust::Create(files->authority, files->crl);
  if (!trust.ok()) return Wrong(path, trust.status().message());
  std::shared_ptr<CertificateFolder> folder(new CertificateFolder(
      path, std::move(clock), files->authority, *std::move(trust), stamps));

  absl::StatusOr<Own> own =
      ReadOwn(folder->certificate_path(), folder->key_path());
  if (!own.ok()) return own.status();
  folder->identity_ = own->read.identity;
  // The program checks itself as others will: an expired or revoked certificate
  // ends its start with the reason.
  absl::Status valid = folder->Check(own->pem).status();
  if (!valid.ok()) return Wrong(folder->certificate_path(), valid.message());
  if (folder->identity_.role != Role::kTopology) return folder;

  own = ReadOwn(folder->signer_path(), folder->signer_key_path());
  if (!own.ok()) return own.status();
  if (own->read.identity != folder->identity_) {
    return Wrong(folder->signer_path(), "names another identity than cert.pem");
  }
  valid = folder->CheckSigner(own->pem).status();
  if (!valid.ok()) return Wrong(folder->signer_path(), valid.message());
  return folder;
}

// A file that is being copied, has gone or is damaged must not let a revoked
// certificate in again: the contents that were read last stay.
void CertificateFolder::ReadAgain() {
  const Stamps stamps = StampsOf(path_);
  // Damaged files may be put back as they were read last.
  if (stamps == stamps_ && !damaged_) return;
  absl::StatusOr<TrustFiles> files = ReadTrustFiles(path_);
  absl::StatusOr<Trust> trust =
      files.ok() ? Trust::Create(files->authority, files->crl) : files.status();
  damaged_ = !trust.ok();
  if (damaged_) {
    problem_ = absl::StrCat(path_, ": ", trust.status().message(),
                            "; what was read before stays in force");
    return;
  }
  stamps_ = stamps;
  problem_.clear();
  // Another authority has a list of its own, which need not contain the old
  // one's.
  if (files->authority == authority_ &&
      !std::ranges::includes(trust->Revoked(), trust_.Revoked())) {
    problem_ = absl::StrCat(
        crl_path(),
        " is older than the list read before, which stays in force: it lacks "
        "certificates that have been revoked; copy the authority's newest");
    return;
  }
  authority_ = std::move(files->authority);
  trust_ = *std::move(trust);
}

std::string CertificateFolder::Problem() {
  MutexLock lock(&mu_);
  ReadAgain();
  return problem_;
}

std::vector<std::string> CertificateFolder::Revoked() {
  MutexLock lock(&mu_);
  ReadAgain();
  return {trust_.Revoked().begin(), trust_.Revoked().end()};
}

absl::StatusOr<Certificate> CertificateFolder::Check(absl::string_view pem,
                                                     bool signs) {
  MutexLock lock(&mu_);
  ReadAgain();
  GOSSAMER_ASSIGN_OR_RETURN(Certificate certificate,
                            trust_.Check(pem, clock_()));
  // Each key does its own work only: a signer that leaks opens no connections.
  if (certificate.only_signs != signs) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the certificate of ", Describe(certificate.identity),
        signs ? " is for connections: nothing is signed with it"
              : " is to sign with: no connection is made with it"));
  }
  if (certificate.identity.run != identity_.run) {
    return absl::UnauthenticatedError(absl::StrCat(
        "a certificate of run \"", absl::CEscape(certificate.identity.run),
        "\", and this is run \"", identity_.run, "\""));
  }
  return certificate;
}

std::string CertificateFolder::ExpiryOf(const std::string& path,
                                        absl::Time now) const {
  const absl::StatusOr<std::string> pem = ReadPemFile(path);
  // A file that cannot be read is no expiry; whoever needs it says what is
  // wrong.
  if (!pem.ok()) return "";
  const absl::StatusOr<Certificate> own = ReadCertificate(*pem);
  if (!own.ok()) return "";
  const absl::Duration left = own->until - now;
  if (left > std::min(kSoon, (own->until - own->from) / kPartOfValidity))
    return "";
  std::string text = absl::StrCat(
      path, left > absl::ZeroDuration() ? ": expires at " : ": has expired at ",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", own->until, absl::UTCTimeZone()));
  const auto pem_of_authority = ReadPemFile(authority_path());
  const auto authority =
      ReadCertificate(pem_of_authority.ok() ? *pem_of_authority : "");
  return text +
         (authority.ok() && authority->until <= own->until
              ? ", and its authority with it; make another one with gossamer "
                "certs init, and give everybody new certificates"
              : "; renew this folder with gossamer certs issue, where the "
                "authority is: nothing is to be restarted");
}

std::string CertificateFolder::TakeExpiryWarning() {
  MutexLock lock(&mu_);
  const absl::Time now = clock_();
  std::string text = ExpiryOf(certificate_path(), now);
  // Both are renewed together, but one may have been copied without the other.
  if (text.empty() && identity_.role == Role::kTopology) {
    text = ExpiryOf(signer_path(), now);
  }
  // Another text is news, even within a day.
  if (text == warned_of_ && Within(now, warned_, kWarnAgain)) return "";
  warned_of_ = text;
  warned_ = now;
  return text;
}

absl::StatusOr<CertificateFolder::Signature> CertificateFolder::Sign(
    absl::string_view context, absl::string_view bytes) const {
  Signature signature;
  // The files are read at each signature: a renewed signer counts at once, and
  // views are seldom.
  GOSSAMER_ASSIGN_OR_RETURN(const std::string key,
                            ReadPemFile(signer_key_path()));
  GOSSAMER_ASSIGN_OR_RETURN(signature.certificate, ReadPemFile(signer_path()));
  if (!KeyFits(signature.certificate, key)) {
    return absl::UnavailableError(
        absl::StrCat(signer_key_path(),
                     ": is not the private key of signer.pem; are "
                     "they being replaced?"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(signature.bytes, SignBytes(key, context, bytes));
  return signature;
}

absl::StatusOr<std::shared_ptr<CertificateFolder>> OpenCertificates(
    const Exposure& exposure, const std::string& address) {
  if (!exposure.certificates.empty()) {
    if (exposure.insecure) {
      return absl::InvalidArgumentError(
          "--certs and --insecure exclude each other");
    }
    absl::StatusOr<std::shared_ptr<CertificateFolder>> folder =
        CertificateFolder::Open(exposure.certificates);
    if (folder.ok()) return folder;
    return absl::InvalidArgumentError(
        absl::StrCat("--certs: ", folder.status().message()));
  }
  // Only programs of this machine reach a loopback address, so a start at home
  // needs no certificates.  Every other address needs a decision by a person.
  if (exposure.insecure || IsLoopback(address)) return nullptr;
  return absl::InvalidArgumentError(absl::StrCat(
      address,
      " is not of this machine alone: give --certs DIR (gossamer certs makes "
      "it), or --insecure where everybody who reaches it may read and steer "
      "the run"));
}

}  // namespace gossamer
