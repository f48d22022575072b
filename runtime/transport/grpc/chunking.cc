#include "runtime/transport/grpc/chunking.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"

namespace gossamer {
namespace {

constexpr uint8_t kFirst = 1;
constexpr uint8_t kLast = 2;
constexpr size_t kCrcOffset = 8;
// The values of Channel that the newest version has.
constexpr uint8_t kChannels = 6;

// The bytes that are copied and checked at a time.  A block stays in the L1
// cache between the copy and the checksum.
constexpr size_t kBlock = 12 << 10;

// Returns the checksum of a header, which the payload's then extends.
uint32_t HeaderCrc(std::span<const std::byte> header) {
  return ExtendCrc32c(Crc32c(header.first(kCrcOffset)),
                      header.subspan(kChunkHeaderBytes));
}

// Reads consecutive pieces as one stretch of bytes.
class PieceReader {
 public:
  explicit PieceReader(std::span<const std::span<const std::byte>> pieces)
      : pieces_(pieces) {
    for (std::span<const std::byte> piece : pieces) left_ += piece.size();
  }
  size_t left() const { return left_; }

  // Returns the next bytes that lie together, at most `n`; not empty if left()
  // > 0.
  std::span<const std::byte> Take(size_t n) {
    while (offset_ == pieces_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
    const auto part = pieces_[index_].subspan(
        offset_, std::min(n, pieces_[index_].size() - offset_));
    offset_ += part.size();
    left_ -= part.size();
    return part;
  }

  // Copies min(out.size(), left()) bytes and adds them to `crc`.  It works
  // block by block, so that each byte is read from memory once.
  void Copy(std::span<std::byte> out, uint32_t* crc) {
    while (!out.empty() && left_ > 0) {
      const auto part = Take(std::min(out.size(), kBlock));
      std::memcpy(out.data(), part.data(), part.size());
      if (crc != nullptr) *crc = ExtendCrc32c(*crc, part);
      out = out.subspan(part.size());
    }
  }

 private:
  std::span<const std::span<const std::byte>> pieces_;
  size_t index_ = 0;
  size_t offset_ = 0;
  size_t left_ = 0;
};

}  // namespace

FrameChunker::FrameChunker(Channel channel, Frame frame, size_t chunk_bytes,
                           size_t parts)
    : channel_(channel),
      frame_(std::move(frame)),
      chunk_bytes_(chunk_bytes),
      parts_(parts) {}

Chunk FrameChunker::Next() {
  Chunk chunk;
  // The first chunk is small: the receiver times a frame from its first chunk
  // on, and most of the body should be in that time.
  const size_t most =
      started_ ? chunk_bytes_ : std::min(chunk_bytes_, kFirstBodyBytes);
  chunk.body = frame_.body.bytes().subspan(
      sent_, std::min(most, frame_.body.size() - sent_));
  if (!started_) chunk.head = frame_.head.bytes();
  sent_ += chunk.body.size();
  const bool last = sent_ == frame_.body.size();
  // A frame without a body is one chunk, first and last at once.
  const uint8_t flags =
      static_cast<uint8_t>((started_ ? 0 : kFirst) | (last ? kLast : 0));
  const std::span<std::byte> header(chunk.header_bytes);
  Put(header, 0, static_cast<uint8_t>(channel_));
  Put(header, 1, flags);
  Put(header, 2, static_cast<uint16_t>(parts_));
  Put(header, 4, static_cast<uint32_t>(chunk.head.size() + chunk.body.size()));
  chunk.header_size = kChunkHeaderBytes;
  if (!started_) {
    Put(header, 12, static_cast<uint32_t>(frame_.head.size()));
    Put(header, 16, static_cast<uint64_t>(frame_.body.size()));
    chunk.header_size = kFirstChunkHeaderBytes;
  }
  uint32_t crc = HeaderCrc(chunk.header());
  crc = ExtendCrc32c(ExtendCrc32c(crc, chunk.head), chunk.body);
  // The checksum covers the header, too: a damaged length would make the
  // receiver wait for bytes that never come.
  Put(header, kCrcOffset, crc);
  started_ = true;
  return chunk;
}

struct FrameAssembler::Header {
  uint8_t channel;
  uint8_t flags;
  uint16_t parts;
  uint32_t length;
  uint32_t crc;
  uint32_t head_size = 0;
  uint64_t body_size = 0;
};

absl::Status FrameAssembler::Begin(const Header& header) {
  // The limits are checked before anything is allocated: the sizes are the
  // sender's claim.
  if (header.head_size > kMaxHeadBytes || header.body_size > max_body_bytes_) {
    return absl::DataLossError(absl::StrFormat(
        "a frame of %d + %d bytes is over the limit of %d + %d; if it is "
        "meant, raise max_body_bytes at this end",
        header.head_size, header.body_size, kMaxHeadBytes, max_body_bytes_));
  }
  // The frame is charged as much as it costs while it waits for the parts of
  // other lanes.
  const size_t bytes = kHeldOverhead + header.head_size + header.body_size;
  if (!share_.Take(bytes)) {
    lacks_ = bytes;
    const ByteBudget& all = share_.budget();
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a frame of %d bytes, and %d of the %d that all connections may hold "
        "are in use; if they are meant, raise max_bytes_in_flight at this end",
        bytes, all.used(), all.most()));
  }
  // The pool gives buffers of earlier frames again: fresh pages for every
  // payload would cost more than the copy into them.
  std::shared_ptr<std::byte[]> body = pool_->TryGet(header.body_size);
  if (body == nullptr) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a frame of %d bytes, and this machine has no memory for it",
        header.body_size));
  }
  in_frame_ = true;
  channel_ = static_cast<Channel>(header.channel);
  parts_ = header.parts;
  head_.resize(header.head_size);
  body_size_ = header.body_size;
  body_ = std::move(body);
  filled_ = 0;
  return absl::OkStatus();
}

void FrameAssembler::Drop() {
  in_frame_ = false;
  body_ = nullptr;
  share_.Clear();
}

absl::Status FrameAssembler::Add(
    std::span<const std::span<const std::byte>> pieces,
    std::optional<ReceivedFrame>* complete) {
  complete->reset();
  lacks_ = 0;
  PieceReader reader(pieces);
  std::array<std::byte, kFirstChunkHeaderBytes> bytes;
  if (reader.left() < kChunkHeaderBytes) {
    return absl::DataLossError("a chunk is shorter than its header");
  }
  reader.Copy(std::span(bytes).first(kChunkHeaderBytes), nullptr);
  Header header{.channel = Get<uint8_t>(bytes, 0),
                .flags = Get<uint8_t>(bytes, 1),
                .parts = Get<uint16_t>(bytes, 2),
                .length = Get<uint32_t>(bytes, 4),
                .crc = Get<uint32_t>(bytes, kCrcOffset)};
  size_t header_size = kChunkHeaderBytes;
  const bool first = header.flags & kFirst;
  // All of the header is checked before any of it is believed: the bytes may be
  // anybody's.
  if (header.channel >= kChannels || header.flags > (kFirst | kLast) ||
      // A first chunk within a frame, and a further chunk without one, are as
      // wrong as an unknown channel: chunks of a stream never mix.
      header.parts > kMaxParts || first == in_frame_) {
    return absl::DataLossError("a chunk's header is not one of this protocol");
  }
  if (first) {
    if (reader.left() < kFirstChunkHeaderBytes - kChunkHeaderBytes) {
      return absl::DataLossError("a first chunk is shorter than its header");
    }
    reader.Copy(std::span(bytes).subspan(kChunkHeaderBytes), nullptr);
    header_size = kFirstChunkHeaderBytes;
    header.head_size = Get<uint32_t>(bytes, 12);
    header.body_size = Get<uint64_t>(bytes, 16);
    if (absl::Status begun = Begin(header); !begun.ok()) return begun;
  } else if (header.channel != static_cast<uint8_t>(channel_) ||
             header.parts != parts_) {
    return absl::DataLossError("a frame changes its channel or its parts");
  }
  const size_t missing = head_.size() + body_size_ - filled_;
  // The last chunk is the one that completes the sizes of the first, and no
  // other.
  const bool last = header.flags & kLast;
  // A chunk without bytes would bring the frame no nearer to its end, and a
  // sender could hold its place for ever.
  if (reader.left() != header.length || header.length > missing ||
      last != (header.length == missing) || (header.length == 0 && !last)) {
    return absl::DataLossError(absl::StrFormat(
        "a chunk declares %d bytes, holds %d, and %d are missing",
        header.length, reader.left(), missing));
  }
  uint32_t crc = HeaderCrc(std::span(bytes).first(header_size));
  if (filled_ < head_.size()) {
    reader.Copy(std::span(head_).subspan(filled_), &crc);
  }
  const size_t body_at = filled_ > head_.size() ? filled_ - head_.size() : 0;
  filled_ += header.length;
  reader.Copy(std::span(body_.get(), body_size_).subspan(body_at), &crc);
  // The bytes are already in place, but nobody has seen them: a frame is passed
  // on only when its last chunk has been checked.
  if (crc != header.crc) {
    return absl::DataLossError("a chunk's checksum does not match");
  }
  if (last) {
    in_frame_ = false;
    // From here on the frame is its consumer's; the budget is about what is
    // incomplete.
    share_.Clear();
    const std::span<const std::byte> body(body_.get(), body_size_);
    *complete =
        ReceivedFrame{channel_,
                      Frame{SharedBytes::FromVector(std::move(head_)),
                            SharedBytes(body, std::exchange(body_, nullptr))},
                      parts_};
    head_.clear();
  }
  return absl::OkStatus();
}

}  // namespace gossamer
