// The self-attention GAN's networks once more: plain loops in double precision,
// written from the paper and the published code, without libtorch.
//
// A second implementation to hold the networks against.  It computes losses
// only; gradients are their differences.

#ifndef GOSSAMER_TESTS_GAN_MODELS_SAGAN_REFERENCE_H_
#define GOSSAMER_TESTS_GAN_MODELS_SAGAN_REFERENCE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gossamer {

// Values of a tensor in row-major order.
struct Values {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
using NamedValues = std::map<std::string, Values>;

// One step's losses with hinge, as a function of the weights.  The vectors of
// the power iterations are taken at the weights of the beginning, and stay when
// weights move: they are constants of the gradient.
class SaganReference {
 public:
  // `tensors` holds weights, vectors u, latents, real, labels.real and
  // labels.fake, by the names of gan_gradients.
  SaganReference(NamedValues tensors, int64_t resolution);

  NamedValues& tensors() { return tensors_; }
  // [batch, 3, resolution, resolution]
  Values Fake() const;
  double GeneratorLoss() const;
  double DiscriminatorLoss(const Values& fake) const;
  // A vector u after the step.
  const std::vector<double>& u(const std::string& name) const;

 private:
  // The left and right vectors of one step of the power iteration.
  struct Singular {
    std::vector<double> u, v;
  };
  using Vectors = std::map<std::string, Singular>;

  Vectors Iterate(const std::string& player, const Vectors* from) const;
  double Sigma(const std::string& weight, const Singular& s) const;
  std::string WeightOf(const std::string& scope) const;
  // Of a scope's weight over its singular value.
  Values Weight(const std::string& scope, const Vectors& vectors) const;
  Values Conv(const Values& x, const std::string& scope,
              const Vectors& vectors) const;
  Values Attention(const Values& x, const std::string& scope,
                   const Vectors& vectors) const;
  Values ConditionalNorm(const Values& x, const std::string& scope) const;
  std::vector<double> Scores(const Values& x, const std::string& labels,
                             const Vectors& vectors) const;

  NamedValues tensors_;
  const int64_t resolution_;
  Vectors generator_, discriminator_, second_pass_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_GAN_MODELS_SAGAN_REFERENCE_H_
