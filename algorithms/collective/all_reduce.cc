#include "algorithms/collective/all_reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kRing = "ring";
constexpr std::string_view kRecursiveDoubling = "recursive-doubling";

// x += the floats in `bytes`, which need not be aligned.
void AddBytes(const Kernels& kernels, std::span<const std::byte> bytes,
              std::span<float> x) {
  std::array<float, 1024> block;
  for (size_t at = 0; at < x.size(); at += block.size()) {
    const size_t n = std::min(block.size(), x.size() - at);
    std::memcpy(block.data(), bytes.data() + at * sizeof(float),
                n * sizeof(float));
    kernels.add(std::span(block).first(n), x.subspan(at, n));
  }
}

}  // namespace

std::vector<std::string_view> AllReduce::Names() {
  return {kRing, kRecursiveDoubling};
}

absl::StatusOr<AllReduce> AllReduce::Create(std::string_view name, int rank,
                                            int size, size_t n,
                                            const Kernels& kernels) {
  if (size < 1 || rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-reduce of rank ", rank, " among ", size,
                     "; ranks run from 0 to size - 1"));
  }
  if (n > kMaxFloats) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-reduce of ", n, " floats; at most ", kMaxFloats,
                     ", reduce longer vectors in parts"));
  }
  if (name == kRing) {
    return AllReduce(RingSteps(rank, size, n), size, n, kernels);
  }
  if (name == kRecursiveDoubling) {
    return AllReduce(RecursiveDoublingSteps(rank, size, n), size, n, kernels);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown all-reduce \"", std::string(name),
                   "\"; known: ring, recursive-doubling"));
}

// Chunk i is [⌊in/M⌋, ⌊(i+1)n/M⌋).  In step s of the reduce-scatter, rank r
// sends on the partial sum of chunk r − s, to which it has just added; after
// it, rank r holds the sum of chunk r + 1 and all others get their bits from
// there.
std::vector<AllReduce::Step> AllReduce::RingSteps(int rank, int size,
                                                  size_t n) {
  const auto transfer = [&](int peer, int chunk) {
    const size_t m = size;
    const size_t i = (chunk % size + size) % size;
    const size_t begin = i * n / m;
    return Transfer{peer, begin, (i + 1) * n / m - begin};
  };
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  std::vector<Step> steps;
  for (int s = 0; s + 1 < size; ++s) {
    steps.push_back({transfer(right, rank - s), transfer(left, rank - s - 1),
                     s + 2 < size ? Combine::kAdd : Combine::kAddLast});
  }
  for (int s = 0; s + 1 < size; ++s) {
    steps.push_back({transfer(right, rank + 1 - s), transfer(left, rank - s),
                     Combine::kReplace});
  }
  return steps;
}

// With p the largest power of two in M, ranks from p on first give their vector
// to rank − p and last get the result from there; the rest exchange everything
// with rank ⊕ 1, ⊕ 2, … ⊕ p/2.  Both partners form the same sum, as a + b and
// b + a are the same bits, so ranks agree without another exchange.
std::vector<AllReduce::Step> AllReduce::RecursiveDoublingSteps(int rank,
                                                               int size,
                                                               size_t n) {
  const int p = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const bool folded = rank >= p;
  const bool partner_of_folded = rank + p < size;
  std::vector<Step> steps;
  if (p < size) {
    Step fold;
    if (folded) fold.send = {rank - p, 0, n};
    if (partner_of_folded) fold.receive = {rank + p, 0, n};
    steps.push_back(fold);
  }
  for (int bit = 1; bit < p; bit *= 2) {
    Step exchange;
    if (!folded) exchange.send = exchange.receive = {rank ^ bit, 0, n};
    exchange.combine = 2 * bit < p ? Combine::kAdd : Combine::kAddLast;
    steps.push_back(exchange);
  }
  if (p < size) {
    Step unfold;
    if (partner_of_folded) unfold.send = {rank + p, 0, n};
    if (folded) unfold.receive = {rank - p, 0, n};
    unfold.combine = Combine::kReplace;
    steps.push_back(unfold);
  }
  return steps;
}

void AllReduce::Start(std::span<float> vector) {
  assert(!started_ && vector.size() == n_);
  vector_ = vector;
  started_ = true;
  Advance();
}

absl::Status AllReduce::OnMessage(int rank, uint32_t step, Payload bytes) {
  const Transfer expected =
      step < steps_.size() ? steps_[step].receive : Transfer{};
  if (expected.size == 0 || expected.rank != rank) {
    return absl::DataLossError(
        absl::StrCat("rank ", rank, " sends step ", step,
                     ", which is none of this all-reduce over ", size_,
                     " ranks; all need the same all_reduce and view"));
  }
  if (bytes.size() != expected.size * sizeof(float)) {
    return absl::DataLossError(absl::StrCat(
        "rank ", rank, " sends ", bytes.size(), " bytes in step ", step,
        ", this all-reduce of ", n_, " floats needs ",
        expected.size * sizeof(float), "; all need the same game"));
  }
  if (step < next_ || !early_[step].empty()) return absl::OkStatus();
  early_[step] = std::move(bytes);
  if (started_) Advance();
  return absl::OkStatus();
}

void AllReduce::Advance() {
  for (; next_ < steps_.size(); ++next_) {
    if (sent_steps_ == next_) {
      ++sent_steps_;
      if (steps_[next_].send.size > 0) Send(next_);
    }
    if (steps_[next_].receive.size == 0) continue;
    if (early_[next_].empty()) return;
    Receive(next_);
  }
}

void AllReduce::Send(uint32_t step) {
  const Transfer& t = steps_[step].send;
  const auto bytes = std::as_bytes(vector_.subspan(t.offset, t.size));
  sent_.push_back(
      {t.rank, step, Payload::FromVector({bytes.begin(), bytes.end()})});
}

void AllReduce::Receive(uint32_t step) {
  const Transfer& t = steps_[step].receive;
  const std::span<float> part = vector_.subspan(t.offset, t.size);
  const Payload payload = std::exchange(early_[step], Payload());
  const std::span<const std::byte> bytes = payload.bytes();
  if (steps_[step].combine == Combine::kReplace) {
    std::ranges::copy(bytes, std::as_writable_bytes(part).begin());
    return;
  }
  AddBytes(*kernels_, bytes, part);
  if (steps_[step].combine == Combine::kAddLast) {
    kernels_->scale(1.0f / static_cast<float>(size_), part);
  }
}

std::vector<AllReduce::Message> AllReduce::TakeOutgoing() {
  const std::vector<Message> out(sent_.begin() + taken_, sent_.end());
  taken_ = sent_.size();
  return out;
}

std::vector<AllReduce::Message> AllReduce::SentTo(int rank) const {
  std::vector<Message> out;
  for (const Message& m : sent_) {
    if (m.rank == rank) out.push_back(m);
  }
  return out;
}

std::optional<AllReduce::Awaited> AllReduce::awaited() const {
  if (!started_ || next_ == steps_.size()) return std::nullopt;
  return Awaited{steps_[next_].receive.rank, next_};
}

}  // namespace gossamer
