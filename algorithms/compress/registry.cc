#include "algorithms/compress/registry.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/spelling.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/dense_gradients.h"
#include "algorithms/compress/player_codecs.h"

namespace gossamer {
namespace compressors {

#define GOSSAMER_COMPRESSOR_FILE(file) extern const Compressor file;
#include "algorithms/compress/compressors.inc"
#undef GOSSAMER_COMPRESSOR_FILE

}  // namespace compressors

namespace {

constexpr const Compressor* kCompressors[] = {
#define GOSSAMER_COMPRESSOR_FILE(file) &compressors::file,
#include "algorithms/compress/compressors.inc"
#undef GOSSAMER_COMPRESSOR_FILE
};

// Names that configurations had before, or that a paper has, each with the one
// to write in its place: the same compressor, or one of edges that takes as
// many bits or fewer and leaves less (README.md, "The front").
constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
    {"dense", "dense-f32"},         {"bf16", "dense-bf16"},
    {"choco-int8", "innov-int8"},   {"choco-int4", "innov-int4"},
    {"choco-lm2", "innov-lm2"},     {"choco-sign", "innov-sign"},
    {"choco-topk", "innov-topk"},   {"fragments", "innov-int4:fragments=4"},
    {"qsgd", "innov-int4"},         {"qsgd-edges", "innov-int4"},
    {"masked", "innov-sign"},       {"moniqua", "innov-int4"},
    {"diff-int4", "innov-int4"},    {"deep-squeeze", "innov-int4"},
    {"squeeze-int4", "innov-int4"}, {"squeeze-sign", "innov-sign"},
    {"squeeze-topk", "innov-topk"}};

// kInvalidArgument for an option that compressors no longer have.
absl::Status CheckNoOldOption(const CompressorText& text) {
  const std::vector<std::string> options =
      absl::StrSplit(std::string(text.options), ',');
  for (const std::string& option : options) {
    if (!option.starts_with("zstd=")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("option zstd of \"", std::string(text.name),
                     "\" is gone: leave ", option, " out"));
  }
  return absl::OkStatus();
}

// `text` begins with a compressor that has that use, one of the makers.
template <typename Use>
bool Has(Use Compressor::*use, std::string_view text) {
  const Compressor* const found =
      FindCompressor(SplitCompressorText(text).name);
  return found != nullptr && found->*use != nullptr;
}

template <typename Use>
std::vector<std::string_view> NamesWith(Use Compressor::*use) {
  std::vector<std::string_view> names;
  for (const Compressor* compressor : kCompressors) {
    if (compressor->*use != nullptr) names.push_back(compressor->name);
  }
  return names;
}

template <typename Use>
absl::Status Unknown(const char* what, std::string_view name,
                     Use Compressor::*use) {
  const std::string_view replacement = CompressorReplacement(name);
  if (Has(use, replacement)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no ", what, " \"", std::string(name),
                     "\": write \"", std::string(replacement), "\" instead"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown ", what, " \"", std::string(name), "\"; ",
                   KnownAndNearest(name, NamesWith(use))));
}

}  // namespace

std::span<const Compressor* const> Compressors() { return kCompressors; }

const Compressor* FindCompressor(std::string_view name) {
  const auto it = std::ranges::find(
      kCompressors, name,
      [](const Compressor* compressor) { return compressor->name; });
  return it == std::end(kCompressors) ? nullptr : *it;
}

std::string_view CompressorReplacement(std::string_view name) {
  for (const auto& [old, replacement] : kReplacements) {
    if (old == name) return replacement;
  }
  return {};
}

absl::StatusOr<std::shared_ptr<const Codec>> Codec::Create(
    std::string_view name, const ParameterLayout& layout,
    const DeviceQueue& queue) {
  if (NamesPlayers(name)) return MakePlayerCodecs(name, layout, queue);
  const CompressorText text = SplitCompressorText(name);
  const Compressor* const compressor = FindCompressor(text.name);
  if (compressor == nullptr || compressor->edges == nullptr) {
    return Unknown("codec", text.name, &Compressor::edges);
  }
  GOSSAMER_RETURN_IF_ERROR(CheckNoOldOption(text));
  return compressor->edges(text, layout, queue);
}

std::vector<std::string_view> Codec::Names() {
  return NamesWith(&Compressor::edges);
}

absl::StatusOr<std::unique_ptr<GradientCompressor>> GradientCompressor::Create(
    std::string_view name, const ParameterLayout& layout,
    const Kernels& kernels, const ValueCoderMaker& coders) {
  CompressorText text = SplitCompressorText(name);
  const Compressor* const compressor = FindCompressor(text.name);
  if (compressor == nullptr || compressor->gradients == nullptr) {
    return Unknown("gradient method", text.name, &Compressor::gradients);
  }
  GOSSAMER_RETURN_IF_ERROR(CheckNoOldOption(text));
  if (compressor->warmup_steps < 0) {
    return compressor->gradients(text, layout, kernels, coders);
  }
  auto full = static_cast<uint64_t>(compressor->warmup_steps);
  const Option option = WholeOption("full", &full, 0, 1'000'000'000);
  GOSSAMER_ASSIGN_OR_RETURN(const std::string others, TakeOption(text, option));
  text.options = others;
  text.taken = option.key;
  GOSSAMER_ASSIGN_OR_RETURN(
      auto made, compressor->gradients(text, layout, kernels, coders));
  if (full == 0) return made;
  return WithDenseWarmup(full, layout.size(), std::move(made));
}

std::vector<std::string_view> GradientCompressor::Names() {
  return NamesWith(&Compressor::gradients);
}

}  // namespace gossamer
