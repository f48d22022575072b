#include "runtime/checkpoint/file_ops.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

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

absl::Status WriteAll(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus(path, "write", n < 0 ? errno : EIO);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status Sync(int fd, const std::string& path) {
  return ::fsync(fd) == 0 ? absl::OkStatus()
                          : ErrnoStatus(path, "fsync", errno);
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) return ErrnoStatus(path, "open", errno);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash(
      EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  bool good = hash != nullptr &&
              EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1;
  std::vector<unsigned char> buffer(1 << 20);
  while (good) {
    const size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (n == 0) break;
    good = EVP_DigestUpdate(hash.get(), buffer.data(), n) == 1;
  }
  if (std::ferror(file.get()) != 0) return ErrnoStatus(path, "read", EIO);
  if (!good || EVP_DigestFinal_ex(hash.get(), digest, &size) != 1) {
    return absl::InternalError(absl::StrCat(path, ": SHA-256 failed"));
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), size));
}

class System : public FileOps {
 public:
  absl::Status MakeFolder(const std::string& path) override {
    std::error_code error;
    std::vector<std::filesystem::path> made;
    for (std::filesystem::path p = path;
         !p.empty() && !std::filesystem::exists(p, error);
         p = p.parent_path()) {
      made.push_back(p);
    }
    std::filesystem::create_directories(path, error);
    if (error) return FromErrorCode(path, "make folder", error);
    for (const std::filesystem::path& p : made) {
      const std::string parent = p.parent_path().string();
      const absl::Status synced = SyncFolder(parent.empty() ? "." : parent);
      if (!synced.ok()) return synced;
    }
    return absl::OkStatus();
  }

  absl::Status WriteText(const std::string& path,
                         std::string_view text) override {
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return ErrnoStatus(path, "open", errno);
    absl::Status status = WriteAll(fd, path, text);
    if (status.ok()) status = Sync(fd, path);
    // A full disk may show itself only here.
    if (::close(fd) != 0 && status.ok()) {
      status = ErrnoStatus(path, "close", errno);
    }
    return status;
  }

  absl::Status WriteTensors(const std::string& path,
                            const SafetensorsView& tensors) override {
    return WriteSafetensors(path, tensors);
  }

  absl::Status SyncFolder(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(path, "open folder", errno);
    absl::Status status = Sync(fd, path);
    ::close(fd);
    return status;
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

  std::vector<std::string> Entries(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end;
         !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    return names;
  }

  absl::StatusOr<uint64_t> Size(const std::string& path) override {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error) return FromErrorCode(path, "size", error);
    return size;
  }

  absl::StatusOr<std::string> ReadText(const std::string& path) override {
    std::ifstream file(path, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (!file) return absl::DataLossError(absl::StrCat(path, ": cannot read"));
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
