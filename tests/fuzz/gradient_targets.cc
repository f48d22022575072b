// Bytes that ranks send in an all-reduce of compressed gradients: a leader's
// message, payloads, and the names of methods.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/linear_coder.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

// LGC in the phase in which codes travel.
constexpr char kCodes[] = "lgc:rate=20,full=0,learn=1,worst=0.99,again=0";
constexpr char kCodesOfAServer[] =
    "lgc:rate=20,full=0,learn=1,worst=0.99,again=0,server=1,novel=8";
// The step of the messages; some steps have passed.
constexpr uint64_t kStep = 8;

// The first byte of an input chooses the method; new ones are appended, so that
// kept inputs keep theirs.
constexpr std::array kMethods = {"scalecom:rate=100",
                                 "top-k:rate=65",
                                 "adacomp",
                                 "adacomp:bin=50,conv=300",
                                 "qsgd:coding=gamma",
                                 "scalecom:flat=1",
                                 kCodes,
                                 kCodesOfAServer};

// Layers of four and of two dimensions, and a small one.
const ParameterLayout& GradientLayout() {
  static const auto& layout =
      *new ParameterLayout({{"c", Player::kGenerator, {16, 8, 3, 3}, {}},
                            {"c.b", Player::kGenerator, {16}, {}},
                            {"d", Player::kDiscriminator, {41, 33}, {}}});
  return layout;
}

void StepAlone(GradientCompressor& method, uint64_t step) {
  std::vector<float> gradient(GradientLayout().size());
  RngKey(1).Fold(step).FillGaussian(gradient);
  const AllReduceForm form = method.Form(step, 1);
  std::vector<float> vector(form.floats);
  method.Begin({step, 0, 1}, gradient);
  const SharedBytes message =
      form.leader == 0 ? method.MakeLeaderMessage() : SharedBytes();
  const SharedBytes own = method.Contribute(message, vector);
  if (form.payloads != nullptr) {
    std::ranges::fill(vector, 0.0f);
    form.payloads->Add(form.payloads->Accept(own)->bytes(), vector);
  }
  method.Finish(vector);
}

const std::vector<std::unique_ptr<GradientCompressor>>& Methods() {
  static const auto* const methods = [] {
    auto* all = new std::vector<std::unique_ptr<GradientCompressor>>;
    for (const char* name : kMethods) {
      all->push_back(*GradientCompressor::Create(
          name, GradientLayout(), HostKernels(), MakeLinearCoder));
      for (uint64_t step = 0; step < kStep; ++step) {
        StepAlone(*all->back(), step);
      }
    }
    return all;
  }();
  return *methods;
}

void Finite(std::span<const float> values, const char* claim) {
  for (const float v : values) Require(std::isfinite(v), claim);
}

// Contributes to any message that a leader may have sent.
void LeaderMessage(GradientCompressor& method, const AllReduceForm& form,
                   Bytes message) {
  if (!form.check_leader_message(message).ok()) return;
  const std::vector<float> gradient(GradientLayout().size(), 0.5f);
  std::vector<float> vector(form.floats);
  method.Begin({kStep, 1, 2}, gradient);
  const SharedBytes own =
      method.Contribute(SharedBytes::FromVector(Copy(message)), vector);
  if (form.payloads != nullptr) {
    const auto accepted = form.payloads->Accept(own);
    Require(accepted.ok(), "what a leader asks for can be said");
    form.payloads->Add(accepted->bytes(), vector);
  }
  Finite(method.Finish(vector), "what a leader asks for is there");
}

void GradientMessage(Bytes input) {
  Input in(input);
  const size_t which = in.Byte() % kMethods.size();
  GradientCompressor& method = *Methods()[which];
  const AllReduceForm form = method.Form(kStep, 2);
  const bool both = form.check_leader_message && form.payloads != nullptr;
  const bool of_leader =
      both ? in.Byte() % 2 == 0 : form.check_leader_message != nullptr;
  const Bytes bytes = in.Rest();
  if (of_leader) return LeaderMessage(method, form, bytes);
  const auto payload =
      form.payloads->Accept(SharedBytes::FromVector(Copy(bytes)));
  if (!payload.ok()) return;
  std::vector<float> sum(form.floats);
  // Adds the payload as often as keeps a step of many ranks finite.
  for (int i = 0; i < 3; ++i) form.payloads->Add(payload->bytes(), sum);
  Finite(sum, "what is accepted is finite");
}

void GradientMethodName(Bytes input) {
  const auto method = GradientCompressor::Create(
      Text(input), GradientLayout(), HostKernels(), MakeLinearCoder);
  if (!method.ok()) return;
  Require((*method)->Form(0, 2).floats > 0, "a method averages something");
}

}  // namespace

std::span<const Target> GradientTargets() {
  static constexpr Target kTargets[] = {
      {"gradients", GradientMessage}, {"gradient-method", GradientMethodName}};
  return kTargets;
}

}  // namespace gossamer::fuzz
