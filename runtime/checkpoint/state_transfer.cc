#include "runtime/checkpoint/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/sha256.h"

namespace gossamer {
namespace {

// Heads, all numbers little-endian:
//   ask    u8 0
//   offer  u8 1, u64 number, u64 bytes, 32 of SHA-256
//   get    u8 2, u64 number, u32 chunk
//   chunk  u8 3, u64 number, u32 chunk, u32 crc; the body is the chunk
enum class Kind : uint8_t { kAsk = 0, kOffer = 1, kGet = 2, kChunk = 3 };
constexpr size_t kHashBytes = 32;
constexpr size_t kAskBytes = 1, kOfferBytes = 17 + kHashBytes;
constexpr size_t kGetBytes = 13, kChunkBytes = 17;

// The chunks that are asked for at a time.  The most are what a link of 0.65
// Gbit/s holds at 200 ms.
constexpr size_t kMinUnderWay = 4, kMaxUnderWay = 64;
// Chunks that take longer than this many times the fastest, and the jitter,
// wait for each other in a queue on the way, and payloads of the training wait
// with them.
constexpr int kQueueing = 2;
constexpr absl::Duration kChunkJitter = absl::Milliseconds(20);
// A chunk that is lost comes no more by itself; a second is more than a chunk
// takes on a link that is worth using.
constexpr absl::Duration kAskAgain = absl::Seconds(1);
// A member has a state to offer between two of its steps, which may be long.
constexpr absl::Duration kToOffer = absl::Minutes(1);
// A link that carries less than this would need minutes for the payloads of one
// round.  A donor that sends a chunk now and then is given up, too: it would
// keep the joiner out for ever.
constexpr absl::Duration kToGive = absl::Minutes(1);
constexpr double kMinBytesPerSecond = 256 << 10;
// A donor that keeps forgetting what it has offered would hold the joiner up
// for ever.
constexpr int kMaxOffers = 4;
// The time after which a frozen state that nobody reads from, and a member that
// gives no chunk, are given up.
constexpr absl::Duration kForget = absl::Seconds(30);
// The longest time for which a frozen state is read: the fleet has moved on by
// then.
constexpr absl::Duration kTooOld = absl::Minutes(10);
// The part of the whole limit within which a large state has to come: other
// states, and the admission, need the rest.
constexpr double kWellWithin = 0.8;

std::vector<std::byte> Head(Kind kind, size_t size) {
  std::vector<std::byte> head(size);
  Put(std::span(head), 0, static_cast<uint8_t>(kind));
  return head;
}

Frame FrameOf(std::vector<std::byte> head, SharedBytes body = {}) {
  return Frame{SharedBytes::FromVector(std::move(head)), std::move(body)};
}

size_t ChunksOf(size_t bytes) {
  return (bytes + kStateChunkBytes - 1) / kStateChunkBytes;
}

bool Is(std::span<const std::byte> head, Kind kind, size_t size) {
  return head.size() == size &&
         Get<uint8_t>(head, 0) == static_cast<uint8_t>(kind);
}

}  // namespace

void StateDonor::Serve(std::set<PeerId> joiners) {
  joiners_ = std::move(joiners);
  // The service has admitted those, or given them up.
  std::erase_if(asking_, [this](PeerId p) { return !joiners_.contains(p); });
}

void StateDonor::OnFrame(PeerId peer, const Frame& frame, absl::Time now) {
  // The service names the joiners: no other peer makes this one copy gigabytes.
  if (!joiners_.contains(peer)) return;
  const std::span<const std::byte> head = frame.head.bytes();
  if (Is(head, Kind::kAsk, kAskBytes)) {
    asking_.insert(peer);
    if (frozen_) Report(peer);
    return;
  }
  if (!Is(head, Kind::kGet, kGetBytes) || !frozen_ ||
      Get<uint64_t>(head, 1) != frozen_->number) {
    return;
  }
  const auto chunk = Get<uint32_t>(head, 9);
  const std::span<const std::byte> all = frozen_->bytes.bytes();
  if (chunk >= ChunksOf(all.size())) return;
  // Reading keeps the state (Tick).
  frozen_->used = now;
  const size_t at = chunk * kStateChunkBytes;
  const std::span<const std::byte> bytes =
      all.subspan(at, std::min(kStateChunkBytes, all.size() - at));
  std::vector<std::byte> answer = Head(Kind::kChunk, kChunkBytes);
  Put(std::span(answer), 1, frozen_->number);
  Put(std::span(answer), 9, chunk);
  Put(std::span(answer), 13, Crc32c(bytes));
  // The chunk refers to the frozen state, which lives as long as a chunk is
  // under way.
  send_(peer, FrameOf(std::move(answer),
                      SharedBytes(bytes, std::make_shared<const SharedBytes>(
                                             frozen_->bytes))));
}

void StateDonor::Offer(std::vector<std::byte> bytes, std::string hash,
                       absl::Time now) {
  preparing_ = false;
  frozen_ = FrozenState{.number = ++taken_,
                        .bytes = SharedBytes::FromVector(std::move(bytes)),
                        .hash = std::move(hash),
                        .taken = now,
                        .used = now};
  for (const PeerId peer : asking_) Report(peer);
}

void StateDonor::Report(PeerId peer) {
  std::vector<std::byte> head = Head(Kind::kOffer, kOfferBytes);
  Put(std::span(head), 1, frozen_->number);
  Put(std::span(head), 9, static_cast<uint64_t>(frozen_->bytes.size()));
  std::memcpy(head.data() + 17, frozen_->hash.data(), kHashBytes);
  send_(peer, FrameOf(std::move(head)));
}

void StateDonor::Tick(absl::Time now) {
  if (!frozen_ || (!joiners_.empty() && now - frozen_->used < kForget &&
                   now - frozen_->taken < kTooOld)) {
    return;
  }
  frozen_.reset();
  asking_.clear();
}

void StateCollector::SetDonors(const std::vector<PeerId>& donors,
                               absl::Time now) {
  now_ = now;
  donors_ = donors;
  // The limit counts from the first donors, not from each new list of them.
  begun_ = std::min(begun_, now);
  if (verifying_) return;
  // The service no longer names it: it has gone, or has become a joiner itself.
  if (download_ && std::ranges::find(donors, download_->from) == donors.end()) {
    Fail(absl::UnavailableError("it is gone"), now);
  }
  if (!download_) Begin(now);
}

void StateCollector::Begin(absl::Time now) {
  download_.reset();
  if (enough_) return;
  const auto next = std::ranges::find_if(
      donors_, [this](PeerId p) { return !over_.contains(p); });
  if (next == donors_.end()) {
    // All have failed: they may be better now.
    if (given() == 0) over_.clear();
    return;
  }
  download_ = Download();
  download_->from = *next;
  download_->begun = download_->progress = now;
  Ask(now);
}

// Asks for a state, or again for the first chunks of it that are missing.
void StateCollector::Ask(absl::Time now) {
  Download& d = *download_;
  d.asked = now;
  if (d.number == 0) {
    send_(d.from, FrameOf(Head(Kind::kAsk, kAskBytes)));
    return;
  }
  // The chunks under way count as lost; one that still comes is taken all the
  // same.
  d.under_way.clear();
  d.window = kMinUnderWay;
  d.next = 0;
  AskForChunks(now);
}

void StateCollector::AskForChunks(absl::Time now) {
  Download& d = *download_;
  for (; d.under_way.size() < d.window && d.next < d.have.size(); ++d.next) {
    if (d.have[d.next]) continue;
    d.under_way[d.next] = now;
    std::vector<std::byte> head = Head(Kind::kGet, kGetBytes);
    Put(std::span(head), 1, d.number);
    Put(std::span(head), 9, static_cast<uint32_t>(d.next));
    send_(d.from, FrameOf(std::move(head)));
  }
}

void StateCollector::OnFrame(PeerId peer, const Frame& frame, absl::Time now) {
  now_ = now;
  // One donor gives at a time: that takes memory for one download, and a slow
  // way is not shared by several.
  if (!download_ || verifying_ || peer != download_->from) return;
  const std::span<const std::byte> head = frame.head.bytes();
  if (Is(head, Kind::kOffer, kOfferBytes)) {
    const absl::Status status = OnOffer(head, now);
    if (!status.ok()) Fail(status, now);
  } else if (Is(head, Kind::kChunk, kChunkBytes)) {
    OnChunk(frame, now);
  }
}

absl::Status StateCollector::OnOffer(std::span<const std::byte> head,
                                     absl::Time now) {
  Download& d = *download_;
  const auto number = Get<uint64_t>(head, 1);
  const auto size = Get<uint64_t>(head, 9);
  if (number == d.number) return absl::OkStatus();
  // The size is the donor's claim, and memory is allocated by it.
  if (size == 0 || size > max_bytes_) {
    return absl::DataLossError(absl::StrCat("its state of ", size,
                                            " bytes cannot be: at most ",
                                            max_bytes_, " are this run's"));
  }
  // It offers another one if it has forgotten the first.
  if (++d.offers > kMaxOffers) {
    return absl::DataLossError(
        absl::StrCat("it has offered ", d.offers, " states and given none"));
  }
  if (d.number == 0) d.begun = now;
  // Another state is another moment of training: chunks of two do not go
  // together.
  d.number = number;
  d.hash.assign(reinterpret_cast<const char*>(head.data() + 17), kHashBytes);
  d.size = size;
  d.bytes.assign(size, std::byte{0});
  d.missing = ChunksOf(size);
  d.have.assign(d.missing, false);
  d.progress = now;
  Ask(now);
  return absl::OkStatus();
}

void StateCollector::OnChunk(const Frame& frame, absl::Time now) {
  Download& d = *download_;
  const std::span<const std::byte> head = frame.head.bytes();
  const std::span<const std::byte> body = frame.body.bytes();
  const auto chunk = Get<uint32_t>(head, 9);
  // A chunk of an earlier offer, or one that came twice, is dropped.
  if (Get<uint64_t>(head, 1) != d.number || chunk >= d.have.size() ||
      d.have[chunk]) {
    return;
  }
  const size_t at = chunk * kStateChunkBytes;
  if (body.size() != std::min(kStateChunkBytes, d.bytes.size() - at) ||
      Crc32c(body) != Get<uint32_t>(head, 13)) {
    return;  // asked for again, as what got lost, once nothing comes any more
  }
  std::memcpy(d.bytes.data() + at, body.data(), body.size());
  d.have[chunk] = true;
  d.progress = now;
  if (--d.missing == 0) {
    Complete();
    return;
  }
  const auto asked = d.under_way.find(chunk);
  if (asked != d.under_way.end()) {
    const absl::Duration took = now - asked->second;
    d.under_way.erase(asked);
    // The window follows the delay like TCP Vegas: one more chunk while none
    // waits in a queue, one less as soon as they do.
    d.fastest = std::min(d.fastest, took);
    d.window = took <= kQueueing * d.fastest + kChunkJitter
                   ? std::min(d.window + 1, kMaxUnderWay)
                   : std::max(d.window - 1, kMinUnderWay);
  }
  AskForChunks(now);
}

void StateCollector::Complete() {
  const auto whole = std::make_shared<Whole>();
  // The bytes leave this object for the compute engine, and still count.
  verified_ = held();
  whole->bytes = std::move(download_->bytes);
  whole->hash = download_->hash;
  whole->check = check_;
  // The median is computed there, too: each takes a pass over all parameters.
  whole->median = std::move(median_);
  verifying_ = true;
  compute_([whole] { whole->Verify(); },
           [this, whole, alive = std::weak_ptr<bool>(alive_)] {
             if (!alive.expired()) OnVerified(*whole);
           });
}

void StateCollector::Whole::Verify() {
  status = [this]() -> absl::Status {
    if (Sha256(bytes) != hash) {
      return absl::DataLossError("its state is not what it offered");
    }
    GOSSAMER_ASSIGN_OR_RETURN(Checkpoint state, DecodeState(bytes));
    GOSSAMER_RETURN_IF_ERROR(check(state));
    return median.Add(std::move(state));
  }();
}

void StateCollector::OnVerified(Whole& whole) {
  verifying_ = false;
  median_ = std::move(whole.median);
  given_ = median_.given();
  // The state is not counted, and the next donor is asked.
  if (!whole.status.ok()) {
    Fail(whole.status, now_);
    return;
  }
  if (given_ == StateMedian::kMax) enough_ = true;
  // Each donor gives once: a second state of one member would outvote an honest
  // one.
  over_.insert(download_->from);
  Begin(now_);
}

void StateCollector::Fail(const absl::Status& why, absl::Time now) {
  failures_.push_back(
      absl::StrCat("peer ", download_->from.value,
                   " gave no state: ", std::string(why.message())));
  over_.insert(download_->from);
  Begin(now);
}

// Large states over slow ways take most of the whole limit; who will not be
// done by then, at the pace so far, has a third.
absl::Duration StateCollector::LimitOf(const Download& d,
                                       absl::Time now) const {
  const double chunks = static_cast<double>(d.have.size());
  const double had = chunks - static_cast<double>(d.missing);
  const bool in_time = had > 0 && (chunks / had) * (now - d.begun) <
                                      kWellWithin * limit_ - (d.begun - begun_);
  const absl::Duration least =
      kToGive + absl::Seconds(static_cast<double>(d.size) / kMinBytesPerSecond);
  return in_time ? least : std::min(limit_ / 3, least);
}

void StateCollector::Tick(absl::Time now) {
  now_ = now;
  // A peer that has one state need not miss its admission for the sake of
  // three.
  if (given() > 0 && now - begun_ > limit_ / 2) {
    enough_ = true;
    if (!verifying_) download_.reset();
  }
  if (verifying_) return;
  if (!download_) {
    Begin(now);
    return;
  }
  const bool offered = download_->number != 0;
  if (now - download_->progress > (offered ? kForget : kToOffer)) {
    Fail(absl::DeadlineExceededError("no word of it for a while"), now);
  } else if (const absl::Duration limit = LimitOf(*download_, now);
             offered && now - download_->begun > limit) {
    const size_t had = download_->have.size() - download_->missing;
    Fail(absl::DeadlineExceededError(absl::StrCat(
             "it took more than ", absl::FormatDuration(limit), " and gave ",
             had, " of ", download_->have.size(), " chunks")),
         now);
  } else if (now - std::max(download_->asked, download_->progress) >
             kAskAgain) {
    Ask(now);
  }
}

bool StateCollector::done() const {
  const bool all = !donors_.empty() &&
                   std::ranges::all_of(
                       donors_, [this](PeerId p) { return over_.contains(p); });
  return given() > 0 && !download_ && (enough_ || all);
}

size_t StateCollector::held() const {
  if (verifying_) return verified_;
  return (download_ ? download_->bytes.size() : 0) + median_.held();
}

Checkpoint StateCollector::Take() { return median_.Take(); }

}  // namespace gossamer
