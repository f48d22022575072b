// Writes a file of pictures (image_cache.h) picture by picture, in any order
// and by several threads, so that an interrupted build goes on where it was.
//
// This header knows nothing of decoding, and of sources only their hash.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_CACHE_WRITER_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_CACHE_WRITER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gan_models/data/image_cache.h"

namespace gossamer {

// The unfinished file PATH.partial, which one process at a time writes and
// Publish() renames to PATH.  A picture counts as done only if its entry and
// the checksum of its pixels agree, so an interruption at any moment, of the
// process or of the machine, loses no more than the pictures that are not on
// the disk yet.
class ImageCacheWriter {
 public:
  struct Contents {
    int side = 0;
    std::vector<std::string> class_names;
    std::vector<uint32_t> words;  // the class and kEntryHeldOut of each picture
    uint64_t source = 0;          // hash of what the pictures are made from
  };
  // Begins PATH.partial or goes on with it.
  // Errors: kUnavailable (another process writes it), kFailedPrecondition (it
  // is of another source), kResourceExhausted (not enough room on the disk; how
  // much is needed) and others of the system.
  static absl::StatusOr<std::unique_ptr<ImageCacheWriter>> Open(
      const std::string& path, Contents contents);
  ~ImageCacheWriter();
  ImageCacheWriter(const ImageCacheWriter&) = delete;
  ImageCacheWriter& operator=(const ImageCacheWriter&) = delete;

  // Each of these may be called by any thread, for a picture by one.

  // Whether an earlier build has written picture `i`; reads its pixels into
  // `image`, which has the bytes of one, and compares their checksum.
  absl::StatusOr<bool> IsDone(size_t i, std::span<uint8_t> image);
  // Errors of the system: kResourceExhausted if the disk is full.
  absl::Status Keep(size_t i, std::span<const uint8_t> image);
  // Has no picture `i`; a later build tries it again.
  void Refuse(size_t i);

  // Makes all durable and renames the file.  Needs every picture kept or
  // refused, and is the last call.
  absl::Status Publish();

  const std::string& partial_path() const { return partial_; }

 private:
  ImageCacheWriter(std::string path, Contents contents, int fd);
  absl::Status Begin();
  absl::Status Resume(const ImageCacheHeader& found);
  absl::Status Allocate() const;
  absl::Status WriteAt(uint64_t at, std::span<const std::byte> bytes) const;
  absl::Status Failed(const char* what, int error) const;

  const std::string path_, partial_;
  const Contents contents_;
  const int fd_;
  std::string names_;  // as in the file
  ImageCacheHeader header_;
  std::vector<ImageEntry> entries_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_CACHE_WRITER_H_
