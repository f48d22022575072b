#include "algorithms/compress/masked_average.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/turn.h"

namespace gossamer {
std::vector<float> MaskedAverageCodec::InitialMemory(bool upper) const {
  std::vector<float> memory(memory_size());
  memory[1] = upper ? 1 : 0;
  return memory;
}

WireFormat MaskedAverageCodec::FormatFor(std::span<const float> memory) const {
  const bool odd = Whole(memory[0], kTurns) % 2 == 1;
  return odd == (memory[1] != 0) ? WireFormat::kMaskedLead
                                 : WireFormat::kMaskedFollow;
}

size_t MaskedAverageCodec::EncodedSize(WireFormat format) const {
  if (format == WireFormat::kMaskedLead) return kTurnBytes + 3 * chunks_;
  if (format == WireFormat::kMaskedFollow) return kTurnBytes + 2 * chunks_;
  return 0;
}

void MaskedAverageCodec::Encode(WireFormat format, std::span<const float> x,
                                std::span<float> memory, uint64_t,
                                std::span<std::byte> out) const {
  assert(x.size() == size_ && memory.size() == memory_size());
  assert(out.size() == EncodedSize(format));
  PutTurn(Whole(memory[0], kTurns), out);
  const auto last = memory.subspan(kHead + chunks_);
  const auto values = out.subspan(kTurnBytes, 2 * chunks_);
  const auto places = out.subspan(kTurnBytes + 2 * chunks_);
  // So few that what is read for their values is still near for their changes.
  std::array<float, 256> due;
  for (size_t first = 0; first < chunks_; first += due.size()) {
    const size_t n = std::min(due.size(), chunks_ - first);
    for (size_t i = 0; i < n; ++i) due[i] = x[Due(memory, first + i)];
    kernels_.encode(Coding::kBf16, std::span(due).first(n), {}, 0, nullptr,
                    values.data() + 2 * first);
    if (places.empty()) continue;
    // A value that is due now counts as unchanged: it is about to be exchanged.
    for (size_t i = 0; i < n; ++i) {
      const size_t chunk = first + i;
      places[chunk] =
          static_cast<std::byte>(Due(memory, chunk) - chunk * rate_);
    }
    const size_t begin = first * rate_;
    const size_t size = std::min(n * rate_, size_ - begin);
    kernels_.most_changed(rate_, x.subspan(begin, size),
                          last.subspan(begin, size), places.subspan(first, n));
  }
}

absl::Status MaskedAverageCodec::Validate(const Encoded& payload) const {
  const size_t size = EncodedSize(payload.format);
  if (size == 0 || payload.bytes.size() != size) {
    return absl::DataLossError(absl::StrCat(
        "payload of format ", static_cast<int>(payload.format), " has ",
        payload.bytes.size(), " bytes, this layout needs ", size));
  }
  bool valid = TurnOf(payload.bytes) < kTurns &&
               kernels_.valid(Coding::kBf16, chunks_,
                              payload.bytes.subspan(kTurnBytes, 2 * chunks_));
  const auto places = payload.bytes.subspan(kTurnBytes + 2 * chunks_);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = std::to_integer<size_t>(places[i]);
    valid &= place < ChunkSize(i);
  }
  if (valid) return absl::OkStatus();
  return absl::DataLossError(
      "a masked payload has a turn, a place or a value out of range; the "
      "sender "
      "is broken or hostile");
}

void MaskedAverageCodec::Add(const Encoded&, std::span<float>) const {
  assert(false && "which values these are, the memory knows");
}

void MaskedAverageCodec::Complete(const Encoded* mine, const Encoded* theirs,
                                  float c, std::span<float> memory,
                                  std::span<float> x) const {
  if (mine == nullptr || theirs == nullptr) return;
  const auto turn = Whole(memory[0], kTurns);
  if (TurnOf(mine->bytes) != turn || TurnOf(theirs->bytes) != turn ||
      mine->format != FormatFor(memory) || mine->format == theirs->format) {
    return;
  }
  const CodedSpan t{Coding::kBf16, nullptr, theirs->bytes.data() + kTurnBytes};
  const CodedSpan m{Coding::kBf16, nullptr, mine->bytes.data() + kTurnBytes};
  std::vector<float> sent(chunks_), correction(chunks_), unused(chunks_);
  kernels_.apply(&m, nullptr, 0, sent, unused);
  kernels_.apply(&t, &m, c, {}, correction);
  const Encoded& lead =
      mine->format == WireFormat::kMaskedLead ? *mine : *theirs;
  const auto places = lead.bytes.subspan(kTurnBytes + 2 * chunks_);
  for (size_t i = 0; i < chunks_; ++i) {
    const size_t due = Due(memory, i);
    x[due] += correction[i];
    memory[kHead + chunks_ + due] = sent[i];
    memory[kHead + i] = static_cast<float>(std::to_integer<int>(places[i]));
  }
  memory[0] = static_cast<float>((turn + 1) % kTurns);
}

namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const Kernels& kernels) {
  size_t rate = 16;
  const Option options[] = {WholeOption("rate", &rate, 2, 256)};
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, options));
  return std::make_shared<const MaskedAverageCodec>(text.whole, rate,
                                                    layout.size(), kernels);
}

}  // namespace

GOSSAMER_COMPRESSOR(masked_average) = {
    .name = "masked",
    .help = {.summary =
                 "the values that changed most, by turns of the two ends",
             .property = "true differences of what is exchanged, in bf16",
             .bits = "1.25 with chunks of 16",
             .state = "1 per edge",
             .needs = "lasting neighbours",
             .gamma = "1",
             .source = "Chen et al. (ScaleCom), NeurIPS 2020",
             .page = "masked"},
    .edges = Make};

}  // namespace gossamer
