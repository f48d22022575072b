#include "algorithms/collective/all_reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace gossamer {
namespace {

static_assert(std::endian::native == std::endian::little);

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
  std::vector<std::string_view> names;
  for (const AllReduceSchedule& s : AllReduceSchedules()) {
    names.push_back(s.name);
  }
  return names;
}

absl::StatusOr<AllReduce> AllReduce::Create(std::string_view name, int rank,
                                            int size, size_t n,
                                            std::shared_ptr<const Codec> codec,
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
  for (const AllReduceSchedule& s : AllReduceSchedules()) {
    if (s.name != name) continue;
    if (codec != nullptr && (!s.own_only || codec->memory() != EdgeMemory::kNone)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "all-reduce \"", std::string(name), "\" with codec ",
          std::string(codec->name()),
          ": a codec needs all-gather, since the others send sums on, which "
          "would have to be rounded again at every hop, and has no replicas"));
    }
    return AllReduce(s.steps(rank, size, n), size, n, std::move(codec),
                     kernels);
  }
  const std::vector<std::string_view> known = Names();
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown all-reduce \"", std::string(name), "\"; known: ",
      absl::StrJoin(std::vector<std::string>(known.begin(), known.end()),
                    ", ")));
}

void AllReduce::Start(std::span<float> vector, uint64_t key) {
  assert(!started_ && vector.size() == n_);
  vector_ = vector;
  started_ = true;
  if (codec_ != nullptr && !steps_.empty()) EncodeOwn(key);
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
  if (codec_ == nullptr && bytes.size() != expected.size * sizeof(float)) {
    return absl::DataLossError(absl::StrCat(
        "rank ", rank, " sends ", bytes.size(), " bytes in step ", step,
        ", this all-reduce of ", n_, " floats needs ",
        expected.size * sizeof(float), "; all need the same game"));
  }
  if (step < next_ || !early_[step].empty()) return absl::OkStatus();
  if (codec_ != nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(bytes, Decodable(rank, std::move(bytes)));
  }
  early_[step] = std::move(bytes);
  if (started_) Advance();
  return absl::OkStatus();
}

void AllReduce::Advance() {
  while (true) {
    while (sent_steps_ < steps_.size() && steps_[sent_steps_].after <= next_) {
      Send(sent_steps_++);
    }
    if (next_ == steps_.size()) return;
    if (steps_[next_].receive.size > 0 && early_[next_].empty()) return;
    Combine(next_);
    ++next_;
  }
}

void AllReduce::EncodeOwn(uint64_t key) {
  const WireFormat format = codec_->format();
  std::vector<std::byte> bytes(codec_->EncodedSize(format));
  codec_->Encode(format, vector_, {}, key, bytes);
  // As the others do it, so that all have the same bits: a zero has no sign.
  std::ranges::fill(vector_, 0.0f);
  codec_->Add({format, bytes}, vector_);
  if (packer_ != nullptr) {
    std::vector<std::byte> packed(bytes.size());
    const size_t size = packer_->Pack({format, bytes}, packed);
    packed.resize(size);
    if (size > 0) bytes = std::move(packed);
  }
  own_payload_ = Payload::FromVector(std::move(bytes));
}

// What is packed is shorter than what is not, so the size tells them apart.
absl::StatusOr<Payload> AllReduce::Decodable(int rank, Payload bytes) const {
  const WireFormat format = codec_->format();
  const size_t size = codec_->EncodedSize(format);
  if (packer_ != nullptr && bytes.size() < size) {
    std::vector<std::byte> whole(size);
    if (!packer_->Unpack(format, bytes.bytes(), whole)) {
      return absl::DataLossError(
          absl::StrCat("rank ", rank, " sends ", bytes.size(),
                       " bytes that are no packed payload; all need the same "
                       "gradient_codec"));
    }
    bytes = Payload::FromVector(std::move(whole));
  }
  GOSSAMER_RETURN_IF_ERROR(codec_->Validate({format, bytes.bytes()}));
  return bytes;
}

void AllReduce::Send(uint32_t step) {
  if (codec_ != nullptr) {
    for (const Transfer& t : steps_[step].sends) {
      if (t.size > 0) sent_.push_back({t.rank, step, own_payload_});
    }
    return;
  }
  Payload same;  // several ranks may get the same part
  Transfer of;
  for (const Transfer& t : steps_[step].sends) {
    if (t.size == 0) continue;
    if (same.empty() || t.offset != of.offset || t.size != of.size) {
      const auto bytes = std::as_bytes(vector_.subspan(t.offset, t.size));
      same = Payload::FromVector({bytes.begin(), bytes.end()});
      of = t;
    }
    sent_.push_back({t.rank, step, same});
  }
}

void AllReduce::Combine(uint32_t step) {
  const AllReduceStep& s = steps_[step];
  const Payload payload = std::exchange(early_[step], Payload());
  const std::span<const std::byte> bytes = payload.bytes();
  std::span<float> part = vector_.subspan(s.receive.offset, s.receive.size);
  switch (s.combine) {
    case CombineKind::kAdd:
      if (codec_ == nullptr) {
        AddBytes(*kernels_, bytes, part);
      } else if (s.receive.size > 0) {
        codec_->Add({codec_->format(), bytes}, part);
      }
      break;
    case CombineKind::kReplaceKeepingOwn:
      own_.assign(vector_.begin(), vector_.end());
      [[fallthrough]];
    case CombineKind::kReplace:
      if (codec_ == nullptr) {
        std::ranges::copy(bytes, std::as_writable_bytes(part).begin());
      } else {
        std::ranges::fill(part, 0.0f);
        codec_->Add({codec_->format(), bytes}, part);
      }
      break;
    case CombineKind::kAddOwn:
      part = vector_;
      kernels_->add(own_, part);
      break;
  }
  if (s.mean) kernels_->scale(1.0f / static_cast<float>(size_), part);
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
