#include "algorithms/compress/adacomp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/ternary_bins.h"

namespace gossamer {
namespace {

// Values that are read from memory once and then again from the first-level
// cache, r and g together.
constexpr size_t kBlock = 2048;

class AdaComp final : public GradientCompressor {
 public:
  AdaComp(size_t dense, size_t conv, size_t most, bool flat,
          const ParameterLayout& layout, const Kernels& kernels)
      : kernels_(kernels),
        most_(most),
        format_(std::make_shared<const TernaryBins>(layout, dense, conv, flat,
                                                    kernels)),
        residue_(layout.size()),
        scales_(format_->layers().size()),
        counts_(scales_.size()),
        maxima_(scales_.size()),
        found_(scales_.size()) {
    for (size_t l = 0; l < scales_.size(); ++l) {
      counts_[l].resize(format_->layers()[l].bins());
      maxima_[l].resize(format_->layers()[l].bins());
    }
  }

  // The size of the largest layer that has bins of so many; 0: none has.
  size_t LargestWith(double bin) const {
    size_t largest = 0;
    for (const BinnedLayer& layer : format_->layers()) {
      if (static_cast<double>(layer.bin) != bin) continue;
      largest = std::max(largest, layer.extent.size);
    }
    return largest;
  }

  bool summable() const override { return false; }
  bool has_residual() const override { return true; }
  AllReduceForm Form(uint64_t, int) const override {
    return {.floats = residue_.size(), .payloads = format_};
  }

  void Begin(const ReduceContext&, std::span<const float> gradient) override {
    gradient_ = gradient;
  }

  SharedBytes Contribute(const SharedBytes&, std::span<float>) override {
    for (size_t l = 0; l < scales_.size(); ++l) {
      scales_[l] = gradient_.empty() ? 0 : FindOutstanding(l);
    }
    TernaryBins::Writer writer(*format_, scales_, gradient_, MostBytes());
    for (size_t l = 0; l < scales_.size(); ++l) Send(l, writer);
    gradient_ = {};
    return writer.Finish();
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    return mean;
  }

  void VisitState(StateVisitor& visitor) override {
    visitor.Floats("residual", residue_);
  }

 private:
  // r ← G; which indices of layer l reach the g_max of their bin and are not 0,
  // how many of each bin, and g_max.  Returns the mean of the latter.
  float FindOutstanding(size_t l) {
    const BinnedLayer& layer = format_->layers()[l];
    found_[l].resize(layer.extent.size);
    size_t total = 0;
    double sum = 0;
    const size_t step = std::max<size_t>(1, kBlock / layer.bin);
    for (size_t b = 0; b < layer.bins(); b += step) {
      const size_t bins = std::min(step, layer.bins() - b);
      const size_t from = b * layer.bin;
      const size_t size = std::min(bins * layer.bin, layer.extent.size - from);
      const auto r =
          std::span(residue_).subspan(layer.extent.offset + from, size);
      const auto g = gradient_.subspan(layer.extent.offset + from, size);
      kernels_.axpy(1, g, r);
      at_.resize(bins), bounds_.resize(bins);
      kernels_.argmax_abs(layer.bin, r, {}, at_);
      for (size_t i = 0; i < bins; ++i) {
        const float largest = std::abs(r[at_[i]]);
        maxima_[l][b + i] = largest;
        sum += largest;
        // No value of a bin of zeros stands out.
        bounds_[i] =
            largest > 0 ? largest : std::numeric_limits<float>::infinity();
      }
      const auto to = std::span(found_[l]).subspan(total);
      const size_t found =
          kernels_.indices_at_least(layer.bin, r, g, bounds_, to);
      std::fill_n(counts_[l].begin() + static_cast<ptrdiff_t>(b), bins, 0);
      // Indices rise, so their bins do.
      size_t bin = 0, begin = 0, kept = 0;
      for (size_t i = 0; i < found; ++i) {
        const uint32_t index = to[i];
        for (; index >= begin + layer.bin; begin += layer.bin) ++bin;
        to[kept] = index - static_cast<uint32_t>(begin);
        const bool sent = r[index] != 0;
        counts_[l][b + bin] += sent;
        kept += sent;
      }
      total += kept;
    }
    return std::min(static_cast<float>(sum / static_cast<double>(layer.bins())),
                    kMaxMagnitude);
  }

  // The most bytes that the indices of a step may take in the payload.
  size_t MostBytes() const {
    size_t bytes = 0;
    for (size_t l = 0; l < scales_.size(); ++l) {
      if (scales_[l] == 0) continue;  // silent, or not looked at
      size_t indices = 0;
      for (const uint32_t count : counts_[l]) {
        indices += std::min<size_t>(count, most_);
      }
      bytes += indices * format_->layers()[l].entry_bytes();
    }
    return bytes;
  }

  void Send(size_t l, TernaryBins::Writer& writer) {
    const BinnedLayer& layer = format_->layers()[l];
    uint32_t* indices = found_[l].data();
    for (size_t b = 0; b < layer.bins(); ++b) {
      float* const r = residue_.data() + layer.extent.offset + b * layer.bin;
      if (scales_[l] == 0) {
        writer.Bin(layer, 0, {}, 0, r);
        continue;
      }
      uint32_t halvings = 0;
      float scale = scales_[l];
      // So that nothing sent, or left of it, is more than twice the largest.
      while (scale > 2 * maxima_[l][b] && halvings <= kMaxHalvings) {
        scale = scale / 2;
        ++halvings;
      }
      const std::span<uint32_t> found(indices, counts_[l][b]);
      const size_t count = halvings > kMaxHalvings ? 0 : LargestOf(found, r);
      writer.Bin(layer, count == 0 ? 0 : halvings, found.first(count), scale,
                 r);
      indices += found.size();
    }
  }

  // Puts the largest of what stands out first, in their order; returns how many
  // these are.
  size_t LargestOf(std::span<uint32_t> indices, const float* r) const {
    if (indices.size() <= most_) return indices.size();
    const auto cut = indices.begin() + static_cast<ptrdiff_t>(most_);
    std::nth_element(indices.begin(), cut, indices.end(),
                     [r](uint32_t a, uint32_t b) {
                       const float x = std::abs(r[a]), y = std::abs(r[b]);
                       return x != y ? x > y : a < b;
                     });
    std::sort(indices.begin(), cut);
    return most_;
  }

  const Kernels& kernels_;
  const size_t most_;
  const std::shared_ptr<const TernaryBins> format_;
  std::vector<float> residue_;  // 0 in small segments
  std::span<const float> gradient_;
  // Of the step, by layer, and of these by bin or by what was found.
  std::vector<float> scales_;
  std::vector<std::vector<uint32_t>> counts_;
  std::vector<std::vector<float>> maxima_;
  std::vector<std::vector<uint32_t>> found_;
  std::vector<uint32_t> at_;  // of a block
  std::vector<float> bounds_;
};

MadeGradients Make(const CompressorText& text, const ParameterLayout& layout,
                   const Kernels& kernels, const ValueCoderMaker&) {
  AdaCompOptions o;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(o)));
  auto made =
      std::make_unique<AdaComp>(o.bin, o.conv, o.most, o.flat, layout, kernels);
  GOSSAMER_RETURN_IF_ERROR(CheckPartFits(
      text.name, "bin", o.bin, made->LargestWith(static_cast<double>(o.bin))));
  GOSSAMER_RETURN_IF_ERROR(
      CheckPartFits(text.name, "conv", o.conv,
                    made->LargestWith(static_cast<double>(o.conv))));
  return made;
}

}  // namespace

std::vector<Option> FieldsOf(AdaCompOptions& o) {
  return {WholeOption("bin", &o.bin, 2, kLargestBin),
          WholeOption("conv", &o.conv, 2, kLargestBin),
          WholeOption("most", &o.most, 1, kMaxPerBin),
          FlagOption("flat", &o.flat)};
}

GOSSAMER_COMPRESSOR(adacomp) = {
    .name = "adacomp",
    .help = {.summary = "what stands out of every bin, in ternary",
             .property = "error feedback; the rate follows activity",
             .bits = "0.17 (dense) to 0.9 (conv)",
             .state = "1 per peer",
             .needs = "every message",
             .gamma = "–",
             .source = "Chen et al., AAAI 2018",
             .page = "adacomp"},
    .gradients = Make};

}  // namespace gossamer
