#include "runtime/identity/join_desk.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/durable_file.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/pem_file.h"

namespace gossamer {
namespace {

// Whom it follows may be about its last answers.
constexpr absl::Duration kPredecessor = absl::Seconds(2);

constexpr char kSuffix[] = ".token";
// How long a token that is over can still say so.
constexpr absl::Duration kRemember = absl::Hours(24);

// Nobody learns which tokens there are.
absl::Status NoToken() {
  return absl::PermissionDeniedError("there is no such token");
}

// As it is written, and no other.
bool FromHex(absl::string_view text, std::string& bytes) {
  bytes = absl::HexStringToBytes(text);
  return absl::BytesToHexString(bytes) == text;
}

}  // namespace

absl::StatusOr<JoinDesk> JoinDesk::Open(const std::string& path) {
  GOSSAMER_ASSIGN_OR_RETURN(AuthorityFolder authority,
                            AuthorityFolder::Open(path));
  const std::string folder = path + "/tokens";
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(folder));
  return JoinDesk(std::move(authority), folder);
}

std::string JoinDesk::FileOf(absl::string_view id) const {
  return absl::StrCat(folder_, "/", absl::BytesToHexString(id), kSuffix);
}

absl::StatusOr<JoinToken> JoinDesk::MakeToken(const Grant& grant,
                                              absl::Time now) {
  if (grant.identity.role != Role::kPeer ||
      grant.identity.run != authority_.run()) {
    return absl::InvalidArgumentError(
        "a token is for a peer: who steers a fleet gets a certificate by hand");
  }
  if (grant.until <= now || grant.life <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a token that is over from the start");
  }
  GOSSAMER_RETURN_IF_ERROR(CheckNames(grant.names));
  GOSSAMER_ASSIGN_OR_RETURN(const JoinToken token,
                            MakeJoinToken(authority_.pem()));
  GOSSAMER_RETURN_IF_ERROR(
      Write(FileOf(token.id),
            {.grant = grant, .secret = token.secret, .key = {}, .serial = {}}));
  return token;
}

absl::StatusOr<std::vector<std::string>> JoinDesk::Files() const {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end;
       !error && it != end; it.increment(error)) {
    if (it->path().extension() == kSuffix) files.push_back(it->path());
  }
  if (!error) return files;
  return absl::UnavailableError(
      absl::StrCat("cannot read ", folder_, ": ", error.message()));
}

// Durable, as a loss of power must not let in whom it kept out.
absl::StatusOr<JoinDesk::Cancelled> JoinDesk::Remove(const std::string& file) {
  const std::filesystem::path path = file;
  Cancelled cancelled{.id = path.stem(), .identity = {}, .serial = {}};
  if (const absl::StatusOr<Record> record = Read(file); record.ok()) {
    cancelled.identity = record->grant.identity;
    cancelled.serial = record->serial;
  }
  std::error_code error;
  if (!std::filesystem::remove(path, error)) {
    if (!error) return absl::NotFoundError(absl::StrCat("there is no ", file));
    return absl::UnavailableError(
        absl::StrCat("cannot remove ", file, ": ", error.message()));
  }
  GOSSAMER_RETURN_IF_ERROR(SyncFolder(folder_));
  return cancelled;
}

absl::StatusOr<JoinDesk::Cancelled> JoinDesk::Cancel(const std::string& id) {
  const absl::Status none = absl::NotFoundError(
      absl::StrCat("there is no token ", id, " in ", folder_));
  if (id.size() != 2 * kTokenIdBytes ||
      id.find_first_not_of("0123456789abcdef") != id.npos) {
    return none;
  }
  GOSSAMER_ASSIGN_OR_RETURN(const FolderLock lock, authority_.Lock());
  absl::StatusOr<Cancelled> cancelled =
      Remove(FileOf(absl::HexStringToBytes(id)));
  return absl::IsNotFound(cancelled.status()) ? none : cancelled;
}

absl::StatusOr<std::vector<JoinDesk::Cancelled>> JoinDesk::CancelUnused(
    const Identity& whose) {
  GOSSAMER_ASSIGN_OR_RETURN(const FolderLock lock, authority_.Lock());
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<std::string> files, Files());
  std::vector<Cancelled> all;
  for (const std::string& file : files) {
    const absl::StatusOr<Record> record = Read(file);
    // A damaged one lets nobody in.
    if (!record.ok() || record->grant.identity != whose ||
        !record->key.empty()) {
      continue;
    }
    GOSSAMER_ASSIGN_OR_RETURN(all.emplace_back(), Remove(file));
  }
  return all;
}

absl::Status JoinDesk::Claim() {
  absl::StatusOr<FolderLock> lock =
      FolderLock::Take(folder_ + "/lock", kPredecessor);
  if (absl::IsDeadlineExceeded(lock.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("another gossamer certs serve admits by ", folder_));
  }
  GOSSAMER_RETURN_IF_ERROR(lock.status());
  claim_ = *std::move(lock);
  return absl::OkStatus();
}

absl::StatusOr<JoinDesk::Admission> JoinDesk::Admit(absl::string_view id,
                                                    absl::string_view request,
                                                    absl::string_view proof,
                                                    absl::Time now) {
  if (!claim_) return absl::InternalError("admits without a claim");
  if (id.size() != kTokenIdBytes) return NoToken();
  const std::string file = FileOf(id);
  // Else one that is cancelled meanwhile would let somebody in, and be written
  // again.
  const absl::StatusOr<FolderLock> lock = authority_.Lock();
  if (!lock.ok()) {
    return absl::UnavailableError(
        "the authority's folder is in use; ask again in a moment");
  }
  absl::StatusOr<Record> record = Read(file);
  if (absl::IsNotFound(record.status())) return NoToken();
  GOSSAMER_RETURN_IF_ERROR(record.status());
  if (!ProofHolds(record->secret, id, request, proof)) return NoToken();
  const Grant& grant = record->grant;
  if (now >= grant.until) {
    return absl::PermissionDeniedError(
        absl::StrCat("the token of ", Describe(grant.identity), " expired at ",
                     absl::FormatTime("%Y-%m-%d %H:%M UTC", grant.until,
                                      absl::UTCTimeZone()),
                     "; gossamer certs token makes another"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const std::string key,
                            CheckSigningRequest(request));
  Admission admission{.identity = grant.identity,
                      .serial = record->serial,
                      .certificate = {},
                      .again = !record->key.empty()};
  if (admission.again) {
    if (record->key != key) {
      return absl::PermissionDeniedError(absl::StrCat(
          "the token of ", Describe(grant.identity),
          " has been used already, by another key; if that was not you, take "
          "its certificate back: gossamer certs revoke --serial ",
          record->serial));
    }
    GOSSAMER_ASSIGN_OR_RETURN(admission.certificate,
                              authority_.IssuedPem(record->serial));
    return admission;
  }
  GOSSAMER_ASSIGN_OR_RETURN(admission.certificate,
                            authority_.IssueFor(request, grant.identity,
                                                grant.names, now, grant.life));
  GOSSAMER_ASSIGN_OR_RETURN(const Certificate issued,
                            ReadCertificate(admission.certificate));
  admission.serial = record->serial = issued.serial;
  record->key = key;
  GOSSAMER_RETURN_IF_ERROR(Write(file, *record));
  return admission;
}

absl::StatusOr<JoinDesk::Counts> JoinDesk::Count(absl::Time now) {
  Counts counts;
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<std::string> files, Files());
  for (const std::string& file : files) {
    const absl::StatusOr<Record> record = Read(file);
    if (absl::IsNotFound(record.status())) continue;  // cancelled just now
    GOSSAMER_RETURN_IF_ERROR(record.status());
    if (now < record->grant.until) {
      ++(record->key.empty() ? counts.unused : counts.used);
    }
    std::error_code error;
    if (now > record->grant.until + kRemember) {
      std::filesystem::remove(file, error);
    }
  }
  return counts;
}

absl::StatusOr<int> JoinDesk::CountUnused(absl::Time now) {
  GOSSAMER_ASSIGN_OR_RETURN(const Counts counts, Count(now));
  return counts.unused;
}

// Lines of a word and its value.
absl::StatusOr<JoinDesk::Record> JoinDesk::Read(const std::string& file) const {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string text, ReadPemFile(file));
  const absl::Status broken =
      absl::DataLossError(absl::StrCat(file, " is no token's; remove it"));
  Record record;
  int64_t life = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const auto& [word, value] = parts;
    std::string ignored;
    if (word == "identity") {
      const absl::StatusOr<Identity> identity = ParseIdentity(value);
      if (!identity.ok()) return broken;
      record.grant.identity = *identity;
    } else if (word == "name") {
      record.grant.names.emplace_back(value);
    } else if (word == "until") {
      if (!absl::ParseTime(absl::RFC3339_full, value, &record.grant.until,
                           &ignored)) {
        return broken;
      }
    } else if (word == "life") {
      if (!absl::SimpleAtoi(value, &life)) return broken;
      record.grant.life = absl::Seconds(life);
    } else if (word == "secret") {
      if (!FromHex(value, record.secret)) return broken;
    } else if (word == "key") {
      if (!FromHex(value, record.key)) return broken;
    } else if (word == "serial") {
      record.serial = std::string(value);
    } else {
      return broken;
    }
  }
  if (record.secret.size() != kTokenSecretBytes || life <= 0 ||
      record.key.empty() != record.serial.empty()) {
    return broken;
  }
  return record;
}

absl::Status JoinDesk::Write(const std::string& file,
                             const Record& record) const {
  std::string text = absl::StrCat("identity ", ToUri(record.grant.identity));
  for (const std::string& name : record.grant.names) {
    absl::StrAppend(&text, "\nname ", name);
  }
  absl::StrAppend(&text, "\nuntil ",
                  absl::FormatTime(absl::RFC3339_full, record.grant.until,
                                   absl::UTCTimeZone()),
                  "\nlife ", absl::ToInt64Seconds(record.grant.life),
                  "\nsecret ", absl::BytesToHexString(record.secret), "\n");
  if (!record.key.empty()) {
    absl::StrAppend(&text, "key ", absl::BytesToHexString(record.key),
                    "\nserial ", record.serial, "\n");
  }
  return WriteFile(file, text, kSecret);
}

}  // namespace gossamer
