// The cost and the loss of each codec: bits per parameter on the wire and
// the relative error ‖v − C(v)‖² / ‖v‖² of a Gaussian, and how fast a snapshot
// is encoded and an exchange completed.
//
// Times are taken as in kernels_benchmark: every repetition times memcpy and
// then each codec on arrays far larger than the caches; a figure is the median
// of bytes per second over memcpy's of the same repetition.  Bytes are the
// streams read plus those written; memcpy counts twice its length.  As in
// training, x moves between two encodings.  A codec whose two ends share a
// memory has no error of one payload; both ends take turns here as they do on
// an edge, and its bits are the mean over the exchanges.
//
// A codec with fragments exchanges the first one each time, and its bits are
// per parameter of the whole.  The format that "auto" sends depends on the
// link: here it is int4, with which it begins.
//
//   codec_benchmark [--megabytes 64] [--repeat 9] [--markdown]
//       [codec[:options] ...]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/compress/codec.h"
#include "tests/benchmarks/timing.h"

namespace gossamer {
namespace {

struct Options {
  size_t megabytes = 64;  // size of each array of floats
  int repeat = 9;
  bool markdown = false;
  std::vector<std::string> codecs;
};

struct Row {
  double bits = 0, error = 0;
  std::vector<double> encode, encode_share, apply, apply_share;
};

ParameterLayout LayoutOf(size_t n) {
  const auto rows = static_cast<int64_t>(n / kChunkSize);
  return ParameterLayout(
      {{"g", Player::kGenerator, {rows, int64_t{kChunkSize}}, {}}});
}

void SetBitsAndError(const Codec& codec, std::span<const float> v, Row& row) {
  std::vector<std::byte> bytes(codec.EncodedSize(codec.format()));
  codec.Encode(codec.format(), v, {}, 1, bytes);
  std::vector<float> left(v.begin(), v.end()), unused(v.size());
  const Encoded payload{codec.format(), bytes};
  row.bits =
      8.0 * static_cast<double>(bytes.size()) / static_cast<double>(v.size());
  codec.Complete(&payload, nullptr, 0, left, unused);  // left = v − decoded
  row.error = HostKernels().squared_norm(left) / HostKernels().squared_norm(v);
}

class Benchmark {
 public:
  explicit Benchmark(const Options& options)
      : options_(options),
        layout_(LayoutOf(options.megabytes * 1000 * 1000 / sizeof(float))),
        x_(layout_.size()),
        step_(x_.size()),
        other_(x_.size()),
        to_(x_.size()) {
    RngKey(1).FillGaussian(x_);
    RngKey(2).FillGaussian(step_);
    other_ = step_;
  }

  Row Run(const Codec& codec) {
    if (codec.memory() == EdgeMemory::kShared) return RunShared(codec);
    const CodecPart part = codec.part(0);
    Row row = RunPart(part);
    row.bits *=
        static_cast<double>(part.extent.size) / static_cast<double>(x_.size());
    return row;
  }

  const ParameterLayout& layout() const { return layout_; }
  double copy_rate() const { return Median(copies_); }

 private:
  Row RunPart(const CodecPart& part) {
    const Codec& codec = *part.codec;
    const auto [offset, length] = part.extent;
    const std::span x = std::span(x_).subspan(offset, length);
    const std::span step = std::span(step_).subspan(offset, length);
    const double n = static_cast<double>(x.size());
    const size_t size = codec.EncodedSize(codec.format());
    Row row;
    SetBitsAndError(codec, x, row);
    const bool replicas = codec.needs_replica();
    std::vector<std::byte> mine(size), theirs(size);
    codec.Encode(codec.format(), step, {}, 3, theirs);
    std::vector<float> replica(replicas ? x.size() : 0);
    std::vector<float> difference(replicas ? x.size() : 0);
    const double read = 4 * n * (replicas ? 3 : 1);
    const double applied = 4 * n * (replicas ? 4 : 2);
    for (int r = 0; r < options_.repeat; ++r) {
      HostKernels().axpy(1e-4f, step, x);
      Record(
          read + static_cast<double>(size),
          [&] { codec.Encode(codec.format(), x, replica, 3, mine); },
          row.encode, row.encode_share);
      const Encoded m{codec.format(), mine, 3}, t{codec.format(), theirs, 3};
      Record(
          applied + 2 * static_cast<double>(size),
          [&] {
            max_magnitude_ =
                codec.MagnitudeBound(t, 1e6f);  // as an edge asks what arrives
            codec.Complete(&m, &t, 1e-6f, difference, x);
          },
          row.apply, row.apply_share);
    }
    return row;
  }

  // Both ends' memories advance together; one end is timed.
  Row RunShared(const Codec& codec) {
    const double n = static_cast<double>(x_.size());
    Row row;
    row.error = std::numeric_limits<double>::quiet_NaN();
    std::vector<float> here(codec.memory_size()), there(here);
    double sent = 0;
    for (int r = 0; r < options_.repeat; ++r) {
      HostKernels().axpy(1e-4f, step_, x_);
      const uint64_t key = static_cast<uint64_t>(r) + 3;
      Encoded m{codec.FormatFor(here), {}, key};
      Encoded t{codec.FormatFor(there), {}, key};
      std::vector<std::byte> mine(codec.EncodedSize(m.format));
      std::vector<std::byte> theirs(codec.EncodedSize(t.format));
      m.bytes = mine;
      t.bytes = theirs;
      codec.Encode(t.format, other_, there, key, theirs);
      Record(
          4 * n + static_cast<double>(mine.size()),
          [&] { codec.Encode(m.format, x_, here, key, mine); }, row.encode,
          row.encode_share);
      Record(
          4 * n * 2 + static_cast<double>(mine.size() + theirs.size()),
          [&] { codec.Complete(&m, &t, 1e-6f, here, x_); }, row.apply,
          row.apply_share);
      codec.Complete(&t, &m, 1e-6f, there, other_);
      sent += static_cast<double>(mine.size());
    }
    row.bits = 8 * sent / (n * options_.repeat);
    return row;
  }

  void Record(double bytes, const auto& run, std::vector<double>& rates,
              std::vector<double>& shares) {
    const double copied = 2.0 * sizeof(float) * static_cast<double>(to_.size());
    const double copy =
        1e-9 * copied / Seconds([&] {
          std::memcpy(to_.data(), step_.data(), to_.size() * sizeof(float));
          sink_ = sink_ + to_[to_.size() / 2];
        });
    const double rate = 1e-9 * bytes / Seconds(run);
    copies_.push_back(copy);
    rates.push_back(rate);
    shares.push_back(rate / copy);
  }

  const Options options_;
  const ParameterLayout layout_;
  volatile float max_magnitude_ = 0;
  std::vector<float> x_, step_, other_, to_;
  std::vector<double> copies_;
  volatile float sink_ = 0;
};

std::string Error(const Row& row) {
  return std::isnan(row.error) ? "" : absl::StrFormat("%.2g", row.error);
}

int Main(const Options& options) {
  Benchmark benchmark(options);
  std::cout
      << (options.markdown
              ? "| codec | γ | bits | relative error | encode GB/s | of "
                "memcpy | apply GB/s | of memcpy |\n"
                "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
              : "codec, gamma, bits per parameter, relative error, encode "
                "in GB/s and of memcpy, apply the same\n");
  for (const std::string& name : options.codecs) {
    const auto codec = Codec::Create(name, benchmark.layout());
    if (!codec.ok()) {
      std::cerr << codec.status().message() << "\n";
      return 2;
    }
    const Row row = benchmark.Run(**codec);
    const auto print = [&](const auto& format) {
      std::cout << absl::StrFormat(format, name, (*codec)->gamma(), row.bits,
                                   Error(row), Median(row.encode),
                                   Median(row.encode_share), Median(row.apply),
                                   Median(row.apply_share));
    };
    using Format = absl::FormatSpec<std::string, float, double, std::string,
                                    double, double, double, double>;
    options.markdown
        ? print(Format("| `%s` | %.3g | %.3f | %s | %.1f | %.2f | %.1f | "
                       "%.2f |\n"))
        : print(Format("%-28s %6.3g %8.3f %9s %8.1f %6.2f %8.1f %6.2f\n"));
  }
  std::cout << absl::StrFormat("\n%s, arrays of %d MB, memcpy %.1f GB/s\n",
                               std::string(HostKernels().name),
                               options.megabytes, benchmark.copy_rate());
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--markdown") {
      options.markdown = true;
    } else if (arg == "--megabytes" && i + 1 < argc) {
      options.megabytes = std::max(1, std::atoi(argv[++i]));
    } else if (arg == "--repeat" && i + 1 < argc) {
      options.repeat = std::max(1, std::atoi(argv[++i]));
    } else if (!arg.starts_with("-")) {
      options.codecs.emplace_back(arg);
    } else {
      std::cerr << "unknown argument " << arg
                << "\nusage: codec_benchmark [--megabytes N] [--repeat N] "
                   "[--markdown] [codec[:options] ...]\n";
      return 2;
    }
  }
  if (options.codecs.empty()) {
    for (const std::string_view name : gossamer::Codec::Names()) {
      options.codecs.emplace_back(name);
    }
    options.codecs.emplace_back("innov-int4:fragments=4");
  }
  return gossamer::Main(options);
}
