// The bandwidth of the fused kernels against the memory bandwidth of one core.
//
// Every repetition times memcpy and then each kernel on arrays far larger than
// the caches.  A kernel's figure is the median over repetitions of its bytes
// per second over memcpy's of the same repetition, so that a machine whose
// speed changes during the run does not change it.  Bytes are the streams read
// plus those written; memcpy counts twice its length.  A selection is also
// compared with a pure read pass of the same arrays (`all_finite`) in the same
// repetition: values per second over values per second, without a replica and,
// over two such passes, with one.
//
//   kernels_benchmark [--megabytes 64] [--repeat 15] [--only NAME] [--tables]
//       [--json]

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/kernels/kernels.h"
#include "tests/benchmarks/timing.h"

namespace gossamer {
namespace {

struct Options {
  size_t megabytes = 64;  // size of each array of floats
  int repeat = 15;
  bool all_tables = false;
  bool json = false;
  std::string only;  // kernels whose name contains this
};

// Arrays that all kernels share.  The values do not change the speed of most
// kernels, as long as they stay normal and finite.
class Workspace {
 public:
  explicit Workspace(size_t n)
      : x(n), y(n), g(n), m(n), v(n, 1.0f), payloads{Array(n), Array(n)} {
    // Gaussian values, since the time of a selection depends on the
    // distribution.
    RngKey(1).FillGaussian(x);
    RngKey(2).FillGaussian(g);
    for (size_t i = 0; i < n; ++i) {
      y[i] = 0.999f * x[i];
      m[i] = 0.5f * g[i];
    }
  }
  struct Array {
    explicit Array(size_t n)
        : scales(ScaleBytes(Coding::kInt8, n)),
          codes(CodeBytes(Coding::kF32, n)) {}
    std::vector<std::byte> scales, codes;
  };
  CodedSpan Coded(const Kernels& k, Coding coding, int which) {
    Array& to = payloads[which];
    k.encode(coding, which == 0 ? x : g, {}, 1, to.scales.data(),
             to.codes.data());
    return {coding, to.scales.data(), to.codes.data()};
  }
  std::vector<float> x, y, g, m, v;
  Array payloads[2];
  CodedSpan theirs, mine;
  volatile double sink = 0;
};

struct Case {
  std::string name;
  double bytes_per_value;
  std::function<void()> prepare;
  std::function<void()> run;
};

double CodedBytes(Coding coding) {
  constexpr size_t kMany = size_t{1} << 20;
  return static_cast<double>(ScaleBytes(coding, kMany) +
                             CodeBytes(coding, kMany)) /
         kMany;
}

void AddOptimizerCases(const Kernels& k, Workspace& w,
                       std::vector<Case>& cases) {
  constexpr AdamStep kStep = {.beta1 = 0.5f,
                              .gain1 = 0.5f,
                              .beta2 = 0.9f,
                              .gain2 = 0.1f,
                              .correction1 = 1,
                              .correction2 = 1,
                              .epsilon = 1e-8f,
                              .rate = 1e-7f};
  const auto nothing = [] {};
  cases.push_back({"oadam", 36, nothing, [&k, &w, step = kStep] {
                     k.oadam(step, w.g, w.m, w.v, w.y, w.x);
                   }});
  cases.push_back({"adam", 28, nothing, [&k, &w, step = kStep] {
                     k.adam(step, w.g, w.m, w.v, w.x);
                   }});
  cases.push_back({"optimistic", 20, nothing,
                   [&k, &w] { k.optimistic(1e-7f, 1e-7f, w.g, w.m, w.x); }});
  cases.push_back({"axpy", 12, nothing, [&k, &w] { k.axpy(1e-7f, w.g, w.x); }});
  cases.push_back({"compensated_axpy", 20, nothing,
                   [&k, &w] { k.compensated_axpy(1e-7f, w.g, w.x, w.y); }});
  cases.push_back({"ema", 12, nothing, [&k, &w] { k.ema(1e-3f, w.x, w.y); }});
  cases.push_back({"add", 12, nothing, [&k, &w] { k.add(w.g, w.m); }});
  cases.push_back({"scale", 8, nothing, [&k, &w] { k.scale(0.999f, w.m); }});
  cases.push_back({"all_finite", 4, nothing,
                   [&k, &w] { w.sink = w.sink + k.all_finite(w.x); }});
  cases.push_back({"squared_norm", 4, nothing,
                   [&k, &w] { w.sink = w.sink + k.squared_norm(w.x); }});
  cases.push_back({"sketch", 4, nothing, [&k, &w] {
                     std::array<double, kSketchBuckets> sums;
                     k.sketch(w.x, 7, sums);
                     w.sink = w.sink + sums[0];
                   }});
}

void AddCodingCases(const Kernels& k, Workspace& w, std::vector<Case>& cases) {
  const struct {
    Coding coding;
    const char* name;
  } kCodings[] = {{Coding::kInt4, "int4"},
                  {Coding::kInt8, "int8"},
                  {Coding::kLm2, "lm2"},
                  {Coding::kSign, "sign"},
                  {Coding::TopK(64), "top-64"},
                  {Coding::Qsgd(7, 512, Coding::kMax), "qsgd"},
                  {Coding::kBf16, "bf16"},
                  {Coding::kF32, "f32"}};
  for (const auto& [coding, name] : kCodings) {
    const double coded = CodedBytes(coding);
    const auto encode = [&k, &w, coding = coding](std::span<float> replica) {
      k.encode(coding, w.x, replica, 1, w.payloads[0].scales.data(),
               w.payloads[0].codes.data());
    };
    // As in training, x has moved by a little since the last snapshot.
    const auto move = [&k, &w] { k.axpy(1e-4f, w.g, w.x); };
    cases.push_back({absl::StrFormat("encode %s", name), 12 + coded, move,
                     [encode, &w] { encode(w.y); }});
    cases.push_back({absl::StrFormat("encode %s stateless", name), 4 + coded,
                     [] {}, [encode] { encode({}); }});
    const auto fill = [&k, &w, coding = coding] {
      w.theirs = w.Coded(k, coding, 0);
      w.mine = w.Coded(k, coding, 1);
    };
    cases.push_back(
        {absl::StrFormat("apply %s", name), 16 + 2 * coded, fill,
         [&k, &w] { k.apply(&w.theirs, &w.mine, 1e-7f, w.m, w.x); }});
    cases.push_back(
        {absl::StrFormat("apply %s stateless", name), 8 + 2 * coded, fill,
         [&k, &w] { k.apply(&w.theirs, &w.mine, 1e-7f, {}, w.x); }});
    cases.push_back(
        {absl::StrFormat("valid %s", name), coded, fill,
         [&k, &w, coding = coding] {
           w.sink = w.sink + k.valid(coding, w.x.size(),
                                     std::span(w.theirs.codes,
                                               CodeBytes(coding, w.x.size())));
         }});
  }
}

// The selection of top-k, over a pure read pass of its input.
struct Selection {
  const char* name;
  bool replica;
  std::vector<double> shares = {};
};

void MeasureSelection(const Kernels& k, Workspace& w, Selection& s) {
  const std::span<float> replica =
      s.replica ? std::span(w.y) : std::span<float>();
  if (s.replica) k.axpy(1e-4f, w.g, w.x);
  const double read = Seconds([&] {
    w.sink = w.sink + k.all_finite(w.x) + (s.replica && k.all_finite(w.y));
  });
  const double selection = Seconds([&] {
    k.encode(Coding::TopK(64), w.x, replica, 1, w.payloads[0].scales.data(),
             w.payloads[0].codes.data());
  });
  s.shares.push_back(read / selection);
}

void RunSelections(const Kernels& kernels, const Options& options,
                   Workspace& w) {
  Selection selections[] = {{"top-64 of x", false},
                            {"top-64 of x - replica", true}};
  for (Selection& s : selections) {
    const std::string name = absl::StrFormat("%s, of a read pass", s.name);
    if (name.find(options.only) == std::string::npos) continue;
    for (int r = 0; r < options.repeat; ++r) MeasureSelection(kernels, w, s);
    std::cout << absl::StrFormat(
        options.json ? "{\"table\":\"%s\",\"kernel\":\"%s\","
                       "\"of_read_pass\":%.3f}\n"
                     : "%s: %-40s %10.2f\n",
        std::string(kernels.name), name, Median(s.shares));
  }
}

void Run(const Kernels& kernels, const Options& options) {
  const size_t n = options.megabytes * 1000 * 1000 / sizeof(float);
  Workspace w(n);
  std::vector<Case> cases;
  AddOptimizerCases(kernels, w, cases);
  AddCodingCases(kernels, w, cases);
  std::erase_if(cases, [&](const Case& c) {
    return c.name.find(options.only) == std::string::npos;
  });
  if (cases.empty()) return RunSelections(kernels, options, w);

  std::vector<float> from(n, 1.0f), to(n);
  const auto copy = [&] {
    std::memcpy(to.data(), from.data(), n * sizeof(float));
    w.sink = w.sink + to[n / 2];
  };
  std::vector<std::vector<double>> rates(cases.size()), ratios(cases.size());
  std::vector<double> copy_rates;
  copy();
  for (int r = 0; r < options.repeat; ++r) {
    for (size_t i = 0; i < cases.size(); ++i) {
      cases[i].prepare();
      const double copy_rate = 8e-9 * n / Seconds(copy);
      const double rate =
          1e-9 * cases[i].bytes_per_value * n / Seconds(cases[i].run);
      copy_rates.push_back(copy_rate);
      rates[i].push_back(rate);
      ratios[i].push_back(rate / copy_rate);
    }
  }

  const std::string table(kernels.name);
  if (!options.json) {
    std::cout << absl::StrFormat(
        "%s, arrays of %d MB, median of %d; memcpy %.1f GB/s\n"
        "%-24s %10s %10s\n",
        table, options.megabytes, options.repeat, Median(copy_rates), "kernel",
        "GB/s", "of memcpy");
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    std::cout << absl::StrFormat(
        options.json ? "{\"table\":\"%s\",\"kernel\":\"%s\","
                       "\"gigabytes_per_second\":%.2f,\"of_memcpy\":%.3f}\n"
                     : "%.0s%-24s %10.2f %10.2f\n",
        table, cases[i].name, Median(rates[i]), Median(ratios[i]));
  }
  RunSelections(kernels, options, w);
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--json") {
      options.json = true;
    } else if (arg == "--tables") {
      options.all_tables = true;
    } else if (arg == "--megabytes" && i + 1 < argc) {
      options.megabytes = std::max(1, std::atoi(argv[++i]));
    } else if (arg == "--repeat" && i + 1 < argc) {
      options.repeat = std::max(1, std::atoi(argv[++i]));
    } else if (arg == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else {
      std::cerr << "unknown argument " << arg
                << "\nusage: kernels_benchmark [--megabytes N] [--repeat N] "
                   "[--only NAME] [--tables] [--json]\n";
      return 2;
    }
  }
  const auto tables = gossamer::AvailableKernels();
  for (const gossamer::Kernels* kernels : tables) {
    gossamer::Run(*kernels, options);
    if (!options.all_tables) break;
  }
  return 0;
}
