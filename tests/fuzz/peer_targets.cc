// Bytes that members send one another beside exchanges: probes of links, states
// for joiners, and reasons of refusals.

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "runtime/base/sha256.h"
#include "runtime/checkpoint/peer_state.h"
#include "runtime/checkpoint/state_transfer.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/neighborhood/refusals.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/fuzz/fuzz.h"
#include "tests/testing/at_once.h"

namespace gossamer::fuzz {
namespace {

bool AllFinite(const Checkpoint& state) {
  for (const auto& [name, values] : state.floats) {
    for (const float v : values) {
      if (!std::isfinite(v)) return false;
    }
  }
  return true;
}

// A prober and another peer that gives any answers: each step is the start of a
// measurement, time that passes, or a frame.
class Probing {
 public:
  explicit Probing(Input& in) : in_(in) {}

  void Step() {
    const uint8_t kind = in_.Byte();
    from_ = kind < 128 ? kOther : kThird;
    sent_ = 0;
    switch (kind % 4) {
      case 0:
        if (from_ == kThird) return prober_.RequestPing(kOther, kThird);
        ++under_way_;
        prober_.Measure(kOther, [this](const auto& m) { End(m); });
        Require(under_way_ == 1, "another measurement ends the one before");
        break;
      case 1:
        loop_.RunFor(absl::Milliseconds(100 * in_.Byte()));
        break;
      default:
        Hear(kind % 4 == 2 ? Copy(in_.TakePiece()) : Answer());
        // A pong ends a ping request and requests the measurement's next
        // answer.
        Require(sent_ <= 2, "a frame is answered by two at most");
    }
  }
  void Finish() {
    loop_.RunFor(LinkProber::kLimit);
    Require(under_way_ == 0, "a measurement ends in time");
  }

 private:
  // Returns an answer to the last request, with the right checksum.
  std::vector<std::byte> Answer() {
    std::vector<std::byte> head = asked_;
    if (head.size() < 36) return head;
    Put<uint32_t>(head, 4, in_.Byte() % 7);
    if (in_.Byte() > 250) Put<uint64_t>(head, 8, in_.Number());
    Put<uint64_t>(head, 16, in_.Number());
    Put<uint64_t>(head, 24, in_.Number());
    Put<uint32_t>(head, 32, Crc32c(Bytes(head).first(32)));
    return head;
  }
  void Hear(std::vector<std::byte> head) {
    const size_t bytes = in_.Number();
    prober_.OnFrame(from_,
                    {.head = SharedBytes::FromVector(std::move(head)),
                     .body = {},
                     .transit = {.bytes = bytes, .took = absl::Seconds(1)}});
  }
  void End(const std::optional<LinkMeasurement>& measured) {
    Require(--under_way_ >= 0, "a measurement ends once");
    if (!measured) return;
    Require(std::isfinite(measured->rtt_seconds) &&
                std::isfinite(measured->bytes_per_second) &&
                measured->rtt_seconds >= 0 && measured->bytes_per_second >= 0,
            "what is measured can be");
  }

  static constexpr PeerId kOther{2}, kThird{3};
  Input& in_;
  VirtualLoop loop_;
  std::vector<std::byte> asked_;
  PeerId from_ = kOther;
  int sent_ = 0;
  int under_way_ = 0;
  LinkProber prober_{&loop_, [this](PeerId, const Frame& frame) {
                       ++sent_;
                       asked_ = Copy(frame.head.bytes());
                       return sent_ % 2 == 1;
                     }};
};

void LinkProbes(Bytes input) {
  Input in(input);
  Probing probing(in);
  while (in.AnotherStep()) probing.Step();
  probing.Finish();
}

void StateBytes(Bytes input) {
  const auto state = DecodeState(input);
  if (!state.ok()) return;
  const auto again = DecodeState(EncodeState(*state));
  Require(again.ok() && again->floats == state->floats &&
              again->bytes == state->bytes &&
              again->counters == state->counters,
          "a state says the same once more");
  // The median of two or three members' states; with three, the third decides.
  for (const int members : {2, 3}) {
    Checkpoint other = *state;
    for (auto& [name, values] : other.floats) {
      for (float& v : values) v = 1 - v;
    }
    StateMedian median;
    Require(median.Add(other).ok(), "the first has any shape");
    Require(median.Add(*state).ok(), "the second is of the first's");
    if (members == 3) Require(median.Add(*state).ok(), "so is the third");
    const Checkpoint taken = median.Take();
    Require(AllFinite(taken), "what lies between finite states is finite");
    Require(members == 2 || taken.floats == state->floats,
            "two that agree outvote the third");
  }
}

// Members that give a state and one that joins.  Their frames wait until they
// are delivered, and any others may come from either side.
class Transfer {
 public:
  explicit Transfer(Input& in) : in_(in) {
    for (const PeerId id : {PeerId{1}, PeerId{2}, PeerId{3}}) {
      auto [donor, made] =
          donors_.try_emplace(id, [this, id](PeerId, Frame frame) {
            return Queue({.to_joiner = true, .member = id, .frame = frame});
          });
      donor->second.Serve({kJoiner});
    }
  }

  bool done() const { return joiner_.done(); }
  void Step() {
    const uint8_t kind = in_.Byte();
    const PeerId member{1 + kind / 8u % 3};
    switch (kind % 8) {
      case 0: {
        std::vector<PeerId> who;
        for (const auto& [id, donor] : donors_) {
          if (kind >> id.value & 4) who.push_back(id);
        }
        joiner_.SetDonors(who, now_);
        break;
      }
      case 1:
        now_ += absl::Seconds(in_.Byte() % 32);
        joiner_.Tick(now_);
        for (auto& [id, donor] : donors_) donor.Tick(now_);
        break;
      case 2:
        Offer(donors_.at(member), /*two_chunks=*/kind > 128);
        break;
      case 3:
        queue_.clear();
        break;
      case 4:
      case 5: {
        Frame frame{.head = SharedBytes::FromVector(Copy(in_.TakePiece())),
                    .body = SharedBytes::FromVector(Copy(in_.TakePiece()))};
        Deliver({.to_joiner = kind % 8 == 4, .member = member, .frame = frame});
        break;
      }
      default:
        for (size_t n = queue_.size(); n > 0; --n) {
          const Sent next = std::move(queue_.front());
          queue_.pop_front();
          Deliver(next);
        }
    }
    // The joiner holds one incoming state and the sum of those that have
    // arrived.
    Require(joiner_.held() <= 2 * kMax, "what a joiner holds is bounded");
  }
  void Finish() {
    const Checkpoint average = joiner_.Take();
    Require(AllFinite(average), "an average is finite");
  }

 private:
  struct Sent {
    bool to_joiner = false;
    PeerId member;
    Frame frame;
  };
  bool Queue(Sent sent) {
    ++sent_;
    queue_.push_back(std::move(sent));
    return true;
  }
  void Offer(StateDonor& donor, bool two_chunks) {
    const Bytes piece = in_.TakePiece();
    std::vector<std::byte> state(two_chunks ? kStateChunkBytes + 1024
                                            : piece.size());
    std::copy_n(piece.begin(), std::min(piece.size(), state.size()),
                state.begin());
    std::string hash = Sha256(state);
    donor.Offer(std::move(state), std::move(hash), now_);
  }
  void Deliver(const Sent& sent) {
    sent_ = 0;
    if (sent.to_joiner) {
      joiner_.OnFrame(sent.member, sent.frame, now_);
    } else {
      donors_.at(sent.member).OnFrame(kJoiner, sent.frame, now_);
    }
    Require(sent_ <= 4, "a frame is answered by a few at most");
  }

  static constexpr PeerId kJoiner{9};
  static constexpr size_t kMax = kStateChunkBytes + 4096;
  Input& in_;
  absl::Time now_ = absl::FromUnixSeconds(1'000);
  std::deque<Sent> queue_;
  int sent_ = 0;
  std::map<PeerId, StateDonor> donors_;
  StateCollector joiner_{
      [this](PeerId member, Frame frame) {
        return Queue({.to_joiner = false, .member = member, .frame = frame});
      },
      AtOnce, kMax, absl::Minutes(10),
      [](const Checkpoint&) { return absl::OkStatus(); }};
};

void StateTransfer(Bytes input) {
  Input in(input);
  Transfer transfer(in);
  while (!transfer.done() && in.AnotherStep()) transfer.Step();
  if (transfer.done()) transfer.Finish();
}

// The other end's reason for a refusal becomes part of a line of a log.
void NoticeText(Bytes input) {
  constexpr size_t kMax = 1024;
  const std::string line = DecodeNotice(SharedBytes::FromVector(Copy(input)));
  Require(line.size() <= kMax, "a notice is short");
  for (const char c : line) {
    Require(c >= ' ' && c <= '~', "a notice neither ends a line nor steers it");
  }
  const std::string again = DecodeNotice(EncodeNotice(AbslText(input)));
  Require(again == line, "what is cut on its way is cut where it is read");
}

}  // namespace

std::span<const Target> PeerTargets() {
  static constexpr Target kTargets[] = {
      {"link-probes", LinkProbes, LinkProber::kLoadBytes},
      {"snapshot", StateBytes},
      {"state-transfer", StateTransfer, 2 * (kStateChunkBytes + 4096)},
      {"notice", NoticeText}};
  return kTargets;
}

}  // namespace gossamer::fuzz
