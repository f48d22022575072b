#include "runtime/checkpoint/file_ops.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/durable_file.h"

namespace gossamer {
namespace {

absl::Status ErrnoStatus(const std::string& path, std::string_view what,
                         int error) {
  return absl::ErrnoToStatus(error,
                             absl::StrCat(path, ": ", std::string(what)));
}

absl::Status FromErrorCode(const std::string& path, std::string_view what,
                           const std::error_code& error) {
  return error ? ErrnoStatus(path, what, error.value()) : absl::OkStatus();
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// SHA-256 of bytes that come in pieces.
class Sha256Stream {
 public:
  Sha256Stream()
      : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free),
        good_(context_ != nullptr &&
              EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1) {}
  void Add(std::string_view bytes) {
    good_ = good_ &&
            EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
  }
  // In lower-case hexadecimal.  `path` is for the error.
  absl::StatusOr<std::string> Finish(const std::string& path) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!good_ || EVP_DigestFinal_ex(context_.get(), digest, &size) != 1) {
      return absl::InternalError(absl::StrCat(path, ": SHA-256 failed"));
    }
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest), size));
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
  bool good_;
};

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return ErrnoStatus(path, "open", errno);
  Sha256Stream hash;
  // A state is hashed in blocks: it may be larger than the memory that is free.
  std::vector<char> buffer(1 << 20);
  while (true) {
    const size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (n == 0) break;
    hash.Add({buffer.data(), n});
  }
  if (std::ferror(file.get()) != 0) return ErrnoStatus(path, "read", errno);
  return hash.Finish(path);
}

class System : public FileOps {
 public:
  absl::Status MakeFolder(const std::string& path) override {
    std::error_code error;
    // The folders that do not exist yet, whose names in their parents have to
    // be synced as well.
    std::vector<std::filesystem::path> made;
    for (std::filesystem::path p = path;
         !p.empty() && !std::filesystem::exists(p, error);
         p = p.parent_path()) {
      made.push_back(p);
    }
    std::filesystem::create_directories(path, error);
    if (error) return FromErrorCode(path, "make folder", error);
    for (const std::filesystem::path& p : made) {
      const absl::Status synced = SyncFolder(p.parent_path().string());
      if (synced.ok()) continue;
      // Otherwise the next attempt would find the folder and not sync it.
      for (const auto& empty : made) std::filesystem::remove(empty, error);
      return synced;
    }
    return absl::OkStatus();
  }

  absl::Status WriteText(const std::string& path,
                         std::string_view text) override {
    const std::string_view parts[] = {text};
    return WriteDurably(path, parts);
  }

  absl::Status WriteTensors(const std::string& path,
                            const SafetensorsView& tensors,
                            std::string* sha256) override {
    Sha256Stream hash;
    GOSSAMER_RETURN_IF_ERROR(WriteSafetensors(
        path, tensors, [&hash](std::string_view bytes) { hash.Add(bytes); }));
    GOSSAMER_ASSIGN_OR_RETURN(*sha256, hash.Finish(path));
    return absl::OkStatus();
  }

  absl::Status SyncFolder(const std::string& path) override {
    return gossamer::SyncFolder(path);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(from, absl::StrCat("rename to ", to), errno);
  }

  absl::Status Remove(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return FromErrorCode(path, "remove", error);
  }

  bool Exists(const std::string& path) override {
    std::error_code error;
    return std::filesystem::exists(path, error);
  }

  absl::StatusOr<std::vector<std::string>> Entries(
      const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end;
         // Without the error argument the iterator would throw if the disk
         // fails.
         !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error && error != std::errc::no_such_file_or_directory) {
      return FromErrorCode(folder, "read the folder", error);
    }
    return names;
  }

  absl::StatusOr<uint64_t> Size(const std::string& path) override {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error) return FromErrorCode(path, "size", error);
    return size;
  }

  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override {
    std::error_code error;
    std::filesystem::path there = std::filesystem::absolute(path, error);
    while (!error && !std::filesystem::exists(there, error) &&
           there.has_relative_path()) {
      there = there.parent_path();
    }
    const uint64_t bytes = std::filesystem::space(there, error).available;
    if (error) return FromErrorCode(path, "free space", error);
    return bytes;
  }

  absl::StatusOr<std::string> ReadText(const std::string& path) override {
    // A stream's buffer would throw if the disk fails.
    const File file(std::fopen(path.c_str(), "rbe"));
    if (file == nullptr) return ErrnoStatus(path, "open", errno);
    std::string text;
    char part[4096];
    for (size_t n = 1; n > 0;) {
      n = std::fread(part, 1, sizeof(part), file.get());
      text.append(part, n);
    }
    if (std::ferror(file.get()) != 0) return ErrnoStatus(path, "read", errno);
    return text;
  }

  absl::StatusOr<Safetensors> ReadTensors(const std::string& path) override {
    return ReadSafetensors(path);
  }

  absl::StatusOr<std::string> Sha256(const std::string& path) override {
    return Sha256OfFile(path);
  }
};

}  // namespace

FileOps& SystemFileOps() {
  static System system;
  return system;
}

}  // namespace gossamer
