#include "gan_models/data/image_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

constexpr std::string_view kMagic = "gossimg\n";
constexpr uint64_t kMaxEntries = std::numeric_limits<int>::max();
constexpr uint64_t kMaxNamesBytes = uint64_t{1} << 30;

// The places of the header's fields.  The checksum is of all bytes before it.
enum : size_t {
  kAtVersion = 8,
  kAtSide = 12,
  kAtEntries = 16,
  kAtClasses = 24,
  kAtFinished = 28,
  kAtNamesBytes = 32,
  kAtSource = 40,
  kAtEntriesCrc = 48,
  kAtNamesCrc = 52,
  kAtCrc = 56,
  kHeaderEnd = 60
};

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(what);
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, " ", status.message()));
}

}  // namespace

absl::Status CheckSide(uint64_t side) {
  if (side >= kMinSide && side <= kMaxSide && side % 4 == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a resolution of ", side, "; it is a multiple of 4 from ",
                   kMinSide, " to ", kMaxSide));
}

std::vector<std::byte> ImageCacheHeader::Encode() const {
  std::vector<std::byte> bytes(kBytes);
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  Put(std::span(bytes), kAtVersion, kVersion);
  Put(std::span(bytes), kAtSide, side);
  Put(std::span(bytes), kAtEntries, entries);
  Put(std::span(bytes), kAtClasses, classes);
  Put(std::span(bytes), kAtFinished, uint32_t{finished});
  Put(std::span(bytes), kAtNamesBytes, names_bytes);
  Put(std::span(bytes), kAtSource, source);
  Put(std::span(bytes), kAtEntriesCrc, entries_crc);
  Put(std::span(bytes), kAtNamesCrc, names_crc);
  Put(std::span(bytes), kAtCrc, Crc32c(std::span(bytes).first(kAtCrc)));
  return bytes;
}

absl::StatusOr<ImageCacheHeader> ImageCacheHeader::Parse(
    std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderEnd ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return Damaged(
        "is no file of gossamer data build: it begins with other bytes");
  }
  const auto version = Get<uint32_t>(bytes, kAtVersion);
  if (version != kVersion) {
    return Damaged(absl::StrCat("is of version ", version,
                                " and this program reads version ", kVersion,
                                "; build it anew"));
  }
  if (Get<uint32_t>(bytes, kAtCrc) != Crc32c(bytes.first(kAtCrc))) {
    return Damaged("has a damaged header: its checksum differs");
  }
  ImageCacheHeader h;
  h.side = Get<uint32_t>(bytes, kAtSide);
  h.entries = Get<uint64_t>(bytes, kAtEntries);
  h.classes = Get<uint32_t>(bytes, kAtClasses);
  h.finished = Get<uint32_t>(bytes, kAtFinished) == 1;
  h.names_bytes = Get<uint64_t>(bytes, kAtNamesBytes);
  h.source = Get<uint64_t>(bytes, kAtSource);
  h.entries_crc = Get<uint32_t>(bytes, kAtEntriesCrc);
  h.names_crc = Get<uint32_t>(bytes, kAtNamesCrc);
  // Products of these bounds fit 64 bits.
  if (!CheckSide(h.side).ok() || h.entries < 1 || h.entries > kMaxEntries ||
      h.classes < 1 || h.classes > kEntryClass ||
      h.names_bytes > kMaxNamesBytes) {
    return Damaged(absl::StrCat("claims ", h.entries, " pictures of side ",
                                h.side, " in ", h.classes,
                                " classes, which is out of range"));
  }
  return h;
}

absl::StatusOr<std::vector<std::string>> SplitClassNames(std::string_view names,
                                                         uint32_t classes) {
  std::vector<std::string> all;
  while (!names.empty()) {
    const size_t end = names.find('\0');
    if (end == std::string_view::npos) break;
    all.emplace_back(names.substr(0, end));
    names.remove_prefix(end + 1);
  }
  if (!names.empty() || all.size() != classes) {
    return Damaged(
        absl::StrCat("names ", all.size(), " classes instead of ", classes));
  }
  return all;
}

absl::StatusOr<ImageCache> ImageCache::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path,
                            " cannot be opened; make it with: gossamer "
                            "data build --out ",
                            path));
  }
  const absl::Cleanup close = [fd] { ::close(fd); };
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is no file; build one of a folder of pictures with: gossamer "
        "data build --from ",
        path, " --out FILE --resolution N"));
  }
  std::array<std::byte, kHeaderEnd> head = {};
  const ssize_t got = ::pread(fd, head.data(), head.size(), 0);
  const auto header = ImageCacheHeader::Parse(
      std::span(head).first(static_cast<size_t>(std::max<ssize_t>(got, 0))));
  if (!header.ok()) return InFile(path, header.status());
  if (!header->finished) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        " is of an unfinished build; run the same gossamer data build "
        "again, which goes on with it"));
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size != header->file_bytes()) {
    return absl::DataLossError(absl::StrCat(
        path, " has ", size, " bytes instead of ", header->file_bytes(), " (",
        header->entries, " pictures of side ", header->side,
        "); it was cut, or bytes were added"));
  }
  void* const mapped =
      ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (mapped == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path, ": mapping ", size, " bytes"));
  }
  // Batches are drawn at random: pages read ahead of a fault would be read in
  // vain.  Prefetch() asks for those of a picture.
  ::madvise(mapped, size, MADV_RANDOM);
  ImageCache cache({static_cast<const std::byte*>(mapped), size}, *header);
  const absl::Status status = cache.CheckTables();
  if (!status.ok()) return InFile(path, status);
  return cache;
}

ImageCache::ImageCache(ImageCache&& other) noexcept
    : file_(std::exchange(other.file_, {})),
      header_(other.header_),
      class_names_(std::move(other.class_names_)) {}

ImageCache::~ImageCache() {
  if (file_.empty()) return;
  ::munmap(const_cast<std::byte*>(file_.data()), file_.size());
}

absl::Status ImageCache::CheckTables() {
  const auto names = file_.subspan(header_.names_at(), header_.names_bytes);
  const auto entries = file_.subspan(
      ImageCacheHeader::kBytes, header_.names_at() - ImageCacheHeader::kBytes);
  if (Crc32c(names) != header_.names_crc ||
      Crc32c(entries) != header_.entries_crc) {
    return Damaged("has a damaged table: its checksum differs");
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      class_names_,
      SplitClassNames(
          {reinterpret_cast<const char*>(names.data()), names.size()},
          header_.classes));
  for (size_t i = 0; i < size(); ++i) {
    if ((entry(i).word & kEntryDone) == 0 ||
        (entry(i).word & kEntryClass) >= header_.classes) {
      return Damaged(absl::StrCat("has a wrong entry for picture ", i));
    }
  }
  return absl::OkStatus();
}

ImageEntry ImageCache::entry(size_t i) const {
  const size_t at = ImageCacheHeader::kBytes + sizeof(ImageEntry) * i;
  return {Get<uint32_t>(file_, at), Get<uint32_t>(file_, at + 4)};
}

std::span<const uint8_t> ImageCache::image(size_t i) const {
  const auto bytes = file_.subspan(
      header_.pixels_at() + i * header_.image_bytes(), header_.image_bytes());
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

void ImageCache::Prefetch(size_t i) const {
  // The mapping begins at a page, so offsets are aligned as addresses are.
  constexpr uint64_t kPage = 4096;
  const uint64_t at = header_.pixels_at() + i * header_.image_bytes();
  const uint64_t begin = at / kPage * kPage;
  ::madvise(const_cast<std::byte*>(file_.data()) + begin,
            at + header_.image_bytes() - begin, MADV_WILLNEED);
}

bool ImageCache::whole(size_t i) const {
  return Crc32c(std::as_bytes(image(i))) == entry(i).crc;
}

}  // namespace gossamer
