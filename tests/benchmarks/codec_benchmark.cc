// What each codec costs and what it loses: bits per parameter on the wire and
// the relative error ‖v − C(v)‖² / ‖v‖² of a Gaussian, and how fast a snapshot
// is encoded and packed, and an exchange unpacked and completed.
//
// Times are taken as in kernels_benchmark: every repetition times memcpy and
// then each codec on arrays far larger than the caches; a figure is the median
// of bytes per second over memcpy's of the same repetition.  Bytes are the
// streams read plus those written; memcpy counts twice its length.  As in
// training, x moves between two encodings.  Of what is packed, the bytes are
// those before.
//
//   codec_benchmark [--megabytes 64] [--repeat 9] [--markdown]
//       [codec[:options] ...]

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/codec/codec.h"
#include "algorithms/codec/packer.h"
#include "runtime/base/rng.h"
#include "tests/benchmarks/timing.h"

namespace gossamer {
namespace {

struct Options {
  size_t megabytes = 64;  // of each array of floats
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

// What travels of a payload: `packed`, or all of it.
std::span<const std::byte> Pack(Packer* packer, const Encoded& payload,
                                std::span<std::byte> packed) {
  const size_t size = packer != nullptr ? packer->Pack(payload, packed) : 0;
  return size > 0 ? packed.first(size) : payload.bytes;
}

void SetBitsAndError(const Codec& codec, Packer* packer,
                     std::span<const float> v, Row& row) {
  std::vector<std::byte> bytes(codec.EncodedSize(codec.format()));
  std::vector<std::byte> packed(bytes.size());
  codec.Encode(codec.format(), v, {}, 1, bytes);
  std::vector<float> left(v.begin(), v.end()), unused(v.size());
  const Encoded payload{codec.format(), bytes};
  row.bits = 8.0 * static_cast<double>(Pack(packer, payload, packed).size()) /
             static_cast<double>(v.size());
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
        replica_(x_.size()),
        difference_(x_.size()),
        to_(x_.size()) {
    RngKey(1).FillGaussian(x_);
    RngKey(2).FillGaussian(step_);
  }

  Row Run(const Codec& codec) {
    const double n = static_cast<double>(x_.size());
    const size_t size = codec.EncodedSize(codec.format());
    Row row;
    const std::unique_ptr<Packer> packer = codec.MakePacker();
    SetBitsAndError(codec, packer.get(), x_, row);
    const bool replicas = codec.needs_replica();
    std::vector<std::byte> mine(size), theirs(size), packed(size), wire(size);
    codec.Encode(codec.format(), step_, {}, 2, theirs);
    const auto arrived = Pack(packer.get(), {codec.format(), theirs}, wire);
    const std::span<float> replica =
        replicas ? std::span<float>(replica_) : std::span<float>();
    const std::span<float> difference =
        replicas ? std::span<float>(difference_) : std::span<float>();
    const double streams = replicas ? 4 : 2;
    for (int r = 0; r < options_.repeat; ++r) {
      HostKernels().axpy(1e-4f, step_, x_);
      Record(
          4 * n * (streams - 1) + static_cast<double>(size),
          [&] {
            codec.Encode(codec.format(), x_, replica, 3, mine);
            Pack(packer.get(), {codec.format(), mine}, packed);
          },
          row.encode, row.encode_share);
      const Encoded m{codec.format(), mine}, t{codec.format(), theirs};
      Record(
          4 * n * streams + 2 * static_cast<double>(size),
          [&] {
            if (arrived.size() < size) {
              packer->Unpack(codec.format(), arrived, theirs);
            }
            codec.Complete(&m, &t, 1e-6f, difference, x_);
          },
          row.apply, row.apply_share);
    }
    return row;
  }

  const ParameterLayout& layout() const { return layout_; }
  double copy_rate() const { return Median(copies_); }

 private:
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
  std::vector<float> x_, step_, replica_, difference_, to_;
  std::vector<double> copies_;
  volatile float sink_ = 0;
};

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
                                   row.error, Median(row.encode),
                                   Median(row.encode_share), Median(row.apply),
                                   Median(row.apply_share));
    };
    using Format = absl::FormatSpec<std::string, float, double, double, double,
                                    double, double, double>;
    options.markdown
        ? print(Format("| `%s` | %.3g | %.3f | %.2g | %.1f | %.2f | %.1f | "
                       "%.2f |\n"))
        : print(Format("%-28s %6.3g %8.3f %9.2g %8.1f %6.2f %8.1f %6.2f\n"));
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
  }
  return gossamer::Main(options);
}
