// Pictures per second of a core's time: from JPEG files of ImageNet's size to
// the resolution of a run, and from the file of pictures into batches.
//
// The build of the file is compared with libjpeg's plain decoding of the same
// files in the same repetition, and a batch with memcpy of as many bytes as it
// has; each figure is the median over repetitions.
//
//   image_benchmark [--resolution 128] [--repeat 9] [--json]

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>
// libjpeg's header needs the one above.
#include <jpeglib.h>

#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "gan_models/data/dataset.h"
#include "gan_models/data/image_cache_writer.h"
#include "gan_models/data/image_decoder.h"
#include "gan_models/data/image_resize.h"
#include "tests/benchmarks/timing.h"
#include "tests/gan_models/picture_files.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

struct Options {
  int resolution = 128;
  int repeat = 9;
  bool json = false;
};

// Returns the seconds of the processor that `run` takes: a core's, however many
// others want it.
double CpuSeconds(const auto& run) {
  const auto now = [] {
    timespec t = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) +
           1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  run();
  return now() - start;
}

constexpr int kFiles = 32;
constexpr int kBatch = 64, kBatches = 8;

// The mean file of ImageNet's training set has 110 kB, and most are 500 pixels
// wide.
std::vector<std::vector<uint8_t>> MakeFiles() {
  std::vector<std::vector<uint8_t>> files;
  for (int i = 0; i < kFiles; ++i) {
    files.push_back(ToJpeg(SomePicture(500, 375, static_cast<uint64_t>(i)),
                           JpegKind::kColour, 93));
  }
  return files;
}

// Decodes as the shortest program that uses libjpeg does.
void DecodePlainly(const std::vector<uint8_t>& file,
                   std::vector<uint8_t>& pixels) {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  pixels.resize(size_t{3} * info.output_width * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row =
        pixels.data() + size_t{3} * info.output_width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

std::unique_ptr<Dataset> OpenPictures(const std::string& folder,
                                      int resolution) {
  DataSpec spec;
  spec.name = "image-folder";
  spec.path = folder + "/pictures";
  constexpr size_t kPictures = 2000;
  ImageCacheWriter::Contents contents = {
      .side = resolution,
      .class_names = {"all"},
      .words = std::vector<uint32_t>(kPictures, 0),
      .source = 0};
  contents.words[0] = kEntryHeldOut;
  auto writer = ImageCacheWriter::Open(spec.path, contents);
  const auto side = static_cast<size_t>(resolution);
  std::vector<uint8_t> image(3 * side * side);
  for (size_t i = 0; i < kPictures; ++i) {
    std::fill(image.begin(), image.end(), static_cast<uint8_t>(i));
    if (!writer.ok() || !(*writer)->Keep(i, image).ok()) std::abort();
  }
  if (!(*writer)->Publish().ok()) std::abort();
  auto data = Dataset::Open(spec, 0, 1, 1);
  if (!data.ok()) std::abort();
  return *std::move(data);
}

void Run(const Options& options) {
  const auto files = MakeFiles();
  size_t bytes = 0;
  for (const auto& file : files) bytes += file.size();
  const auto side = static_cast<size_t>(options.resolution);
  const size_t values = 3 * side * side;
  std::vector<uint8_t> pixels, small(values);
  const TemporaryFolder folder;
  const auto data = OpenPictures(folder.path(), options.resolution);
  std::vector<float> batch(kBatch * values), copy(batch.size());
  std::vector<int64_t> labels(kBatch);
  volatile float sink = 0;

  std::vector<double> plain, full, scaled, made, filled, of_memcpy;
  for (int r = 0; r < options.repeat + 1; ++r) {
    const double decode = CpuSeconds([&] {
      for (const auto& file : files) DecodePlainly(file, pixels);
    });
    const auto make = [&](int min_side) {
      return CpuSeconds([&] {
        for (const auto& file : files) {
          const auto image = DecodeImage(file, {.min_side = min_side});
          ResizeCentre(*image, options.resolution, small);
        }
      });
    };
    const double at_full_size = make(0);
    const double as_built = make(2 * options.resolution);
    const double at_scale = make(options.resolution);
    const double fill = CpuSeconds([&] {
      for (int b = 0; b < kBatches; ++b) {
        data->FillBatch(RngKey(r).Fold(b), batch, labels);
      }
    });
    const double memory = CpuSeconds([&] {
      for (int b = 0; b < kBatches; ++b) {
        batch[0] = static_cast<float>(b);
        std::memcpy(copy.data(), batch.data(), batch.size() * sizeof(float));
        sink = sink + copy[values];
      }
    });
    if (r == 0) continue;  // caches and pages
    plain.push_back(kFiles / decode);
    full.push_back(decode / at_full_size);
    made.push_back(decode / as_built);
    scaled.push_back(decode / at_scale);
    filled.push_back(kBatches * kBatch / fill);
    of_memcpy.push_back(memory / fill);
  }
  const double rate = Median(made) * Median(plain);
  if (options.json) {
    std::cout << absl::StrFormat(
        "{\"resolution\":%d,\"file_bytes\":%d,\"plain_per_second\":%.0f,"
        "\"made_per_second\":%.0f,\"made_of_plain\":%.3f,"
        "\"full_of_plain\":%.3f,\"scaled_of_plain\":%.3f,"
        "\"filled_per_second\":%.0f,\"filled_of_memcpy\":%.3f}\n",
        options.resolution, bytes / kFiles, Median(plain), rate, Median(made),
        Median(full), Median(scaled), Median(filled), Median(of_memcpy));
    return;
  }
  std::cout << absl::StrFormat(
      "one core, %d files of 500x375 and %.0f kB, to %dx%d, median of %d\n"
      "libjpeg alone                  %7.0f pictures/s\n"
      "decoded, cut and resized       %7.0f pictures/s, %.2f of libjpeg alone\n"
      "  decoded at full size         %25s%.2f\n"
      "  decoded as small as allowed  %25s%.2f\n"
      "batches from the file          %7.0f pictures/s, %.3f of memcpy\n",
      kFiles, 1e-3 * static_cast<double>(bytes) / kFiles, options.resolution,
      options.resolution, options.repeat, Median(plain), rate, Median(made), "",
      Median(full), "", Median(scaled), Median(filled), Median(of_memcpy));
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--json") {
      options.json = true;
    } else if (arg == "--resolution" && i + 1 < argc) {
      options.resolution = std::atoi(argv[++i]);
    } else if (arg == "--repeat" && i + 1 < argc) {
      options.repeat = std::max(1, std::atoi(argv[++i]));
    } else {
      std::cerr << "unknown argument " << arg
                << "\nusage: image_benchmark [--resolution N] [--repeat N] "
                   "[--json]\n";
      return 2;
    }
  }
  gossamer::Run(options);
  return 0;
}
