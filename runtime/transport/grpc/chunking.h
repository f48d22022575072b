// Cuts frames into checksummed chunks and puts them together again.
//
// A frame travels as consecutive chunks of one stream, which never mix with
// those of another frame.  The numbers are little-endian:
//
//   chunk      u8 channel, u8 flags, u16 parts, u32 length, u32 crc
//   if first   u32 head bytes, u64 body bytes
//   then       length bytes of head ++ body
//
// `flags` is 1 for the first chunk of a frame, 2 for the last, 3 for both.
// `parts` is 0, or the number of frames on as many lanes that make one frame
// (lanes.h).  `length` counts the bytes of head ++ body in this chunk; `crc` is
// the CRC-32C of everything but itself.  This header knows nothing of streams
// or of gRPC.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_CHUNKING_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_CHUNKING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/buffer_pool.h"
#include "runtime/transport/grpc/byte_budget.h"
#include "runtime/transport/transport.h"

namespace gossamer {

inline constexpr size_t kChunkHeaderBytes = 12;
inline constexpr size_t kFirstChunkHeaderBytes = kChunkHeaderBytes + 12;
// The most bytes of the body in the first chunk.  The bytes after it are timed
// (Transit), and they should be most of a body.
inline constexpr size_t kFirstBodyBytes = 64 << 10;
inline constexpr size_t kMaxParts = 8;
// The most bytes of a stream's message beyond the payload of its chunk.
inline constexpr size_t kMaxChunkOverhead =
    kFirstChunkHeaderBytes + kMaxHeadBytes;

// Spans into a frame, valid as long as the frame is; concatenated they are the
// chunk's bytes.
struct Chunk {
  std::array<std::byte, kFirstChunkHeaderBytes> header_bytes;
  size_t header_size = 0;
  std::span<const std::byte> head;  // in the first chunk only
  std::span<const std::byte> body;

  std::span<const std::byte> header() const {
    return std::span(header_bytes).first(header_size);
  }
};

// Cuts one frame into chunks.
class FrameChunker {
 public:
  // Every chunk holds `chunk_bytes` > 0 bytes of the body, the first one at
  // most kFirstBodyBytes, the last one the rest.
  FrameChunker(Channel channel, Frame frame, size_t chunk_bytes,
               size_t parts = 0);

  // Returns the next chunk.  Called until done().
  Chunk Next();
  bool done() const { return started_ && sent_ == frame_.body.size(); }
  const Frame& frame() const { return frame_; }

 private:
  Channel channel_;
  Frame frame_;
  size_t chunk_bytes_;
  size_t parts_;
  size_t sent_ = 0;  // bytes of the body
  bool started_ = false;
};

// A frame, the channel that it came on, and the number of parts that it is one
// of (0: it is whole).
struct ReceivedFrame {
  Channel channel = Channel::kEdge;
  Frame frame;
  size_t parts = 0;
  absl::Time came = {};
};

// The cost of a waiting frame beside its bytes: the objects around it.  It
// keeps a sender from piling up frames without bytes for nothing.
inline constexpr size_t kHeldOverhead = 256;
inline size_t HeldBytes(const Frame& frame) {
  return kHeldOverhead + frame.head.size() + frame.body.size();
}

// Puts the chunks of one stream together.  It holds at most one frame of at
// most `max_body_bytes`, whatever bytes it is fed.
class FrameAssembler {
 public:
  // The bytes of a frame come out of `budget` until it is complete.
  explicit FrameAssembler(size_t max_body_bytes,
                          std::shared_ptr<ByteBudget> budget =
                              std::make_shared<ByteBudget>(SIZE_MAX))
      : max_body_bytes_(max_body_bytes), share_(std::move(budget)) {}

  // Takes one chunk, given as consecutive pieces, and sets `complete` if it was
  // the last chunk of a frame.  Returns kDataLoss for bytes that no
  // FrameChunker made or that were damaged on the way, kResourceExhausted if
  // this machine has no memory for the frame; the assembler is then of no
  // further use.  Returns kResourceExhausted also if the budget has too little
  // left: lacks() then says for how many bytes, and the caller may give the
  // same chunk again.
  absl::Status Add(std::span<const std::span<const std::byte>> pieces,
                   std::optional<ReceivedFrame>* complete);
  size_t lacks() const { return lacks_; }
  // Bytes that are taken out of the budget.
  size_t held() const { return share_.held(); }
  // Gives up an incomplete frame and its bytes: no further chunk comes.
  void Drop();
  // Bytes that have come of the incomplete frame; 0 between frames.
  size_t filled() const { return in_frame_ ? filled_ : 0; }
  // Bytes that the incomplete frame has in all; 0 between frames.
  size_t expected() const { return in_frame_ ? head_.size() + body_size_ : 0; }

 private:
  struct Header;
  absl::Status Begin(const Header& header);

  const size_t max_body_bytes_;
  ByteBudget::Share share_;
  size_t lacks_ = 0;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  bool in_frame_ = false;
  Channel channel_ = Channel::kEdge;
  size_t parts_ = 0;
  std::vector<std::byte> head_;
  std::shared_ptr<std::byte[]> body_;
  size_t body_size_ = 0;
  size_t filled_ = 0;  // bytes of head and body
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CHUNKING_H_
