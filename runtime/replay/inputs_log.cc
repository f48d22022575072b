#include "runtime/replay/inputs_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/parse_message.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

constexpr uint32_t kLogMagic = 0x4E495347;  // "GSIN"
constexpr uint32_t kLogVersion = 1;
constexpr size_t kLogHeadBytes = 32;
constexpr size_t kRecordBytes = 36;
constexpr uint8_t kTheirs = 1;
constexpr uint8_t kMine = 2;

enum class RecordKind : uint8_t { kExchange = 1, kBreak = 2, kEnd = 3 };

using RecordHead = std::array<std::byte, kRecordBytes>;

// Without its checksum.
RecordHead MakeRecord(RecordKind kind, PeerId peer, ExchangeId id) {
  RecordHead head{};
  Put(head, 4, kind);
  Put(head, 8, peer.value);
  Put(head, 16, id);
  return head;
}

uint32_t ChecksumOf(std::span<const std::byte> head,
                    std::span<const std::byte> body) {
  return ExtendCrc32c(Crc32c(head.subspan(4)), body);
}

}  // namespace

class InputsWriter::Observer final : public CorrectionObserver {
 public:
  Observer(InputsWriter* writer, PeerId peer) : writer_(writer), peer_(peer) {}
  void OnCorrection(ExchangeId, const EdgeMessage&, const EdgeMessage&, float,
                    std::span<const float>) override {}
  void OnExchange(ExchangeId id, const EdgeMessage* mine,
                  const EdgeMessage* theirs) override {
    heard_ = true;
    writer_->WriteExchange(peer_, id, mine, theirs);
  }
  // The first is the beginning.
  void OnZero() override {
    if (heard_) writer_->WriteBreak(peer_);
  }

 private:
  InputsWriter* const writer_;
  const PeerId peer_;
  bool heard_ = false;
};

InputsWriter::InputsWriter(int fd, Head head,
                           std::function<void(const absl::Status&)> on_problem)
    : fd_(fd), head_(std::move(head)), on_problem_(std::move(on_problem)) {}

InputsWriter::~InputsWriter() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<InputsWriter>> InputsWriter::Open(
    const std::string& path, Head head,
    std::function<void(const absl::Status&)> on_problem) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                      S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  return std::unique_ptr<InputsWriter>(
      new InputsWriter(fd, std::move(head), std::move(on_problem)));
}

CorrectionObserver* InputsWriter::Of(PeerId peer) {
  auto& observer = observers_[peer];
  if (observer == nullptr) observer = std::make_unique<Observer>(this, peer);
  return observer.get();
}

void InputsWriter::WriteExchange(PeerId peer, ExchangeId id,
                                 const EdgeMessage* mine,
                                 const EdgeMessage* theirs) {
  if (fd_ < 0) return;
  if (!begun_) {
    begun_ = true;
    const std::string view = ToMessage(head_.view()).SerializeAsString();
    const auto bytes = std::as_bytes(std::span(view));
    std::array<std::byte, kLogHeadBytes> head{};
    Put(head, 0, kLogMagic);
    Put(head, 4, kLogVersion);
    Put(head, 8, head_.self.value);
    Put(head, 16, head_.layout);
    Put(head, 24, static_cast<uint32_t>(bytes.size()));
    Put(head, 28, ExtendCrc32c(Crc32c(std::span(head).first(28)), bytes));
    Write(head, bytes);
  }
  RecordHead head = MakeRecord(RecordKind::kExchange, peer, id);
  std::span<const std::byte> body;
  if (mine != nullptr) Put(head, 28, Crc32c(mine->wire().bytes()));
  if (theirs != nullptr) {
    body = theirs->bytes.bytes();
    Put(head, 5, theirs->format);
    Put(head, 24, theirs->c);
  }
  Put(head, 6,
      static_cast<uint8_t>((theirs != nullptr ? kTheirs : 0) |
                           (mine != nullptr ? kMine : 0)));
  Put(head, 32, static_cast<uint32_t>(body.size()));
  Put(head, 0, ChecksumOf(head, body));
  Write(head, body);
}

void InputsWriter::WriteBreak(PeerId peer) {
  RecordHead head = MakeRecord(RecordKind::kBreak, peer, 0);
  Put(head, 0, ChecksumOf(head, {}));
  Write(head, {});
}

void InputsWriter::End(uint64_t round, std::span<const float> x) {
  RecordHead head = MakeRecord(RecordKind::kEnd, {}, MakeExchangeId(round));
  Put(head, 28, Crc32c(std::as_bytes(x)));
  Put(head, 0, ChecksumOf(head, {}));
  if (begun_) Write(head, {});
}

// At once: what a crash leaves is what one wants to look at.
void InputsWriter::Write(std::span<const std::byte> head,
                         std::span<const std::byte> body) {
  if (fd_ < 0) return;
  std::array<iovec, 2> parts = {
      iovec{const_cast<std::byte*>(head.data()), head.size()},
      iovec{const_cast<std::byte*>(body.data()), body.size()}};
  size_t first = 0;
  while (first < parts.size()) {
    const ssize_t n =
        writev(fd_, &parts[first], static_cast<int>(parts.size() - first));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      on_problem_(
          absl::ErrnoToStatus(errno, "what neighbours send is kept no longer"));
      close(std::exchange(fd_, -1));
      return;
    }
    size_t left = static_cast<size_t>(n);
    while (first < parts.size() && left >= parts[first].iov_len) {
      left -= parts[first++].iov_len;
    }
    if (first == parts.size()) return;
    parts[first].iov_base =
        static_cast<std::byte*>(parts[first].iov_base) + left;
    parts[first].iov_len -= left;
  }
}

InputsLog::~InputsLog() { close(fd_); }

absl::StatusOr<std::unique_ptr<InputsLog>> InputsLog::Open(
    const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  std::unique_ptr<InputsLog> log(new InputsLog(fd));
  struct stat about {};
  if (fstat(fd, &about) != 0) return absl::ErrnoToStatus(errno, path);
  const auto size = static_cast<uint64_t>(about.st_size);
  if (const absl::Status head = log->ReadHead(size); !head.ok()) {
    return absl::DataLossError(absl::StrCat(
        path, ": ", head.message(),
        "; gossamer-peer --record writes inputs.bin beside decisions.log"));
  }
  uint64_t at = log->records_at_;
  while (log->ReadRecord(at, size)) {
  }
  return log;
}

absl::Status InputsLog::ReadHead(uint64_t size) {
  std::array<std::byte, kLogHeadBytes> head;
  if (!ReadAt(0, head) || Get<uint32_t>(head, 0) != kLogMagic) {
    return absl::DataLossError("not what a peer heard of its neighbours");
  }
  if (Get<uint32_t>(head, 4) != kLogVersion) {
    return absl::DataLossError(absl::StrCat("version ", Get<uint32_t>(head, 4),
                                            ", this program reads ",
                                            kLogVersion));
  }
  const uint32_t length = Get<uint32_t>(head, 24);
  if (length > kMaxAnswerBytes || length > size - kLogHeadBytes) {
    return absl::DataLossError("its head is cut off");
  }
  std::vector<std::byte> bytes(length);
  wire::ViewMessage view;
  if (!ReadAt(kLogHeadBytes, bytes) ||
      Get<uint32_t>(head, 28) !=
          ExtendCrc32c(Crc32c(std::span(head).first(28)), bytes) ||
      !ParseMessage(bytes, view)) {
    return absl::DataLossError("its head is damaged");
  }
  self_ = {Get<uint64_t>(head, 8)};
  layout_ = Get<uint64_t>(head, 16);
  GOSSAMER_ASSIGN_OR_RETURN(view_, FromMessage(view));
  if (!view_.RankOf(self_)) {
    return absl::DataLossError(
        absl::StrCat("peer ", self_.value, " is not in its view"));
  }
  records_at_ = kLogHeadBytes + length;
  return absl::OkStatus();
}

bool InputsLog::ReadRecord(uint64_t& at, uint64_t size) {
  RecordHead head;
  if (size - at < kRecordBytes || !ReadAt(at, head)) return false;
  const uint32_t bytes = Get<uint32_t>(head, 32);
  if (bytes > size - at - kRecordBytes) return false;
  std::vector<std::byte> body(bytes);
  if (!ReadAt(at + kRecordBytes, body) ||
      Get<uint32_t>(head, 0) != ChecksumOf(head, body)) {
    return false;
  }
  const PeerId peer{Get<uint64_t>(head, 8)};
  const ExchangeId id = Get<uint64_t>(head, 16);
  const RecordKind kind = Get<RecordKind>(head, 4);
  if (kind == RecordKind::kEnd) {
    end_ = {.round = RoundOf(id), .parameters = Get<uint32_t>(head, 28)};
  }
  if (kind != RecordKind::kExchange || RoundOf(id) >= kMaxRound) return false;
  exchanges_[{peer, id}] = {.at = at,
                            .bytes = bytes,
                            .sent = Get<uint32_t>(head, 28),
                            .c = Get<float>(head, 24),
                            .format = Get<WireFormat>(head, 5),
                            .flags = Get<uint8_t>(head, 6)};
  last_round_ = std::max(last_round_, RoundOf(id));
  at += kRecordBytes + bytes;
  return true;
}

bool InputsLog::ReadAt(uint64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n =
        pread(fd_, out.data(), out.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
  return true;
}

ExchangeId InputsLog::NextFrom(PeerId peer, ExchangeId id) const {
  for (auto it = exchanges_.lower_bound({peer, id});
       it != exchanges_.end() && it->first.first == peer; ++it) {
    if ((it->second.flags & kTheirs) != 0) return it->first.second;
  }
  return 0;
}

absl::StatusOr<EdgeMessage> InputsLog::Read(PeerId peer, ExchangeId id) const {
  const auto it = exchanges_.find({peer, id});
  if (it == exchanges_.end() || (it->second.flags & kTheirs) == 0) {
    return absl::NotFoundError(absl::StrCat("no payload of peer ", peer.value,
                                            " in round ", RoundOf(id)));
  }
  const Exchange& e = it->second;
  RecordHead head;
  std::vector<std::byte> body(e.bytes);
  if (!ReadAt(e.at, head) || !ReadAt(e.at + kRecordBytes, body) ||
      Get<uint32_t>(head, 0) != ChecksumOf(head, body)) {
    return absl::DataLossError("the file has changed since it was opened");
  }
  return EdgeMessage{.format = e.format,
                     .c = e.c,
                     .bytes = Payload::FromVector(std::move(body))};
}

std::optional<uint32_t> InputsLog::Sent(PeerId peer, ExchangeId id) const {
  const auto it = exchanges_.find({peer, id});
  if (it == exchanges_.end() || (it->second.flags & kMine) == 0) {
    return std::nullopt;
  }
  return it->second.sent;
}

}  // namespace gossamer
