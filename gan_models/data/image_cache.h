// A data set of pictures of one size in one file, which is read by pages.
//
// The file, all numbers little-endian:
//
//   header     4,096 bytes, see ImageCacheHeader
//   entries    8 bytes for each picture: flags and class, and the CRC-32C of
//              its pixels
//   names      of the classes, each with a zero at its end
//   pixels     from the next multiple of 4,096: planes [3, side, side] of bytes
//              for each entry, also for one that was refused
//
// This header knows nothing of where pictures come from, or of peers.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_CACHE_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

inline constexpr int kMinSide = 8, kMaxSide = 1024;

// Returns kInvalidArgument unless a picture may have this many pixels in a row:
// a multiple of 4 from kMinSide to kMaxSide.
absl::Status CheckSide(uint64_t side);

// The flags of an entry; the class has the bits below.
inline constexpr uint32_t kEntryDone = uint32_t{1} << 31;
inline constexpr uint32_t kEntryRefused = uint32_t{1} << 30;
inline constexpr uint32_t kEntryHeldOut = uint32_t{1} << 29;
inline constexpr uint32_t kEntryClass = (uint32_t{1} << 24) - 1;

struct ImageEntry {
  uint32_t word = 0;  // flags and class; 0: not decoded yet
  uint32_t crc = 0;   // of the pixels
};
static_assert(sizeof(ImageEntry) == 8);

// The first bytes of a file, in numbers, and the places that follow from them.
struct ImageCacheHeader {
  static constexpr size_t kBytes = 4096;
  static constexpr uint32_t kVersion = 1;

  uint32_t side = 0;
  uint64_t entries = 0;  // of all pictures, also refused ones
  uint32_t classes = 0;
  uint64_t names_bytes = 0;
  bool finished = false;     // else the build was interrupted
  uint64_t source = 0;       // hash of the names and settings it was made from
  uint32_t entries_crc = 0;  // of a finished file
  uint32_t names_crc = 0;

  uint64_t image_bytes() const { return uint64_t{3} * side * side; }
  uint64_t names_at() const { return kBytes + sizeof(ImageEntry) * entries; }
  uint64_t pixels_at() const {
    return (names_at() + names_bytes + kBytes - 1) / kBytes * kBytes;
  }
  uint64_t file_bytes() const { return pixels_at() + entries * image_bytes(); }

  std::vector<std::byte> Encode() const;
  // Errors say what is wrong with the bytes, without the file's name.
  // kDataLoss: not such a file, cut, damaged, or of numbers out of range.
  static absl::StatusOr<ImageCacheHeader> Parse(
      std::span<const std::byte> bytes);
};

// A finished file, mapped into memory: pages are read as they are used, and the
// system drops them again where memory is short.  It does not change.
class ImageCache {
 public:
  // Checks the size, header, entries and names, and reads no pixel.
  // Errors: kNotFound, kInvalidArgument (a folder), kFailedPrecondition (an
  // unfinished build), kDataLoss (foreign, cut or damaged).
  static absl::StatusOr<ImageCache> Open(const std::string& path);
  ImageCache(ImageCache&& other) noexcept;
  ImageCache& operator=(ImageCache&&) = delete;
  ~ImageCache();

  int side() const { return static_cast<int>(header_.side); }
  size_t size() const { return header_.entries; }
  uint64_t source() const { return header_.source; }
  std::span<const std::string> class_names() const { return class_names_; }
  // Whether there is a picture `i`: one whose file was damaged is not.
  bool has(size_t i) const { return (entry(i).word & kEntryRefused) == 0; }
  bool held_out(size_t i) const { return (entry(i).word & kEntryHeldOut) != 0; }
  int class_of(size_t i) const {
    return static_cast<int>(entry(i).word & kEntryClass);
  }
  // Planes [3, side, side].
  std::span<const uint8_t> image(size_t i) const;
  // Has the system begin to read the pixels of picture `i`, without waiting.
  void Prefetch(size_t i) const;
  // Compares the pixels with their checksum.
  bool whole(size_t i) const;

 private:
  ImageCache(std::span<const std::byte> file, const ImageCacheHeader& header)
      : file_(file), header_(header) {}
  ImageEntry entry(size_t i) const;
  absl::Status CheckTables();

  std::span<const std::byte> file_;
  ImageCacheHeader header_;
  std::vector<std::string> class_names_;
};

// Splits the names of a file's classes.  kDataLoss: not `classes` of them.
absl::StatusOr<std::vector<std::string>> SplitClassNames(std::string_view names,
                                                         uint32_t classes);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_CACHE_H_
