// The values of the edge protocol: an end's state, frames, records (PROTOCOL.md
// 2, 3 and 6).
//
// Plain data of fixed size; knows nothing of events.

#ifndef GOSSAMER_ALGORITHMS_EDGE_EDGE_STATE_H_
#define GOSSAMER_ALGORITHMS_EDGE_EDGE_STATE_H_

#include <array>
#include <cassert>
#include <cstdint>
#include <string_view>
#include <utility>

#include "algorithms/base/seeded_bug.h"

namespace gossamer {

enum class FrameKind : uint8_t { kHello = 1, kPayload = 2, kSkip = 3 };

enum class Verdict {
  kAccepted,
  kDropped,    // a duplicate, a gap, or another incarnation; no harm
  kViolation,  // the other end breaks the protocol; nothing has changed
};

// The rules of the protocol that a test may break on purpose, to see that the
// search notices.
enum class Rule {
  kRefuseGap,        // drop a frame whose predecessor is missing
  kAckCompleted,     // acknowledge completion, not receipt
  kRise,             // rise above an epoch that the other remembers
  kBasisOnce,        // a basis counts for the first pairing only
  kResend,           // resend retained payloads after a hello
  kRetainUntilDone,  // keep a payload until it is complete here, too
  kResetWhenEmpty,   // reset only with nothing outstanding
  kNonce,            // epochs differ between incarnations
};
// None is broken, but for a bug that is planted on purpose.
struct SoundRules {
  static constexpr std::string_view kNames[] = {
      "accept-over-a-gap", "acknowledge-receipt",
      "never-rise",        "basis-twice",
      "no-resend",         "release-when-acknowledged",
      "reset-any-time",    "no-nonce"};
  static bool Broken(Rule rule) {
    return SeededBug(kNames[static_cast<int>(rule)]);
  }
};

// A payload that an end retains or holds.
template <typename N, typename Token>
struct Held {
  N id = 0;
  N prev = 0;  // the payload before it, 0: none
  Token token{};
};

// A queue of at most kCapacity held payloads, ids rising.
template <typename N, typename Token, int kCapacity>
class HeldQueue {
 public:
  using Item = Held<N, Token>;

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kCapacity; }
  const Item& front() const { return items_[0]; }
  const Item& back() const { return items_[size_ - 1]; }
  const Item* begin() const { return items_.data(); }
  const Item* end() const { return items_.data() + size_; }

  void PushBack(Item item) {
    assert(size_ < kCapacity);
    items_[size_++] = std::move(item);
  }
  void PopFront() {
    for (int i = 1; i < size_; ++i) items_[i - 1] = std::move(items_[i]);
    items_[--size_] = Item{};
  }
  void Clear() {
    while (size_ > 0) items_[--size_] = Item{};
  }
  // The first item with an id of at least `id`, or null.
  const Item* FirstFrom(N id) const {
    for (const Item& item : *this) {
      if (item.id >= id) return &item;
    }
    return nullptr;
  }
  bool Has(N id) const {
    const Item* item = FirstFrom(id);
    return item != nullptr && item->id == id;
  }

 private:
  std::array<Item, kCapacity> items_{};
  uint8_t size_ = 0;
};

template <typename N, typename Token, int kMaxWindow>
struct EdgeState {
  N epoch = 0;       // own half of the incarnation
  N peer_epoch = 0;  // the other's half; 0: not known
  N basis = 0;       // of the sealed record this epoch goes on from; 0: none
  N decided = 1;     // F: first id this end has not decided
  N received = 0;    // R: all ids below are known from the other
  N done = 0;        // C: all exchanges below are complete here
  N peer_done = 0;   // the other's C, as last received
  N last = 0;        // last own payload of this incarnation
  N announced = 0;   // F as last sent over the current incarnation
  HeldQueue<N, Token, 4 * kMaxWindow> mine;  // not known to be done there
  // Received, not done here: 2W, and below `resumed` as many of a record.
  HeldQueue<N, Token, 4 * kMaxWindow> theirs;
  N resumed = 0;       // the cut of the record this epoch goes on from; 0: none
  uint8_t window = 1;  // W of this end
  // Own payloads that may be incomplete now, at most W.
  uint8_t effective_window = 1;
  uint8_t peer_window = 1;  // W of the other, as announced
  bool connected = false;   // there is a connection to send on
  bool ready = false;       // and a hello was received on it
  bool ack_due = false;     // a skip, which acknowledges, is due

  int Incomplete() const { return CountFrom(done); }
  int Unacknowledged() const { return CountFrom(peer_done); }
  // Payloads of the other end that it counts as unacknowledged, at most: it
  // takes all below the cut for done (PROTOCOL.md 6).
  int Waiting() const {
    int n = 0;
    for (const auto& h : theirs) n += h.id >= resumed;
    return n;
  }

 private:
  int CountFrom(N id) const {
    int n = 0;
    for (const auto& h : mine) n += h.id >= id;
    return n;
  }
};

template <typename N, typename Token>
struct EdgeFrame {
  FrameKind kind = FrameKind::kSkip;
  N epoch = 0;
  N peer_epoch = 0;
  N prev = 0;          // payload, skip: the payload before `to`
  N to = 0;            // payload: id + 1; skip: F; hello: R
  N ack = 0;           // C
  N basis = 0;         // hello only
  uint8_t window = 1;  // hello only
  Token token{};       // payload only
};

// An end's side of a fleet-wide cut before id `cut` (PROTOCOL.md 6).
template <typename N, typename Token, int kMaxWindow>
struct EdgeRecord {
  N cut = 0;
  N epoch = 0;
  N peer_epoch = 0;
  N done = 0;
  HeldQueue<N, Token, 2 * kMaxWindow> mine;    // below the cut, not done here
  HeldQueue<N, Token, 2 * kMaxWindow> theirs;  // the same, of the other
  uint8_t window = 1;
  uint8_t peer_window = 1;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_EDGE_EDGE_STATE_H_
