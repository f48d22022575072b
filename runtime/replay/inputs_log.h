// What a peer heard of its neighbours, kept in a file, so that the peer can be
// run again by itself.
//
// Little-endian.  A head, then a record per exchange in the order in which
// exchanges were complete:
//
//   0 magic "GSIN"  4 version  8 peer  16 layout fingerprint
//   24 length of the view  28 CRC-32C of the head and the view  32 view
//
//   0 CRC-32C of the rest, payload included  4 kind  5 wire format  6 flags
//   8 peer  16 exchange  24 c (float32)  28 CRC-32C of what this end sent
//   32 length of the payload  36 payload
//
// Bit 0 of `flags`: the other end sent a payload; bit 1: this end did.  What a
// crash cut off at the end is left out.  Knows nothing of how a run is
// repeated.

#ifndef GOSSAMER_RUNTIME_REPLAY_INPUTS_LOG_H_
#define GOSSAMER_RUNTIME_REPLAY_INPUTS_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "algorithms/edge/codec_side.h"
#include "topology/view.h"

namespace gossamer {

// Writes while the peer trains; an observer of its edges.  All on the loop.
class InputsWriter {
 public:
  struct Head {
    PeerId self;
    uint64_t layout = 0;              // fingerprint
    std::function<View()> view = {};  // asked at the first exchange
  };
  // Makes `path` anew.  `on_problem` is called once, when a write fails: what
  // follows is not kept.
  static absl::StatusOr<std::unique_ptr<InputsWriter>> Open(
      const std::string& path, Head head,
      std::function<void(const absl::Status&)> on_problem);
  ~InputsWriter();
  InputsWriter(const InputsWriter&) = delete;
  InputsWriter& operator=(const InputsWriter&) = delete;

  // Of the edge to `peer`; lives as long as this.
  CorrectionObserver* Of(PeerId peer);
  // The run has ended before `round`, with these parameters.
  void End(uint64_t round, std::span<const float> x);

 private:
  class Observer;
  InputsWriter(int fd, Head head,
               std::function<void(const absl::Status&)> on_problem);
  void WriteExchange(PeerId peer, ExchangeId id, const EdgeMessage* mine,
                     const EdgeMessage* theirs);
  // What follows cannot be repeated.
  void WriteBreak(PeerId peer);
  void Write(std::span<const std::byte> head, std::span<const std::byte> body);

  int fd_;  // -1: not kept any more
  const Head head_;
  const std::function<void(const absl::Status&)> on_problem_;
  bool begun_ = false;
  std::map<PeerId, std::unique_ptr<Observer>> observers_;
};

// Reads: an index in memory, payloads when they are asked for.
class InputsLog {
 public:
  // kNotFound; kDataLoss: this is no such file, or its head is damaged.
  static absl::StatusOr<std::unique_ptr<InputsLog>> Open(
      const std::string& path);
  ~InputsLog();
  InputsLog(const InputsLog&) = delete;
  InputsLog& operator=(const InputsLog&) = delete;

  PeerId self() const { return self_; }
  uint64_t layout() const { return layout_; }
  const View& view() const { return view_; }
  size_t exchanges() const { return exchanges_.size(); }
  // The last round of which an exchange is complete; 0: none.
  uint64_t last_round() const { return last_round_; }

  struct End {
    uint64_t round = 0;       // the run ended before it
    uint32_t parameters = 0;  // CRC-32C
  };
  // Nothing if the run broke off.
  std::optional<End> end() const { return end_; }

  // The first exchange from `id` on that `peer` sent a payload for; 0: none.
  ExchangeId NextFrom(PeerId peer, ExchangeId id) const;
  // That payload.  kDataLoss if the file has changed.
  absl::StatusOr<EdgeMessage> Read(PeerId peer, ExchangeId id) const;
  // CRC-32C of what this end sent for it; nothing if that is not known.
  std::optional<uint32_t> Sent(PeerId peer, ExchangeId id) const;

 private:
  struct Exchange {
    uint64_t at = 0;  // of the record
    uint32_t bytes = 0;
    uint32_t sent = 0;
    float c = 0;
    WireFormat format = WireFormat::kDenseF32;
    uint8_t flags = 0;
  };
  explicit InputsLog(int fd) : fd_(fd) {}
  absl::Status ReadHead(uint64_t size);
  // False at what a crash cut off, and at a break.
  bool ReadRecord(uint64_t& at, uint64_t size);
  bool ReadAt(uint64_t at, std::span<std::byte> out) const;

  const int fd_;
  PeerId self_;
  uint64_t layout_ = 0;
  uint64_t records_at_ = 0;
  View view_;
  std::map<std::pair<PeerId, ExchangeId>, Exchange> exchanges_;
  uint64_t last_round_ = 0;
  std::optional<End> end_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_REPLAY_INPUTS_LOG_H_
