#include "tests/gan_models/sagan_reference.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gossamer {
namespace {

Values Zeros(std::vector<int64_t> shape) {
  size_t n = 1;
  for (int64_t d : shape) n *= static_cast<size_t>(d);
  return {std::move(shape), std::vector<double>(n)};
}

// The place of an image's first pixel of a channel.
size_t At(const Values& x, int64_t n, int64_t c, int64_t h = 0, int64_t w = 0) {
  return static_cast<size_t>(
      ((n * x.shape[1] + c) * x.shape[2] + h) * x.shape[3] + w);
}

Values Relu(Values x) {
  for (double& v : x.values) v = std::max(0.0, v);
  return x;
}

Values Sum(Values x, const Values& y) {
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += y.values[i];
  return x;
}

Values Upsample(const Values& x) {
  Values y = Zeros({x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]});
  for (int64_t n = 0; n < y.shape[0]; ++n) {
    for (int64_t c = 0; c < y.shape[1]; ++c) {
      for (int64_t h = 0; h < y.shape[2]; ++h) {
        for (int64_t w = 0; w < y.shape[3]; ++w) {
          y.values[At(y, n, c, h, w)] = x.values[At(x, n, c, h / 2, w / 2)];
        }
      }
    }
  }
  return y;
}

template <typename Combine>
Values Pool(const Values& x, const Combine& of_four) {
  Values y = Zeros({x.shape[0], x.shape[1], x.shape[2] / 2, x.shape[3] / 2});
  for (int64_t n = 0; n < y.shape[0]; ++n) {
    for (int64_t c = 0; c < y.shape[1]; ++c) {
      for (int64_t h = 0; h < y.shape[2]; ++h) {
        for (int64_t w = 0; w < y.shape[3]; ++w) {
          y.values[At(y, n, c, h, w)] =
              of_four(x.values[At(x, n, c, 2 * h, 2 * w)],
                      x.values[At(x, n, c, 2 * h, 2 * w + 1)],
                      x.values[At(x, n, c, 2 * h + 1, 2 * w)],
                      x.values[At(x, n, c, 2 * h + 1, 2 * w + 1)]);
        }
      }
    }
  }
  return y;
}

Values MeanPool(const Values& x) {
  return Pool(x, [](double a, double b, double c, double d) {
    return (a + b + c + d) / 4;
  });
}

Values MaxPool(const Values& x) {
  return Pool(x, [](double a, double b, double c, double d) {
    return std::max({a, b, c, d});
  });
}

std::vector<double> Unit(std::vector<double> x) {
  double square = 0;
  for (double v : x) square += v * v;
  for (double& v : x) v /= std::sqrt(square) + 1e-12;
  return x;
}

}  // namespace

SaganReference::SaganReference(NamedValues tensors, int64_t resolution)
    : tensors_(std::move(tensors)), resolution_(resolution) {
  generator_ = Iterate("generator.", nullptr);
  discriminator_ = Iterate("discriminator.", nullptr);
  // The generator's loss comes after the discriminator's, whose step has kept
  // its vectors.
  second_pass_ = Iterate("discriminator.", &discriminator_);
}

const std::vector<double>& SaganReference::u(const std::string& name) const {
  const std::string scope = name.substr(0, name.size() - 2);
  const Vectors& all =
      name.starts_with("generator.") ? generator_ : discriminator_;
  return all.at(scope).u;
}

std::string SaganReference::WeightOf(const std::string& scope) const {
  for (const char* name : {".w", ".Matrix", ".embedding_map"}) {
    if (tensors_.contains(scope + name)) return scope + name;
  }
  return scope;
}

SaganReference::Vectors SaganReference::Iterate(const std::string& player,
                                                const Vectors* from) const {
  Vectors vectors;
  for (const auto& [name, u] : tensors_) {
    if (!name.starts_with(player) || !name.ends_with(".u")) continue;
    const std::string scope = name.substr(0, name.size() - 2);
    const std::vector<double>& start =
        from == nullptr ? u.values : from->at(scope).u;
    const std::vector<double>& w = tensors_.at(WeightOf(scope)).values;
    const size_t rows = start.size(), columns = w.size() / rows;
    Singular s{std::vector<double>(rows), std::vector<double>(columns)};
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        s.v[j] += w[i * columns + j] * start[i];
      }
    }
    s.v = Unit(s.v);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        s.u[i] += w[i * columns + j] * s.v[j];
      }
    }
    s.u = Unit(s.u);
    vectors[scope] = std::move(s);
  }
  return vectors;
}

double SaganReference::Sigma(const std::string& weight,
                             const Singular& s) const {
  const std::vector<double>& w = tensors_.at(weight).values;
  double sigma = 0;
  for (size_t i = 0; i < s.u.size(); ++i) {
    for (size_t j = 0; j < s.v.size(); ++j) {
      sigma += s.u[i] * w[i * s.v.size() + j] * s.v[j];
    }
  }
  return sigma;
}

Values SaganReference::Weight(const std::string& scope,
                              const Vectors& vectors) const {
  const std::string name = WeightOf(scope);
  Values w = tensors_.at(name);
  const double sigma = Sigma(name, vectors.at(scope));
  for (double& v : w.values) v /= sigma;
  return w;
}

Values SaganReference::Conv(const Values& x, const std::string& scope,
                            const Vectors& vectors) const {
  const Values w = Weight(scope, vectors);
  const int64_t out = w.shape[0], in = w.shape[1], kernel = w.shape[2];
  const int64_t height = x.shape[2], width = x.shape[3], padding = kernel / 2;
  const auto bias = tensors_.find(scope + ".biases");
  Values y = Zeros({x.shape[0], out, height, width});
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    for (int64_t o = 0; o < out; ++o) {
      double* const to = y.values.data() + At(y, n, o);
      if (bias != tensors_.end()) {
        std::fill_n(to, height * width, bias->second.values[o]);
      }
      for (int64_t i = 0; i < in; ++i) {
        for (int64_t a = 0; a < kernel; ++a) {
          for (int64_t b = 0; b < kernel; ++b) {
            const double weight = w.values[At(w, o, i, a, b)];
            const int64_t left = std::max<int64_t>(0, padding - b);
            const int64_t right = std::min(width, width + padding - b);
            for (int64_t h = std::max<int64_t>(0, padding - a);
                 h < std::min(height, height + padding - a); ++h) {
              const double* const from =
                  x.values.data() + At(x, n, i, h + a - padding);
              for (int64_t c = left; c < right; ++c) {
                to[h * width + c] += weight * from[c + b - padding];
              }
            }
          }
        }
      }
    }
  }
  return y;
}

Values SaganReference::Attention(const Values& x, const std::string& scope,
                                 const Vectors& vectors) const {
  const Values theta = Conv(x, scope + ".sn_conv_theta", vectors);
  const Values phi = MaxPool(Conv(x, scope + ".sn_conv_phi", vectors));
  const Values g = MaxPool(Conv(x, scope + ".sn_conv_g", vectors));
  const int64_t queries = x.shape[2] * x.shape[3], keys = queries / 4;
  Values seen = Zeros({x.shape[0], g.shape[1], x.shape[2], x.shape[3]});
  std::vector<double> weights(keys);
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    for (int64_t q = 0; q < queries; ++q) {
      double total = 0;
      for (int64_t k = 0; k < keys; ++k) {
        double score = 0;
        for (int64_t c = 0; c < theta.shape[1]; ++c) {
          score +=
              theta.values[At(theta, n, c) + q] * phi.values[At(phi, n, c) + k];
        }
        total += weights[k] = std::exp(score);
      }
      for (int64_t c = 0; c < g.shape[1]; ++c) {
        double mean = 0;
        for (int64_t k = 0; k < keys; ++k) {
          mean += weights[k] / total * g.values[At(g, n, c) + k];
        }
        seen.values[At(seen, n, c) + q] = mean;
      }
    }
  }
  Values y = Conv(seen, scope + ".sn_conv_attn", vectors);
  const double ratio = tensors_.at(scope + ".sigma_ratio").values[0];
  for (double& v : y.values) v *= ratio;
  return Sum(std::move(y), x);
}

Values SaganReference::ConditionalNorm(const Values& x,
                                       const std::string& scope) const {
  const Values& gamma = tensors_.at(scope + ".gamma");
  const Values& beta = tensors_.at(scope + ".beta");
  const std::vector<double>& labels = tensors_.at("labels.fake").values;
  // The last normalisation has one scale for all classes.
  const bool conditional = gamma.shape.size() == 2;
  const int64_t pixels = x.shape[2] * x.shape[3];
  const auto count = static_cast<double>(x.shape[0] * pixels);
  Values y = x;
  for (int64_t c = 0; c < x.shape[1]; ++c) {
    double mean = 0, variance = 0;
    for (int64_t n = 0; n < x.shape[0]; ++n) {
      for (int64_t p = 0; p < pixels; ++p) mean += x.values[At(x, n, c) + p];
    }
    mean /= count;
    for (int64_t n = 0; n < x.shape[0]; ++n) {
      for (int64_t p = 0; p < pixels; ++p) {
        variance += std::pow(x.values[At(x, n, c) + p] - mean, 2);
      }
    }
    variance /= count;
    for (int64_t n = 0; n < x.shape[0]; ++n) {
      const auto row = static_cast<int64_t>(conditional ? labels[n] : 0);
      const auto at = static_cast<size_t>(row * x.shape[1] + c);
      for (int64_t p = 0; p < pixels; ++p) {
        double& v = y.values[At(y, n, c) + p];
        v = gamma.values[at] * (v - mean) / std::sqrt(variance + 1e-5) +
            beta.values[at];
      }
    }
  }
  return y;
}

Values SaganReference::Fake() const {
  const std::string g = "generator.";
  const Values& z = tensors_.at("latents");
  const Values matrix = Weight(g + "g_snh0", generator_);
  const std::vector<double>& bias = tensors_.at(g + "g_snh0.bias").values;
  const int64_t batch = z.shape[0], latent = z.shape[1];
  Values x = Zeros({batch, matrix.shape[0] / 16, 4, 4});
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t o = 0; o < matrix.shape[0]; ++o) {
      double sum = bias[o];
      for (int64_t i = 0; i < latent; ++i) {
        sum += matrix.values[o * latent + i] * z.values[n * latent + i];
      }
      x.values[n * matrix.shape[0] + o] = sum;
    }
  }
  for (int block = 1; x.shape[2] < resolution_; ++block) {
    const std::string scope = g + "g_block" + std::to_string(block);
    const Values h = Conv(Upsample(Relu(ConditionalNorm(x, scope + ".cbn_0"))),
                          scope + ".snconv1", generator_);
    x = Sum(Conv(Relu(ConditionalNorm(h, scope + ".cbn_1")), scope + ".snconv2",
                 generator_),
            Conv(Upsample(x), scope + ".snconv3", generator_));
    if (x.shape[2] == std::min<int64_t>(32, resolution_ / 2)) {
      x = Attention(x, g + "g_non_local", generator_);
    }
  }
  x = Conv(Relu(ConditionalNorm(x, g + "g_bn")), g + "g_snconv_last",
           generator_);
  for (double& v : x.values) v = std::tanh(v);
  return x;
}

std::vector<double> SaganReference::Scores(const Values& images,
                                           const std::string& labels,
                                           const Vectors& vectors) const {
  const std::string d = "discriminator.";
  Values x = images;
  int block = 1;
  for (; x.shape[2] > 4; ++block) {
    const std::string scope = d +
                              (block == 1 ? "d_optimized_block" : "d_block") +
                              std::to_string(block);
    const Values h =
        Conv(block == 1 ? x : Relu(x), scope + ".sn_conv1", vectors);
    x = Sum(MeanPool(Conv(Relu(h), scope + ".sn_conv2", vectors)),
            MeanPool(Conv(x, scope + ".sn_conv3", vectors)));
    if (x.shape[2] == std::min<int64_t>(32, resolution_ / 2)) {
      x = Attention(x, d + "d_non_local", vectors);
    }
  }
  const std::string last = d + "d_block" + std::to_string(block);
  x = Sum(Conv(Relu(Conv(Relu(x), last + ".sn_conv1", vectors)),
               last + ".sn_conv2", vectors),
          x);
  x = Relu(x);
  const Values matrix = Weight(d + "d_sn_linear", vectors);
  const Values embedding = Weight(d + "d_embedding", vectors);
  const std::vector<double>& of = tensors_.at(labels).values;
  std::vector<double> scores;
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    double score = tensors_.at(d + "d_sn_linear.bias").values[0];
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      double h = 0;
      for (int64_t p = 0; p < 16; ++p) h += x.values[At(x, n, c) + p];
      const auto row = static_cast<int64_t>(of[n]) * x.shape[1];
      score += h * (matrix.values[c] + embedding.values[row + c]);
    }
    scores.push_back(score);
  }
  return scores;
}

double SaganReference::DiscriminatorLoss(const Values& fake) const {
  double loss = 0;
  const Values& real = tensors_.at("real");
  const auto batch = static_cast<double>(real.shape[0]);
  for (double s : Scores(real, "labels.real", discriminator_)) {
    loss += std::max(0.0, 1 - s) / batch;
  }
  for (double s : Scores(fake, "labels.fake", discriminator_)) {
    loss += std::max(0.0, 1 + s) / batch;
  }
  return loss;
}

double SaganReference::GeneratorLoss() const {
  const Values fake = Fake();
  double loss = 0;
  for (double s : Scores(fake, "labels.fake", second_pass_)) {
    loss -= s / static_cast<double>(fake.shape[0]);
  }
  return loss;
}

}  // namespace gossamer
