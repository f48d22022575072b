#include "algorithms/compress/sparse_gradients.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/chunk_choice.h"

namespace gossamer {
namespace {

struct SparseOptions {
  double rate = 100;
  double beta = 1;
  double flat = 0;
  double ahead = 0;
};

// Both methods' memory: the choice, the residual and what was left out.
class SparseGradients : public GradientCompressor {
 public:
  SparseGradients(const SparseOptions& options, const ParameterLayout& layout,
                  const Kernels& kernels)
      : choice_(std::make_shared<const ChunkChoice>(
            layout, static_cast<size_t>(options.rate), options.flat > 0)),
        kernels_(kernels),
        beta_(static_cast<float>(options.beta)),
        residual_(layout.size()),
        places_(choice_->chosen()),
        kept_(choice_->chosen()) {}

  bool remembers() const override { return true; }

  void Begin(const GradientTurn&, std::span<const float> gradient) override {
    gradient_ = gradient;
  }

  void VisitState(StateVisitor& visitor) override {
    visitor.Floats("residual", residual_);
  }

 protected:
  size_t contributed() const {
    return places_.size() + choice_->small_floats();
  }

  // What this rank contributes at the places of a block.
  void Gather(const ChunkChoice::Block& block, std::span<float> out) {
    for (size_t i = block.first; i < block.first + block.count; ++i) {
      const float m = residual_[places_[i]];
      kept_[i] = (1 - beta_) * m;
      out[i] =
          std::clamp(m + gradient_[places_[i]], -kMaxMagnitude, kMaxMagnitude);
    }
  }
  // And what it has of the small segments.
  void GatherSmall(std::span<float> out) const {
    size_t at = places_.size();
    for (const Extent& e : choice_->small()) {
      for (size_t i = 0; i < e.size; ++i) {
        out[at++] =
            std::clamp(gradient_[e.offset + i], -kMaxMagnitude, kMaxMagnitude);
      }
    }
  }

  // m ← (1 − β)m + β(p − q), where p − q is p but at places_, where it is 0.
  void Remember(const ChunkChoice::Block& block) {
    const auto& [offset, size] = block.extent;
    kernels_.axpy(beta_, gradient_.subspan(offset, size),
                  std::span(residual_).subspan(offset, size));
    for (size_t i = block.first; i < block.first + block.count; ++i) {
      residual_[places_[i]] = kept_[i];
    }
  }

  const std::shared_ptr<const ChunkChoice> choice_;
  const Kernels& kernels_;
  const float beta_;
  std::vector<float> residual_;      // 0 in small segments
  std::span<const float> gradient_;  // of this step; empty: none
  std::vector<uint32_t> places_;     // of what is sent in this step
  std::vector<float> kept_;          // (1 − β)m there
};

class ScaleCom final : public SparseGradients {
 public:
  ScaleCom(const SparseOptions& options, const ParameterLayout& layout,
           const Kernels& kernels)
      : SparseGradients(options, layout, kernels),
        ahead_(options.ahead > 0),
        mean_(layout.size()) {}

  bool sums() const override { return true; }

  AllReduceForm Form(uint64_t step, int size) const override {
    AllReduceForm form{.floats = contributed()};
    if (choice_->chosen() > 0) {
      form.leader = LeaderOf(step, size);
      form.check_lead = [choice = choice_](std::span<const std::byte> word) {
        return choice->Check(word);
      };
    }
    return form;
  }

  Payload Lead() override {
    return Word(ahead_ ? std::span<const float>() : gradient_);
  }

  Payload Contribute(const Payload& word, std::span<float> vector) override {
    Forget();
    choice_->Unpack(word.bytes(), places_);
    if (gradient_.empty()) {
      std::ranges::fill(vector, 0.0f);
    } else {
      for (const auto& block : choice_->blocks()) Gather(block, vector);
      GatherSmall(vector);
    }
    return {};
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    if (!gradient_.empty()) {
      for (const auto& block : choice_->blocks()) Remember(block);
      gradient_ = {};
    }
    for (size_t i = 0; i < places_.size(); ++i) mean_[places_[i]] = mean[i];
    size_t at = places_.size();
    for (const Extent& e : choice_->small()) {
      std::ranges::copy(mean.subspan(at, e.size), mean_.begin() + e.offset);
      at += e.size;
    }
    return mean_;
  }

  Payload LeadAhead(const GradientTurn& turn) override {
    const bool leads = LeaderOf(turn.step + 1, turn.size) == turn.rank;
    return ahead_ && leads && choice_->chosen() > 0 ? Word({}) : Payload();
  }

 private:
  static int LeaderOf(uint64_t step, int size) {
    return static_cast<int>(step % static_cast<uint64_t>(size));
  }

  Payload Word(std::span<const float> gradient) const {
    std::vector<uint32_t> places(choice_->chosen());
    choice_->Choose(kernels_, residual_, gradient, places);
    std::vector<std::byte> word(choice_->bytes());
    choice_->Pack(places, word);
    return Payload::FromVector(std::move(word));
  }

  // All but what was set in the last step is 0 already.
  void Forget() {
    for (const uint32_t place : places_) mean_[place] = 0;
  }

  const bool ahead_;
  std::vector<float> mean_;
};

// A choice, the values chosen, then those of the small segments, all f32.
class TopKPayloads final : public PayloadFormat {
 public:
  TopKPayloads(std::shared_ptr<const ChunkChoice> choice,
               const Kernels& kernels)
      : choice_(std::move(choice)), kernels_(kernels) {}

  size_t floats() const { return choice_->chosen() + choice_->small_floats(); }
  size_t size() const { return choice_->bytes() + sizeof(float) * floats(); }

  absl::StatusOr<Payload> Accept(Payload bytes) const override {
    if (bytes.size() != size()) {
      return absl::DataLossError(
          absl::StrCat("a top-k payload has ", bytes.size(), " bytes, not ",
                       size(), "; all need the same game and gradient_codec"));
    }
    const auto choice = bytes.bytes().first(choice_->bytes());
    GOSSAMER_RETURN_IF_ERROR(choice_->Check(choice));
    if (!kernels_.valid(Coding::kF32, floats(),
                        bytes.bytes().subspan(choice.size()))) {
      return absl::DataLossError(
          "a top-k payload has a value that is not finite or too large; the "
          "sender is broken or hostile");
    }
    return bytes;
  }

  void Add(std::span<const std::byte> payload,
           std::span<float> sum) const override {
    std::vector<uint32_t> places(choice_->chosen());
    choice_->Unpack(payload.first(choice_->bytes()), places);
    const std::byte* at = payload.data() + choice_->bytes();
    const auto next = [&at] {
      float value;
      std::memcpy(&value, std::exchange(at, at + sizeof(float)), sizeof(float));
      return value;
    };
    for (const uint32_t place : places) sum[place] += next();
    for (const Extent& e : choice_->small()) {
      for (size_t i = 0; i < e.size; ++i) sum[e.offset + i] += next();
    }
  }

 private:
  const std::shared_ptr<const ChunkChoice> choice_;
  const Kernels& kernels_;
};

class TopK final : public SparseGradients {
 public:
  TopK(const SparseOptions& options, const ParameterLayout& layout,
       const Kernels& kernels)
      : SparseGradients(options, layout, kernels),
        format_(std::make_shared<const TopKPayloads>(choice_, kernels)) {}

  bool sums() const override { return false; }

  AllReduceForm Form(uint64_t, int) const override {
    return {.floats = residual_.size(), .payloads = format_};
  }

  Payload Contribute(const Payload&, std::span<float>) override {
    std::vector<float> values(contributed());
    if (!gradient_.empty()) GatherSmall(values);
    // Block by block, so that memory is read once.
    for (const auto& block : choice_->blocks()) {
      choice_->ChooseIn(block, kernels_, residual_, gradient_, places_);
      if (gradient_.empty()) continue;
      Gather(block, values);
      Remember(block);
    }
    gradient_ = {};
    std::vector<std::byte> payload(format_->size());
    choice_->Pack(places_, std::span(payload).first(choice_->bytes()));
    std::memcpy(payload.data() + choice_->bytes(), values.data(),
                values.size() * sizeof(float));
    return Payload::FromVector(std::move(payload));
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    return mean;
  }

 private:
  const std::shared_ptr<const TopKPayloads> format_;
};

template <typename Method>
absl::StatusOr<std::unique_ptr<GradientCompressor>> Make(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels, bool may_lead) {
  SparseOptions o;
  const MethodOption options[] = {
      {"rate", &o.rate, 2, static_cast<double>(ChunkChoice::kMostRate)},
      {"beta", &o.beta, 1e-6, 1, /*real=*/true},
      {"flat", &o.flat, 0, 1},
      {"ahead", &o.ahead, 0, 1}};
  GOSSAMER_RETURN_IF_ERROR(
      ParseMethodOptions(name, std::span(options).first(may_lead ? 4 : 3)));
  GOSSAMER_RETURN_IF_ERROR(CheckPartFits(
      name, "rate", o.rate, LargestChosenFrom(layout, o.flat > 0)));
  return std::make_unique<Method>(o, layout, kernels);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeTopK(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels) {
  return Make<TopK>(name, layout, kernels, /*may_lead=*/false);
}

absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeScaleCom(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels) {
  return Make<ScaleCom>(name, layout, kernels, /*may_lead=*/true);
}

}  // namespace gossamer
