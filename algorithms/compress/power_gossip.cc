#include "algorithms/compress/power_gossip.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/kernels/values.h"

namespace gossamer {
namespace {

// A payload begins with its iteration.  Iterations count modulo this, which
// floats hold exactly.
constexpr uint32_t kIterations = uint32_t{1} << 24;
constexpr size_t kIterationBytes = 4;

uint32_t IterationOf(std::span<const std::byte> payload) {
  uint32_t iteration;
  std::memcpy(&iteration, payload.data(), sizeof(iteration));
  return iteration;
}

// The iteration that memory keeps as a float; 0 if it is none, which only a
// damaged checkpoint can have.
uint32_t IterationIn(std::span<const float> memory) {
  return memory[0] >= 0 && memory[0] < static_cast<float>(kIterations)
             ? static_cast<uint32_t>(memory[0])
             : 0;
}

std::vector<float> FloatsAt(std::span<const std::byte> payload, size_t first,
                            size_t n) {
  std::vector<float> values(n);
  std::memcpy(values.data(), payload.data() + kIterationBytes + 4 * first,
              4 * n);
  return values;
}

}  // namespace

std::vector<Option> FieldsOf(PowerGossipOptions& o) {
  return {LeastField(o.least)};
}

PowerGossipCodec::PowerGossipCodec(std::string_view name,
                                   const PowerGossipOptions& options,
                                   const ParameterLayout& layout,
                                   const DeviceQueue& queue)
    : name_(name), queue_(queue), size_(layout.size()) {
  for (const Segment& s : layout.segments()) {
    if (s.shape.size() < 2 || s.extent.size < options.least) {
      if (s.extent.size == 0) continue;
      raw_.push_back(s.extent);
      raw_size_ += s.extent.size;
      continue;
    }
    const auto rows = static_cast<size_t>(s.shape[0]);
    matrices_.push_back(
        {s.extent, rows, s.extent.size / rows, rows_, columns_});
    rows_ += rows;
    columns_ += s.extent.size / rows;
  }
}

WireFormat PowerGossipCodec::FormatFor(std::span<const float> memory) const {
  const bool odd = IterationIn(memory) % 2 == 1;
  return odd ? WireFormat::kPowerRows : WireFormat::kPowerColumns;
}

size_t PowerGossipCodec::EncodedSize(WireFormat format) const {
  const size_t raw = CodeBytes(Coding::kBf16, raw_size_);
  if (format == WireFormat::kPowerColumns) {
    return kIterationBytes + 4 * columns_ + raw;
  }
  if (format == WireFormat::kPowerRows) {
    return kIterationBytes + 4 * rows_ + raw;
  }
  return 0;
}

// Before the first iteration, and after one that found no difference, signs
// drawn by the iteration: both ends draw alike, on any machine.
std::vector<float> PowerGossipCodec::Direction(
    const Matrix& m, bool of_rows, uint64_t iteration,
    std::span<const float> memory) const {
  const auto kept = of_rows
                        ? memory.subspan(1 + m.first_row, m.rows)
                        : memory.subspan(1 + rows_ + m.first_column, m.columns);
  if (std::ranges::any_of(kept, [](float v) { return v != 0; })) {
    return {kept.begin(), kept.end()};
  }
  const RngKey key = RngKey(iteration).Fold("power").Fold(m.extent.offset);
  const float length = 1 / std::sqrt(static_cast<float>(kept.size()));
  std::vector<float> drawn(kept.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    drawn[i] = key.Below(2, i) == 0 ? length : -length;
  }
  return drawn;
}

void PowerGossipCodec::Encode(WireFormat format, DeviceSpan<const float> x,
                              DeviceSpan<float> shared, uint64_t,
                              DeviceSpan<std::byte> out) const {
  const std::span<const float> memory = HostSpan(shared);
  assert(x.size == size_ && memory.size() == memory_size());
  assert(out.size == EncodedSize(format));
  const uint32_t iteration = IterationIn(memory);
  const bool columns = format == WireFormat::kPowerColumns;
  queue_.Upload(std::as_bytes(std::span(&iteration, 1)),
                out.subspan(0, kIterationBytes));
  for (const Matrix& m : matrices_) {
    const auto matrix = x.subspan(m.extent.offset, m.extent.size);
    const std::vector<float> direction =
        Direction(m, columns, iteration, memory);
    const DeviceCopy<float> along(queue_, direction);
    auto a = DeviceVector<float>::Unset(queue_, columns ? m.columns : m.rows,
                                        "a product");
    queue_.Run(
        columns ? &DeviceKernels::transposed_product : &DeviceKernels::product,
        matrix, along.span(), a.span());
    const size_t first = columns ? m.first_column : m.first_row;
    queue_.Run(&DeviceKernels::encode, Coding::kF32, a.span(),
               DeviceSpan<float>(), 0, nullptr,
               out.data + kIterationBytes + 4 * first);
  }
  size_t at = kIterationBytes + 4 * (columns ? columns_ : rows_);
  for (const Extent& e : raw_) {
    queue_.Run(&DeviceKernels::encode, Coding::kBf16,
               x.subspan(e.offset, e.size), DeviceSpan<float>(), 0, nullptr,
               out.data + at);
    at += CodeBytes(Coding::kBf16, e.size);
  }
}

absl::Status PowerGossipCodec::Validate(const Encoded& payload) const {
  const size_t size = EncodedSize(payload.format);
  if (size == 0 || payload.bytes.size() != size) {
    return absl::DataLossError(absl::StrCat(
        "payload of format ", static_cast<int>(payload.format), " has ",
        payload.bytes.size(), " bytes, this layout needs ", size));
  }
  const size_t floats =
      payload.format == WireFormat::kPowerColumns ? columns_ : rows_;
  const Kernels& kernels = queue_.host_kernels();
  if (IterationOf(payload.bytes) >= kIterations ||
      !kernels.valid(Coding::kF32, floats,
                     payload.bytes.subspan(kIterationBytes, 4 * floats)) ||
      !kernels.valid(Coding::kBf16, raw_size_,
                     payload.bytes.subspan(kIterationBytes + 4 * floats))) {
    return absl::DataLossError(
        "a power-gossip payload has an iteration or a value that is not finite "
        "or too large; the sender is broken or hostile");
  }
  return absl::OkStatus();
}

// `change` is theirs less mine along one side; the other has the direction.
void PowerGossipCodec::Correct(const Matrix& m, bool by_columns,
                               uint64_t iteration, float c,
                               std::span<const float> change,
                               std::span<float> memory,
                               DeviceSpan<float> x) const {
  const std::vector<float> direction =
      Direction(m, by_columns, iteration, memory);
  const auto matrix = x.subspan(m.extent.offset, m.extent.size);
  const DeviceCopy<float> along(queue_, direction), across(queue_, change);
  queue_.Run(&DeviceKernels::add_outer, c,
             by_columns ? along.span() : across.span(),
             by_columns ? across.span() : along.span(), matrix);
  // The next direction, equal at both ends.
  uint32_t largest = 0;
  const Kernels& kernels = queue_.host_kernels();
  kernels.argmax_abs(change.size(), change, {}, {&largest, 1});
  const double scale = UnitScale(kernels.squared_norm(change), change[largest]);
  const auto next = by_columns
                        ? memory.subspan(1 + rows_ + m.first_column, m.columns)
                        : memory.subspan(1 + m.first_row, m.rows);
  for (size_t i = 0; i < next.size(); ++i) {
    next[i] = static_cast<float>(change[i] * scale);
  }
}

void PowerGossipCodec::Complete(const Encoded* mine, const Encoded* theirs,
                                float c, DeviceSpan<float> shared,
                                DeviceSpan<float> x) const {
  if (mine == nullptr || theirs == nullptr) return;
  const std::span<float> memory = HostSpan(shared);
  const auto raw_of = [&](const Encoded& payload) {
    return payload.bytes.subspan(payload.bytes.size() -
                                 CodeBytes(Coding::kBf16, raw_size_));
  };
  const DeviceCopy<std::byte> raw_theirs(queue_, raw_of(*theirs));
  const DeviceCopy<std::byte> raw_mine(queue_, raw_of(*mine));
  size_t at = 0;
  for (const Extent& e : raw_) {
    const CodedSpan t{Coding::kBf16, nullptr, raw_theirs.data() + at};
    const CodedSpan m{Coding::kBf16, nullptr, raw_mine.data() + at};
    queue_.Run(&DeviceKernels::apply, &t, &m, c, DeviceSpan<float>(),
               x.subspan(e.offset, e.size));
    at += CodeBytes(Coding::kBf16, e.size);
  }
  const uint32_t iteration = IterationIn(memory);
  if (IterationOf(mine->bytes) != iteration ||
      IterationOf(theirs->bytes) != iteration ||
      mine->format != FormatFor(memory) || theirs->format != mine->format) {
    return;
  }
  const bool columns = mine->format == WireFormat::kPowerColumns;
  for (const Matrix& m : matrices_) {
    const size_t first = columns ? m.first_column : m.first_row;
    const size_t n = columns ? m.columns : m.rows;
    std::vector<float> change = FloatsAt(theirs->bytes, first, n);
    queue_.host_kernels().axpy(-1, FloatsAt(mine->bytes, first, n), change);
    Correct(m, columns, iteration, c, change, memory, x);
  }
  memory[0] = static_cast<float>((iteration + 1) % kIterations);
}

namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  PowerGossipOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  return std::make_shared<const PowerGossipCodec>(text.whole, options, layout,
                                                  queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(power_gossip) = {
    .name = "power-gossip",
    .help = {.summary = "power iterations on what two peers differ by",
             .property = "linear, no step size",
             .bits = "32 (rows or columns)/size",
             .state = "rows + columns per edge",
             .needs = "lasting neighbours",
             .gamma = "1",
             .source = "Vogels, Karimireddy, Jaggi, NeurIPS 2020",
             .page = "power_gossip"},
    .edges = Make};

}  // namespace gossamer
