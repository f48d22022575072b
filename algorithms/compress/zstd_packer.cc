#include "algorithms/compress/zstd_packer.h"

// Contexts in memory of the caller's: the library then never allocates.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <cassert>
#include <vector>

namespace gossamer {
namespace {

class ZstdPacker final : public Packer {
 public:
  explicit ZstdPacker(int level)
      : level_(level),
        compress_memory_(Words(ZSTD_estimateCCtxSize(level))),
        decompress_memory_(Words(ZSTD_estimateDCtxSize())),
        compress_(ZSTD_initStaticCCtx(compress_memory_.data(),
                                      8 * compress_memory_.size())),
        decompress_(ZSTD_initStaticDCtx(decompress_memory_.data(),
                                        8 * decompress_memory_.size())) {
    assert(compress_ != nullptr && decompress_ != nullptr);
  }

  size_t Pack(const Encoded& payload, std::span<std::byte> out) override {
    if (payload.bytes.empty()) return 0;
    // The room is one byte less than the payload, so that a frame that saves
    // nothing is an error and the payload travels as it is.
    const size_t size =
        ZSTD_compressCCtx(compress_, out.data(), payload.bytes.size() - 1,
                          payload.bytes.data(), payload.bytes.size(), level_);
    return ZSTD_isError(size) ? 0 : size;
  }

  // One pass into a buffer of fixed size needs no window, whatever the frame
  // asks for, and stops at the buffer's end.
  bool Unpack(WireFormat, std::span<const std::byte> packed,
              std::span<std::byte> payload) override {
    const size_t size =
        ZSTD_decompressDCtx(decompress_, payload.data(), payload.size(),
                            packed.data(), packed.size());
    return !ZSTD_isError(size) && size == payload.size();
  }

 private:
  // The library asks for an alignment of 8.
  static std::vector<uint64_t> Words(size_t bytes) {
    return std::vector<uint64_t>(bytes / 8 + 1);
  }

  const int level_;
  std::vector<uint64_t> compress_memory_, decompress_memory_;
  ZSTD_CCtx* const compress_;
  ZSTD_DCtx* const decompress_;
};

}  // namespace

std::unique_ptr<Packer> MakeZstdPacker(int level) {
  return std::make_unique<ZstdPacker>(level);
}

}  // namespace gossamer
