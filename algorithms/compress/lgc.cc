#include "algorithms/compress/lgc.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/dense_gradients.h"
#include "algorithms/compress/leader_choice.h"
#include "algorithms/compress/learning_phases.h"
#include "algorithms/compress/novel_values.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {
namespace {

// The autoencoder's rate: its loss is a share, so one rate fits all models.
constexpr double kLearningRate = 1e-2;
// The largest value in the leader's units: the squares of all fit into a float.
constexpr float kMaxUnits = 1e9f;
// The first floats of every contribution: the squares of what the rank's code
// loses and of its values.
constexpr size_t kLost = 0, kEnergy = 1, kShare = 2;

class LearnedGradients final : public GradientCompressor {
 public:
  LearnedGradients(const LgcOptions& options, const ParameterLayout& layout,
                   const Kernels& kernels)
      : leader_choice_(std::make_shared<const LeaderChoice>(
            layout, options.rate, options.flat, kernels)),
        kernels_(kernels),
        phases_({.learn = options.learn, .worst = options.worst}),
        again_(options.again),
        residual_(layout.size()),
        mean_(layout.size()),
        small_(leader_choice_->choice().small_floats()),
        indices_(leader_choice_->values()),
        units_(leader_choice_->values()),
        own_(leader_choice_->values()),
        scaled_(leader_choice_->values()),
        restored_(leader_choice_->values()) {
    if (options.server) {
      novel_ = std::make_shared<const NovelValues>(
          leader_choice_->values(), options.novel, small_.size(), kernels);
    }
  }

  size_t values() const { return indices_.size(); }
  absl::Status UseCoder(std::unique_ptr<ValueCoder> coder) {
    coder_ = std::move(coder);
    const size_t n = coder_->parameters().size();
    GOSSAMER_ASSIGN_OR_RETURN(optimizer_,
                              Optimizer::Create({.name = "adam",
                                                 .learning_rate = kLearningRate,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.99},
                                                n, kernels_));
    direction_.resize(n);
    code_.resize(coder_->code_size());
    return absl::OkStatus();
  }

  bool summable() const override { return novel_ == nullptr; }
  bool has_residual() const override { return true; }
  // With a server, ranks hear of each other's gradients only once in a cycle of
  // leaders: too late while gradients change fastest.
  bool needs_warmup() const override { return novel_ != nullptr; }

  AllReduceForm Form(uint64_t step, int size) const override {
    const LearningPhase phase = PhaseOf(step, size);
    AllReduceForm form;
    form.leader = static_cast<int>(step % static_cast<uint64_t>(size));
    form.check_leader_message =
        [choice = leader_choice_,
         code = CodeInMessage(phase)](std::span<const std::byte> message) {
          return choice->Check(message, code);
        };
    if (phase == LearningPhase::kLearning) {
      form.floats =
          kShare + indices_.size() + small_.size() + direction_.size();
    } else if (novel_ == nullptr) {
      form.floats = kShare + code_.size() + small_.size();
    } else {
      form.floats = novel_->floats();
      form.payloads = novel_;
    }
    return form;
  }

  void Begin(const ReduceContext& context,
             std::span<const float> gradient) override {
    context_ = context;
    gradient_ = gradient;
    // All but what was set in the last step is 0 already.
    for (const uint32_t index : indices_) mean_[index] = 0;
  }

  SharedBytes MakeLeaderMessage() override {
    leader_choice_->choice().Choose(kernels_, residual_, gradient_, indices_);
    TakeOwn();
    leader_choice_->FindUnits(own_, units_);
    const auto code = std::span(code_).first(CodeInMessage(phase()));
    if (!code.empty()) {
      Scale();
      EncodeOwn();
    }
    return leader_choice_->Pack(indices_, units_, code);
  }

  SharedBytes Contribute(const SharedBytes& message,
                         std::span<float> vector) override {
    std::ranges::fill(vector, 0.0f);
    leader_choice_->Unpack(message.bytes(), indices_, units_,
                           std::span(code_).first(CodeInMessage(phase())));
    if (gradient_.empty()) return Silence();
    TakeOwn();
    Scale();
    TakeSmall();
    if (novel_ != nullptr && phase() == LearningPhase::kCoded) return Differ();
    if (phase() == LearningPhase::kLearning) {
      Learn(vector);
    } else {
      Code(vector);
    }
    return {};
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    const LearningPhase phase = this->phase();
    if (!gradient_.empty()) UpdateResidual();
    gradient_ = {};
    size_t small_at = kShare + indices_.size();
    if (phase == LearningPhase::kLearning) {
      for (size_t i = 0; i < indices_.size(); ++i) {
        mean_[indices_[i]] = mean[kShare + i];
      }
      Improve(mean[kEnergy], mean.last(direction_.size()));
    } else if (novel_ == nullptr) {
      coder_->Decode(mean.subspan(kShare, code_.size()), restored_);
      small_at = kShare + code_.size();
      SetMean();
    } else {
      coder_->Decode(code_, restored_);
      kernels_.scale(mean[kShare], restored_);
      small_at = NovelValues::kHead + indices_.size();
      kernels_.add(mean.subspan(NovelValues::kHead, indices_.size()),
                   restored_);
      SetMean();
    }
    for (const Extent& e : leader_choice_->choice().small()) {
      std::ranges::copy(mean.subspan(small_at, e.size),
                        mean_.begin() + static_cast<ptrdiff_t>(e.offset));
      small_at += e.size;
    }
    // If no rank had a gradient, the step says nothing of the code.
    if (mean[kEnergy] != 0) {
      phases_.Note(context_.step, double{mean[kLost]} / mean[kEnergy]);
    }
    return mean_;
  }

  void VisitState(StateVisitor& visitor) override {
    visitor.Floats("residual", residual_);
    if (coder_ == nullptr) return;
    visitor.Floats("coder", coder_->parameters());
    PrefixedVisitor adam(visitor, "adam."), phases(visitor, "phases.");
    optimizer_->VisitState(adam);
    phases_.VisitState(phases);
  }

 private:
  // A decoder is blind to most directions.  So that what lies there does not
  // wait for ever, all lead once with values as they are, now and then.
  LearningPhase PhaseOf(uint64_t step, int size) const {
    const LearningPhase phase = phases_.At(step);
    const uint64_t cycle = step / static_cast<uint64_t>(size);
    const bool again = again_ > 0 && cycle % again_ == 0;
    return phase == LearningPhase::kCoded && again ? LearningPhase::kLearning
                                                   : phase;
  }
  LearningPhase phase() const { return PhaseOf(context_.step, context_.size); }
  size_t CodeInMessage(LearningPhase phase) const {
    return novel_ != nullptr && phase == LearningPhase::kCoded ? code_.size()
                                                               : 0;
  }
  bool leads() const {
    return context_.step % static_cast<uint64_t>(context_.size) ==
           static_cast<uint64_t>(context_.rank);
  }

  // p at the indices; without a gradient of the residual alone.
  void TakeOwn() {
    for (size_t i = 0; i < indices_.size(); ++i) {
      const float g = gradient_.empty() ? 0.0f : gradient_[indices_[i]];
      own_[i] =
          std::clamp(residual_[indices_[i]] + g, -kMaxMagnitude, kMaxMagnitude);
    }
  }
  void Scale() {
    for (size_t i = 0; i < indices_.size(); ++i) {
      scaled_[i] = std::clamp(own_[i] / units_[i], -kMaxUnits, kMaxUnits);
    }
  }
  void TakeSmall() {
    size_t at = 0;
    for (const Extent& e : leader_choice_->choice().small()) {
      for (size_t i = 0; i < e.size; ++i) {
        small_[at++] =
            std::clamp(gradient_[e.offset + i], -kMaxMagnitude, kMaxMagnitude);
      }
    }
  }

  // A coder that fails says nothing, which is the worst of codes.
  void EncodeOwn() {
    if (!coder_->Encode(scaled_, code_).ok() ||
        !kernels_.valid(Coding::kF32, code_.size(),
                        std::as_bytes(std::span(code_)))) {
      std::ranges::fill(code_, 0.0f);
    }
  }

  // restored_ ← a·D(code_), the nearest to the values; returns a.
  float Fit() {
    coder_->Decode(code_, restored_);
    double along = 0, squares = 0;
    for (size_t i = 0; i < restored_.size(); ++i) {
      along += double{scaled_[i]} * restored_[i];
      squares += double{restored_[i]} * restored_[i];
    }
    const double a = along / squares;
    const float factor = std::abs(a) <= kMaxMagnitude
                             ? static_cast<float>(a)
                             : 0.0f;  // of no, or hardly any, code
    kernels_.scale(factor, restored_);
    return factor;
  }

  // Writes the loss of restored_ against the values to the first floats of
  // `out`.
  void Judge(std::span<float> out) const {
    double lost = 0, energy = 0;
    for (size_t i = 0; i < restored_.size(); ++i) {
      const double v = scaled_[i], d = v - restored_[i];
      lost += d * d;
      energy += v * v;
    }
    out[kLost] = static_cast<float>(lost);
    out[kEnergy] = static_cast<float>(energy);
  }

  // The values as they are, and which way the coder should go.  With a server
  // only the leader's code will travel, so it is what the coder learns.
  void Learn(std::span<float> vector) {
    std::ranges::copy(own_, vector.begin() + kShare);
    std::ranges::copy(small_, vector.begin() + kShare + indices_.size());
    left_.assign(indices_.size(), 0);
    if (novel_ != nullptr && !leads()) return;
    EncodeOwn();
    Fit();
    Judge(vector);
    const auto direction = vector.last(direction_.size());
    if (!coder_->Gradient(scaled_, direction).ok() ||
        !kernels_.valid(Coding::kF32, direction.size(),
                        std::as_bytes(direction))) {
      std::ranges::fill(direction, 0.0f);
    }
  }

  void Code(std::span<float> vector) {
    EncodeOwn();
    kernels_.scale(Fit(), code_);
    Judge(vector);
    std::ranges::copy(code_, vector.begin() + kShare);
    std::ranges::copy(small_, vector.begin() + kShare + code_.size());
    KeepRest();
  }

  SharedBytes Differ() {
    float head[NovelValues::kHead] = {};
    head[kShare] = Fit();
    if (leads()) Judge(head);
    std::vector<float> rest(scaled_);
    kernels_.axpy(-1, restored_, rest);
    const std::vector<float> before(rest);
    SharedBytes payload = novel_->Write(head, rest, small_);
    // Values that were sent beside the code are restored exactly.
    for (size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] != before[i]) restored_[i] = scaled_[i];
    }
    KeepRest();
    return payload;
  }

  // The payload of a rank without a gradient.
  SharedBytes Silence() const {
    if (novel_ == nullptr || phase() == LearningPhase::kLearning) return {};
    const float head[NovelValues::kHead] = {};
    std::vector<float> rest(indices_.size());
    const std::vector<float> small(small_.size());
    return novel_->Write(head, rest, small);
  }

  // p less what the others get of it.
  void KeepRest() {
    left_.resize(indices_.size());
    for (size_t i = 0; i < indices_.size(); ++i) {
      left_[i] = own_[i] - restored_[i] * units_[i];
    }
  }

  void UpdateResidual() {
    for (const Extent& e : leader_choice_->choice().large()) {
      kernels_.axpy(1, gradient_.subspan(e.offset, e.size),
                    std::span(residual_).subspan(e.offset, e.size));
    }
    for (size_t i = 0; i < indices_.size(); ++i) {
      residual_[indices_[i]] = left_[i];
    }
  }

  // A step of the coder on the mean share of energy that it loses.
  void Improve(float energy, std::span<const float> direction) {
    if (!(energy > 0)) return;
    std::ranges::copy(direction, direction_.begin());
    kernels_.scale(1 / energy, direction_);
    if (kernels_.all_finite(direction_)) {
      optimizer_->Step(coder_->parameters(), direction_, 1);
    }
  }

  void SetMean() {
    for (size_t i = 0; i < indices_.size(); ++i) {
      mean_[indices_[i]] =
          std::clamp(restored_[i] * units_[i], -kMaxMagnitude, kMaxMagnitude);
    }
  }

  const std::shared_ptr<const LeaderChoice> leader_choice_;
  std::shared_ptr<const NovelValues> novel_;  // null: codes are summed
  const Kernels& kernels_;
  std::unique_ptr<ValueCoder> coder_;  // null: nothing to code
  std::unique_ptr<Optimizer> optimizer_;
  LearningPhases phases_;
  const uint64_t again_;
  std::vector<float> residual_;  // 0 in small segments
  std::vector<float> mean_;
  ReduceContext context_;
  std::span<const float> gradient_;  // of this step; empty: none
  // Of this step, by chosen value: where it is, in which unit, p, p in units,
  // what the code says of that, and what is left of p.
  std::vector<float> small_;
  std::vector<uint32_t> indices_;
  std::vector<float> units_, own_, scaled_, restored_, left_;
  std::vector<float> code_;
  std::vector<float> direction_;  // of the coder's step
};

MadeGradients Make(const CompressorText& text, const ParameterLayout& layout,
                   const Kernels& kernels, const ValueCoderMaker& coders) {
  LgcOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  return MakeLgc(options, layout, kernels, coders);
}

}  // namespace

std::vector<Option> FieldsOf(LgcOptions& o) {
  constexpr int64_t kMaxSteps = 1'000'000'000;
  constexpr auto kMaxRate = static_cast<int64_t>(ChunkChoice::kMaxRate);
  return {WholeOption("rate", &o.rate, 2, kMaxRate),
          WholeOption("code", &o.code, 1, 8),
          WholeOption("learn", &o.learn, 1, kMaxSteps),
          RealOption("worst", &o.worst, 0.01, 0.99),
          WholeOption("again", &o.again, 0, kMaxSteps),
          FlagOption("server", &o.server),
          WholeOption("novel", &o.novel, 2, kMaxRate),
          FlagOption("flat", &o.flat)};
}

absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeLgc(
    const LgcOptions& o, const ParameterLayout& layout, const Kernels& kernels,
    const ValueCoderMaker& coders) {
  GOSSAMER_RETURN_IF_ERROR(
      CheckPartFits("lgc", "rate", o.rate, LargestChosenFrom(layout, o.flat)));
  auto made = std::make_unique<LearnedGradients>(o, layout, kernels);
  if (made->values() == 0) {  // always dense
    return WithDenseWarmup(kAlwaysDense, layout.size(), std::move(made));
  }
  if (!coders) {
    return absl::FailedPreconditionError(
        "gradient method lgc learns an autoencoder, which this program has not "
        "got: rehearsals are without libtorch; take gossamer train, or "
        "scalecom");
  }
  GOSSAMER_ASSIGN_OR_RETURN(auto coder, coders(made->values(), o.code));
  GOSSAMER_RETURN_IF_ERROR(made->UseCoder(std::move(coder)));
  return made;
}

GOSSAMER_COMPRESSOR(lgc) = {
    .name = "lgc",
    .help = {.summary =
                 "what an autoencoder makes of one rank's choice for all",
             .property = "error feedback; bad codes fall back to scalecom",
             .bits = "0.18",
             .state = "1 per peer, 4,000 of the coder",
             .needs = "every message, a build with libtorch",
             .gamma = "–",
             .source = "Abrahamyan et al., IEEE TNNLS 2021",
             .page = "lgc"},
    .gradients = Make,
    .warmup_steps = 200};

}  // namespace gossamer
