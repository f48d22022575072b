// Each gradient method's share of a step's time: all the work of a rank on its
// gradient except the all-reduce itself.
//
// As in kernels_benchmark, a figure is the median over repetitions of bytes per
// second over memcpy's of the same repetition, but in seconds of this thread's
// processor.  Bytes are the necessary streams: g and m read, m written (12 a
// value; without memory only g, 4), and the chosen or decoded values.  A rank
// of lgc leads in all steps, and has one row while its autoencoder learns and
// one once codes travel.
//
//   gradients_benchmark [--megabytes 64] [--repeat 9] [--only NAME]

#include <time.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/compress/gradient_compressor.h"
#include "gan_models/learned_coder.h"
#include "tests/benchmarks/timing.h"

namespace gossamer {
namespace {

struct Options {
  size_t megabytes = 64;  // size of the gradient
  int repeat = 9;
  std::string only;  // methods whose name contains this
};

double CpuSeconds(const auto& run) {
  const auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) +
           1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  run();
  return now() - start;
}

// One rank of two, which leads every other step.
class Rank {
 public:
  Rank(const std::string& method, const ParameterLayout& layout)
      : compressor_(*GradientCompressor::Create(method, layout, HostKernels(),
                                                MakeLearnedCoder)) {}

  // The rank's part from Begin to Contribute.
  void Encode(uint64_t step, std::span<const float> gradient) {
    form_ = compressor_->Form(step, 2);
    vector_.resize(form_.floats);
    compressor_->Begin({step, 0, 2}, gradient);
    if (form_.leader >= 0) leader_message_ = compressor_->MakeLeaderMessage();
    payload_ = compressor_->Contribute(leader_message_, vector_);
  }
  // Decodes another rank's payload, if the method has payloads.
  void Decode() {
    if (!adds()) return;
    const auto accepted = form_.payloads->Accept(payload_);
    form_.payloads->Add(accepted->bytes(), vector_);
  }
  void Finish() { sink_ = compressor_->Finish(vector_)[0]; }
  bool has_residual() const { return compressor_->has_residual(); }
  bool adds() const { return form_.payloads != nullptr; }
  // Returns the bytes of a step's leader message, and of the payload or the
  // summed floats.
  size_t bytes() const {
    return leader_message_.size() +
           (adds() ? payload_.size() : vector_.size() * sizeof(float));
  }

 private:
  const std::unique_ptr<GradientCompressor> compressor_;
  AllReduceForm form_;
  std::vector<float> vector_;
  SharedBytes leader_message_, payload_;
  volatile float sink_ = 0;
};

void Run(const Options& options) {
  constexpr int64_t kColumns = 1000;
  const auto rows = static_cast<int64_t>(options.megabytes) * 250;
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {rows, kColumns}, {}}});
  const size_t n = layout.size();
  std::vector<float> gradients[2] = {std::vector<float>(n),
                                     std::vector<float>(n)};
  for (int i = 0; i < 2; ++i) RngKey(i).FillGaussian(gradients[i]);
  std::vector<float> to(n);
  volatile float sink = 0;
  const auto copy = [&] {
    std::memcpy(to.data(), gradients[0].data(), n * sizeof(float));
    sink = to[n / 2];
  };
  std::cout << absl::StrFormat("%-48s %10s %10s %12s\n", "method", "encode",
                               "add", "bytes/value");
  for (const char* const method :
       {"scalecom:rate=100", "scalecom:rate=100,beta=0.1", "top-k:rate=100",
        "adacomp:bin=50", "adacomp:bin=500", "qsgd", "lgc:full=0,learn=1000000",
        "lgc:full=0,learn=1,worst=0.99,again=0",
        "lgc:full=1,learn=1000000,server=1",
        "lgc:full=1,learn=1,worst=0.99,again=0,server=1"}) {
    const std::string_view name = method;
    if (name.find(options.only) == std::string_view::npos) continue;
    const bool learned = name.substr(0, 3) == "lgc";
    if (learned && !MakeLearnedCoder(16, 4).ok()) continue;  // needs libtorch
    Rank rank(method, layout);
    std::vector<double> encode, add;
    uint64_t step = 0;
    // The first steps have an empty residual, or learn; they are not timed.
    for (int r = learned ? -40 : -3; r < options.repeat; ++r, ++step) {
      const double copied = 8.0 * static_cast<double>(n) / CpuSeconds(copy);
      const auto& g = gradients[step % 2];
      double seconds = CpuSeconds([&] { rank.Encode(step, g); });
      const double added = CpuSeconds([&] { rank.Decode(); });
      seconds += CpuSeconds([&] { rank.Finish(); });
      if (r < 0) continue;
      const double streams = rank.has_residual() ? 12 : 4;
      encode.push_back(streams * static_cast<double>(n) / seconds / copied);
      add.push_back(4.0 * static_cast<double>(n) / added / copied);
    }
    std::cout << absl::StrFormat(
        "%-48s %10.2f %10s %12.4f\n", method, Median(encode),
        rank.adds() ? absl::StrFormat("%.2f", Median(add)) : "-",
        static_cast<double>(rank.bytes()) / static_cast<double>(n));
  }
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--megabytes" && i + 1 < argc) {
      options.megabytes = std::max(1, std::atoi(argv[++i]));
    } else if (arg == "--repeat" && i + 1 < argc) {
      options.repeat = std::max(1, std::atoi(argv[++i]));
    } else if (arg == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else {
      std::cerr << "unknown argument " << arg
                << "\nusage: gradients_benchmark [--megabytes N] [--repeat N] "
                   "[--only NAME]\n";
      return 2;
    }
  }
  gossamer::Run(options);
  return 0;
}
