// gpu_kernels: what only a GPU can show of the kernels.
//
//   gpu_kernels [--megabytes N] [--json FILE] [--no-bits] [--gtest_...]
//
// Runs kernels_test on the GPU: every function's bits against the reference.
// Then measures each kernel's bytes a second beside a copy within the device of
// arrays of the same size, in the same run.  Exit code 0: all bits are equal;
// 1: some are not; 2: the arguments are wrong; 3: there is no GPU to run on.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/kernels/cuda/calls.h"
#include "algorithms/kernels/cuda/kernels.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

constexpr int kNoGpu = 3;
constexpr int kRepetitions = 5, kCallsEach = 10;

struct Arguments {
  size_t megabytes = 256;  // of an array of floats
  std::string json;
  bool bits = true;
};

struct Row {
  std::string name;
  double bytes;  // read and written
  double seconds;
};

void Check(const char* error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "gpu_kernels: %s\n", error);
  std::exit(1);
}

template <typename T>
DeviceSpan<T> Allocate(size_t n) {
  void* memory = nullptr;
  Check(CudaCalls().allocate(std::max<size_t>(1, n) * sizeof(T), &memory));
  Check(CudaCalls().clear(nullptr, memory, n * sizeof(T)));
  return {static_cast<T*>(memory), n, {Device::kCuda, 0}};
}

// The best of some repetitions, each long enough for a clock of the host.
double SecondsOf(const std::function<void()>& call) {
  double best = 1e9;
  for (int r = 0; r < kRepetitions; ++r) {
    Check(CudaCalls().synchronize(nullptr));
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kCallsEach; ++i) call();
    Check(CudaCalls().synchronize(nullptr));
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / kCallsEach);
  }
  return best;
}

std::vector<Row> Measure(size_t n) {
  const DeviceKernels& k = CudaKernels();
  std::vector<DeviceSpan<float>> a;
  for (int i = 0; i < 5; ++i) a.push_back(Allocate<float>(n));
  std::vector<float> values(n);
  RngKey(1).Fold("values").FillGaussian(values);
  for (const auto& span : a) {
    Check(CudaCalls().copy(nullptr, span.data, values.data(), 4 * n));
  }
  const auto sums = Allocate<double>(NormSumsOf(n));
  const auto buckets = Allocate<double>(SketchSumsOf(n));
  const auto flag = Allocate<uint32_t>(1);
  const double four = 4.0 * static_cast<double>(n);
  std::vector<Row> rows;
  const auto measure = [&](const std::string& name, double bytes,
                           const std::function<void()>& call) {
    rows.push_back({name, bytes, SecondsOf(call)});
  };
  measure("copy", 2 * four, [&] {
    Check(CudaCalls().copy(nullptr, a[1].data, a[0].data, 4 * n));
  });
  const AdamStep step = {.beta1 = 0.5f,
                         .gain1 = 0.5f,
                         .beta2 = 0.9f,
                         .gain2 = 0.1f,
                         .correction1 = 1,
                         .correction2 = 1,
                         .epsilon = 1e-8f,
                         .rate = 1e-8f};
  measure("axpy", 3 * four, [&] { k.axpy(nullptr, 1e-9f, a[0], a[1]); });
  measure("ema", 3 * four, [&] { k.ema(nullptr, 1e-3f, a[0], a[1]); });
  measure("adam", 7 * four,
          [&] { k.adam(nullptr, step, a[0], a[1], a[2], a[4]); });
  measure("oadam", 9 * four,
          [&] { k.oadam(nullptr, step, a[0], a[1], a[2], a[3], a[4]); });
  measure("all_within", four,
          [&] { k.all_within(nullptr, 1e30f, a[0], flag.data); });
  measure("squared_norm", four, [&] { k.squared_norm(nullptr, a[0], sums); });
  measure("sketch", four, [&] { k.sketch(nullptr, a[0], 7, buckets); });
  const size_t rows_of_matrix = std::min<size_t>(512, n);
  const size_t columns = n / rows_of_matrix;
  const auto matrix = a[0].subspan(0, rows_of_matrix * columns);
  const auto u = a[1].subspan(0, rows_of_matrix);
  const auto v = a[2].subspan(0, columns);
  measure("product", four, [&] { k.product(nullptr, matrix, v, u); });
  measure("transposed_product", four,
          [&] { k.transposed_product(nullptr, matrix, u, v); });

  const struct {
    const char* name;
    Coding coding;
  } codings[] = {{"bf16", Coding::kBf16},
                 {"int8", Coding::kInt8},
                 {"int4", Coding::kInt4},
                 {"lm2", Coding::kLm2},
                 {"sign", Coding::kSign},
                 {"unit", Coding::Unit(0.25f)},
                 {"top64", Coding::TopK(64)},
                 {"qsgd", Coding::Qsgd(7, 512, Coding::kMax)}};
  for (const auto& [name, coding] : codings) {
    const size_t scale_bytes = ScaleBytes(coding, n);
    const size_t code_bytes = CodeBytes(coding, n);
    const auto scales = Allocate<std::byte>(scale_bytes);
    const auto codes = Allocate<std::byte>(code_bytes);
    const auto coded = static_cast<double>(scale_bytes + code_bytes);
    const std::string of = std::string(" ") + name;
    measure("encode" + of, 3 * four + coded, [&] {
      k.encode(nullptr, coding, a[0], a[1], 7, scales.data, codes.data);
    });
    const CodedSpan span = {coding, scales.data, codes.data};
    measure("apply" + of, 4 * four + 2 * coded,
            [&] { k.apply(nullptr, &span, &span, 0.1f, a[2], a[3]); });
    measure("check" + of, coded, [&] {
      k.valid_within(nullptr, coding, n, codes.data, kMaxMagnitude, flag.data);
      k.valid_scales(nullptr, n, span, flag.data);
    });
    Check(CudaCalls().release(scales.data));
    Check(CudaCalls().release(codes.data));
  }
  return rows;
}

double GigabytesPerSecond(const Row& row) {
  return row.bytes / row.seconds / 1e9;
}

void Report(const Arguments& arguments, const DeviceFacts& facts, bool equal,
            const std::vector<Row>& rows) {
  const double copy = GigabytesPerSecond(rows[0]);
  std::printf("%-20s %9s %9s  of %zu MB arrays on %s\n", "kernel", "GB/s",
              "of copy", arguments.megabytes, facts.name);
  for (const Row& row : rows) {
    const double speed = GigabytesPerSecond(row);
    std::printf("%-20s %9.1f %9.3f\n", row.name.c_str(), speed, speed / copy);
  }
  if (arguments.json.empty()) return;
  std::FILE* const file = std::fopen(arguments.json.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "gpu_kernels: cannot write %s\n",
                 arguments.json.c_str());
    std::exit(1);
  }
  std::fprintf(file, "{\"device\": \"%s\", \"capability\": \"%d.%d\", ",
               facts.name, facts.major, facts.minor);
  std::fprintf(file, "\"megabytes\": %zu, \"bits\": \"%s\", \"kernels\": [",
               arguments.megabytes,
               !arguments.bits ? "not compared"
               : equal         ? "equal"
                               : "differ");
  for (size_t i = 0; i < rows.size(); ++i) {
    const double speed = GigabytesPerSecond(rows[i]);
    std::fprintf(file,
                 "%s\n  {\"name\": \"%s\", \"gb_per_s\": %.1f, \"of_copy\": "
                 "%.4f}",
                 i == 0 ? "" : ",", rows[i].name.c_str(), speed, speed / copy);
  }
  std::fprintf(file, "]}\n");
  std::fclose(file);
}

int Run(int argc, char** argv) {
  int devices = 0;
  const char* error = CudaCalls().count(&devices);
  if (error != nullptr || devices == 0) {
    std::fprintf(stderr, "gpu_kernels: no GPU: %s\n",
                 error != nullptr ? error : "the driver has none");
    return kNoGpu;
  }
  DeviceFacts facts;
  Check(CudaCalls().describe(0, &facts));
  testing::InitGoogleTest(&argc, argv);
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--no-bits") {
      arguments.bits = false;
    } else if (option == "--megabytes" && i + 1 < argc) {
      arguments.megabytes = std::max(1, std::atoi(argv[++i]));
    } else if (option == "--json" && i + 1 < argc) {
      arguments.json = argv[++i];
    } else {
      std::fprintf(stderr,
                   "usage: gpu_kernels [--megabytes N] [--json FILE] "
                   "[--no-bits]\n");
      return 2;
    }
  }
  const bool equal = !arguments.bits || RUN_ALL_TESTS() == 0;
  Report(arguments, facts, equal, Measure(arguments.megabytes << 18));
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) { return gossamer::Run(argc, argv); }
