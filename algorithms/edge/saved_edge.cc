#include "algorithms/edge/saved_edge.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"

namespace gossamer {
namespace {

// Raised with every change of the bytes, which tests/golden/wire/saved-edge
// pins; a record of another version is refused.
constexpr uint64_t kVersion = 5;

// Values are written in the order of EncodeSavedEdge without names or padding:
// reader and writer are the two functions at the end of this file.
class Writer {
 public:
  explicit Writer(size_t expected) { bytes_.reserve(expected); }
  template <typename T>
  void Put(T value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
  }
  template <typename T>
  void PutArray(std::span<const T> values) {
    Put<uint64_t>(values.size());
    const auto raw = std::as_bytes(values);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  std::vector<std::byte> Finish() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads zeros after the first value that does not fit, so that its caller asks
// once at the end, and not after each value, whether all was there.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <typename T>
  T Get() {
    T value{};
    if (rest_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> GetArray() {
    const uint64_t n = Get<uint64_t>();
    // The comparison divides, because n · sizeof(T) of a damaged length could
    // overflow.  Memory is asked for only up to the bytes that are there.
    if (n > rest_.size() / sizeof(T)) {
      ok_ = false;
      return {};
    }
    std::vector<T> values(n);
    if (n > 0) std::memcpy(values.data(), rest_.data(), n * sizeof(T));
    rest_ = rest_.subspan(n * sizeof(T));
    return values;
  }
  bool ok() const { return ok_; }
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// More than the numbers beside payloads have, so that the bytes need no second,
// larger memory.
constexpr size_t kOtherBytes = 1024;

template <typename Queue>
size_t SizeOf(const Queue& queue) {
  size_t bytes = 0;
  for (const auto& held : queue) bytes += held.token.bytes.size() + 64;
  return bytes;
}

template <typename Queue>
void PutQueue(Writer& w, const Queue& queue) {
  w.Put<uint64_t>(static_cast<uint64_t>(queue.size()));
  for (const auto& held : queue) {
    w.Put(held.id);
    w.Put(held.prev);
    w.Put(held.token.format);
    w.Put(held.token.c);
    w.PutArray(held.token.bytes.bytes());
  }
}

template <typename Queue>
bool GetQueue(Reader& r, Queue& queue) {
  const uint64_t n = r.Get<uint64_t>();
  // The queue's capacity, which PushBack takes for granted.
  if (n > 2 * kMaxEdgeWindow) return false;
  for (uint64_t i = 0; i < n && r.ok(); ++i) {
    typename Queue::Item held;
    held.id = r.Get<uint64_t>();
    held.prev = r.Get<uint64_t>();
    held.token.format = r.Get<WireFormat>();
    held.token.c = r.Get<float>();
    held.token.bytes = SharedBytes::FromVector(r.GetArray<std::byte>());
    queue.PushBack(std::move(held));
  }
  return r.ok();
}

}  // namespace

std::vector<std::byte> EncodeSavedEdge(const SavedEdge& edge) {
  const ProductionEnd::Record& r = edge.record;
  Writer w(SizeOf(r.mine) + SizeOf(r.theirs) + kOtherBytes);
  for (uint64_t v : {kVersion, r.cut, r.epoch, r.peer_epoch, r.done}) w.Put(v);
  w.Put(r.window);
  w.Put(r.peer_window);
  PutQueue(w, r.mine);
  PutQueue(w, r.theirs);
  w.PutArray(std::span<const char>(edge.codec_state.codec));
  w.Put<uint64_t>(edge.codec_state.progress.size());
  for (const EdgeCodecState::Progress& p : edge.codec_state.progress) {
    w.Put<uint8_t>(p.first);
    w.Put(p.emit_interval);
    w.Put(p.complete_interval);
  }
  return w.Finish();
}

absl::StatusOr<SavedEdge> DecodeSavedEdge(std::span<const std::byte> bytes) {
  Reader in(bytes);
  SavedEdge edge;
  ProductionEnd::Record& r = edge.record;
  const bool version = in.Get<uint64_t>() == kVersion;
  for (uint64_t* v : {&r.cut, &r.epoch, &r.peer_epoch, &r.done}) {
    *v = in.Get<uint64_t>();
  }
  r.window = in.Get<uint8_t>();
  r.peer_window = in.Get<uint8_t>();
  const bool windows = r.window >= 1 && r.window <= kMaxEdgeWindow &&
                       r.peer_window >= 1 && r.peer_window <= kMaxEdgeWindow;
  const bool queues = GetQueue(in, r.mine) && GetQueue(in, r.theirs);
  const std::vector<char> codec = in.GetArray<char>();
  edge.codec_state.codec.assign(codec.begin(), codec.end());
  edge.codec_state.progress.clear();
  const uint64_t parts = in.Get<uint64_t>();
  for (uint64_t i = 0; i < parts && in.ok(); ++i) {
    EdgeCodecState::Progress& p = edge.codec_state.progress.emplace_back();
    p.first = in.Get<uint8_t>() != 0;
    p.emit_interval = in.Get<uint64_t>();
    p.complete_interval = in.Get<uint64_t>();
  }
  // The version is judged after all fields are read, and its message comes
  // first: bytes of another version do not parse either.
  if (!version) {
    return absl::DataLossError(
        "a saved edge of another version: resume with the program that wrote "
        "it");
  }
  if (!windows || !queues || !in.finished()) {
    return absl::DataLossError("the bytes of a saved edge are damaged");
  }
  return edge;
}

}  // namespace gossamer
