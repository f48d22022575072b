#include "tests/simulation/memory_disk.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer::simulation {
namespace {

constexpr char kReadError[] = ": read: the disk";

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool Within(const std::string& path, const std::string& folder) {
  return path == folder ||
         (path.size() > folder.size() && path[folder.size()] == '/' &&
          path.compare(0, folder.size(), folder) == 0);
}

std::string Sha256Of(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
}

}  // namespace

void MemoryDisk::Apply(Names& names, const Change& change) {
  if (change.kind == Change::Kind::kWrite) {
    names[change.path] = change.content;
    return;
  }
  Names moved;
  for (auto it = names.lower_bound(change.path); it != names.end();) {
    if (!Within(it->first, change.path)) {
      if (it->first.compare(0, change.path.size(), change.path) != 0) break;
      ++it;  // "a.b" lies between "a" and "a/b"
      continue;
    }
    if (change.kind == Change::Kind::kRename) {
      moved[change.to + it->first.substr(change.path.size())] = it->second;
    }
    it = names.erase(it);
  }
  names.merge(moved);
}

void MemoryDisk::Do(Change change) {
  Apply(now_, change);
  if (change.kind == Change::Kind::kRename) {
    // Changes in a folder that are not yet durable go with its new name.
    for (Change& c : pending_) {
      if (c.path != change.path && Within(c.path, change.path)) {
        c.path = change.to + c.path.substr(change.path.size());
      }
    }
  }
  pending_.push_back(std::move(change));
}

void MemoryDisk::Write(const std::string& path, Content content) {
  Do({Change::Kind::kWrite, path, "", std::move(content)});
}

void MemoryDisk::Rename(const std::string& from, const std::string& to) {
  Do({Change::Kind::kRename, from, to, nullptr});
}

void MemoryDisk::Remove(const std::string& path) {
  Do({Change::Kind::kRemove, path, "", nullptr});
}

void MemoryDisk::Sync(const std::string& folder) {
  std::vector<Change> rest;
  for (Change& change : pending_) {
    if (ParentOf(change.path) == folder) {
      Apply(durable_, change);
      if (change.kind == Change::Kind::kRemove) {
        // Changes in a folder that is gone have no effect any more.
        std::erase_if(rest, [&change](const Change& c) {
          return Within(c.path, change.path);
        });
      }
    } else {
      rest.push_back(std::move(change));
    }
  }
  pending_ = std::move(rest);
}

void MemoryDisk::CutPower(RngKey draw) {
  const uint64_t kept = draw.Below(pending_.size() + 1, 0);
  for (uint64_t i = 0; i < kept; ++i) Apply(durable_, pending_[i]);
  // Names in folders that did not survive are gone with them.
  std::erase_if(durable_, [this](const auto& entry) {
    const std::string parent = ParentOf(entry.first);
    return !parent.empty() && !durable_.contains(parent);
  });
  now_ = durable_;
  pending_.clear();
}

bool MemoryDisk::Damage(const std::string& folder, RngKey draw) {
  std::vector<std::string> files;
  for (const auto& [path, content] : now_) {
    const bool file = content != nullptr && !content->empty();
    if (file && Within(path, folder)) files.push_back(path);
  }
  if (files.empty()) return false;
  const std::string& path = files[draw.Below(files.size(), 0)];
  std::string content = *now_.at(path);
  content[draw.Below(content.size(), 1)] ^= static_cast<char>(1);
  const auto damaged = std::make_shared<const std::string>(std::move(content));
  now_[path] = damaged;
  if (durable_.contains(path)) durable_[path] = damaged;
  return true;
}

void MemoryDisk::Wipe() {
  now_.clear();
  durable_.clear();
  pending_.clear();
}

void DiskSession::Count(std::string_view fault) const {
  if (errors_->counts != nullptr) ++(*errors_->counts)[std::string(fault)];
}

absl::Status DiskSession::Begin(const std::string& path) {
  if (!crash_->CountEffect()) {
    return absl::UnavailableError(absl::StrCat(path, ": the process is dead"));
  }
  const uint64_t i = operations_++;
  if (errors_->write > 0 && key_.Uniform(i) < errors_->write) {
    Count("disk_errors");
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": no space left on device"));
  }
  return absl::OkStatus();
}

// The error came while disks failed and is reported after some computing, by
// which time they may be well.
bool DiskSession::Errors::Explain(const absl::Status& status) const {
  const auto met = [this](const char* fault) {
    return counts != nullptr && counts->contains(fault);
  };
  return (met("disk_errors") && absl::IsResourceExhausted(status)) ||
         (met("read_errors") &&
          absl::StrContains(status.message(), kReadError));
}

absl::Status DiskSession::BeginRead(const std::string& path) {
  const uint64_t i = reads_++;
  if (errors_->read > 0 && key_.Fold("read").Uniform(i) < errors_->read) {
    Count("read_errors");
    return absl::ErrnoToStatus(EIO, absl::StrCat(path, kReadError));
  }
  return absl::OkStatus();
}

absl::Status DiskSession::Write(const std::string& path, std::string content) {
  const bool was_dead = crash_->dead();
  const absl::Status status = Begin(path);
  if (!status.ok() || crash_->dead()) {
    if (was_dead) return status;
    // A write that fails, or in which the process dies, leaves a part of the
    // content.
    content.resize(key_.Fold("part").Below(content.size() + 1, operations_));
  }
  disk_->Write(path, std::make_shared<const std::string>(std::move(content)));
  return status;
}

absl::StatusOr<MemoryDisk::Content> DiskSession::Find(const std::string& path) {
  GOSSAMER_RETURN_IF_ERROR(BeginRead(path));
  const auto it = disk_->names().find(path);
  if (it == disk_->names().end() || it->second == nullptr) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  return it->second;
}

absl::Status DiskSession::MakeFolder(const std::string& path) {
  GOSSAMER_RETURN_IF_ERROR(Begin(path));
  for (size_t at = path.find('/');; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    if (!disk_->names().contains(folder)) {
      disk_->Write(folder, nullptr);
      disk_->Sync(ParentOf(folder));
    }
    if (at == std::string::npos) return absl::OkStatus();
  }
}

absl::Status DiskSession::WriteText(const std::string& path,
                                    std::string_view text) {
  return Write(path, std::string(text));
}

absl::Status DiskSession::WriteTensors(const std::string& path,
                                       const SafetensorsView& tensors,
                                       std::string* sha256) {
  GOSSAMER_ASSIGN_OR_RETURN(std::string file, FormatSafetensors(tensors));
  *sha256 = Sha256Of(file);
  return Write(path, std::move(file));
}

absl::Status DiskSession::SyncFolder(const std::string& path) {
  GOSSAMER_RETURN_IF_ERROR(Begin(path));
  disk_->Sync(path);
  return absl::OkStatus();
}

absl::Status DiskSession::Rename(const std::string& from,
                                 const std::string& to) {
  GOSSAMER_RETURN_IF_ERROR(Begin(from));
  disk_->Rename(from, to);
  return absl::OkStatus();
}

// A folder is removed name by name, so that a crash can leave it damaged.
absl::Status DiskSession::Remove(const std::string& path) {
  GOSSAMER_RETURN_IF_ERROR(Begin(path));
  std::vector<std::string> within;
  for (const auto& [name, content] : disk_->names()) {
    if (name != path && Within(name, path)) within.push_back(name);
  }
  for (const std::string& name : within) {
    GOSSAMER_RETURN_IF_ERROR(Begin(name));
    disk_->Remove(name);
  }
  if (disk_->names().contains(path)) disk_->Remove(path);
  return absl::OkStatus();
}

bool DiskSession::Exists(const std::string& path) {
  return disk_->names().contains(path);
}

absl::StatusOr<std::vector<std::string>> DiskSession::Entries(
    const std::string& folder) {
  GOSSAMER_RETURN_IF_ERROR(BeginRead(folder));
  std::vector<std::string> names;
  for (const auto& [name, content] : disk_->names()) {
    if (ParentOf(name) == folder)
      names.push_back(name.substr(folder.size() + 1));
  }
  return names;
}

absl::StatusOr<uint64_t> DiskSession::Size(const std::string& path) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto content, Find(path));
  return content->size();
}

absl::StatusOr<std::string> DiskSession::ReadText(const std::string& path) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto content, Find(path));
  return *content;
}

absl::StatusOr<Safetensors> DiskSession::ReadTensors(const std::string& path) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto content, Find(path));
  return ParseSafetensors(std::as_bytes(std::span(*content)));
}

absl::StatusOr<std::string> DiskSession::Sha256(const std::string& path) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto content, Find(path));
  return Sha256Of(*content);
}

}  // namespace gossamer::simulation
