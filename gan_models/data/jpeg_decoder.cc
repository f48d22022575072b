#include "gan_models/data/jpeg_decoder.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
// libjpeg's headers need the two above.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// A progressive file that repeats its scans costs time without end; encoders
// write about ten.
constexpr int kMaxScans = 100;
// libjpeg's own arrays: the coefficients of a progressive picture of 2^26
// pixels.
constexpr long kMaxLibraryBytes = 512L << 20;

// The decoder, and the way back from an error of libjpeg.  The functions that
// may be left by longjmp() have no variable with a destructor.
struct Decoder {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX] = {};

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&info); }
};

[[noreturn]] void Fail(j_common_ptr info) {
  auto* const decoder = static_cast<Decoder*>(info->client_data);
  info->err->format_message(info, decoder->message);
  std::longjmp(decoder->failed, 1);
}

// Warnings that leave every pixel as it was written.
bool IsHarmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM ||
         code == JWRN_JFIF_MAJOR || code == JWRN_BOGUS_ICC;
}

// libjpeg fills with grey what it cannot read, and warns; such a picture is
// refused.
void OnMessage(j_common_ptr info, int level) {
  if (level < 0 && !IsHarmless(info->err->msg_code)) Fail(info);
}

void OnProgress(j_common_ptr info) {
  auto* const decoder = static_cast<Decoder*>(info->client_data);
  if (decoder->info.input_scan_number <= kMaxScans) return;
  std::snprintf(decoder->message, sizeof decoder->message, "more than %d scans",
                kMaxScans);
  std::longjmp(decoder->failed, 1);
}

bool ReadHeader(Decoder& decoder, std::span<const uint8_t> file) {
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.info.client_data = &decoder;
  decoder.errors.error_exit = Fail;
  decoder.errors.emit_message = OnMessage;
  decoder.errors.output_message = [](j_common_ptr) {};
  if (setjmp(decoder.failed) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.progress.progress_monitor = OnProgress;
  decoder.info.progress = &decoder.progress;
  decoder.info.mem->max_memory_to_use = kMaxLibraryBytes;
  jpeg_mem_src(&decoder.info, file.data(), file.size());
  jpeg_read_header(&decoder.info, /*require_image=*/TRUE);
  return true;
}

// Chooses the size and the colours of the output, whose shorter side is at
// least `min_side` if the picture's is.
bool Prepare(Decoder& decoder, int min_side) {
  jpeg_decompress_struct& info = decoder.info;
  if (setjmp(decoder.failed) != 0) return false;
  // libjpeg converts everything but four components, which it gives as CMYK.
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
  const auto shorter = std::min(info.image_width, info.image_height);
  info.scale_denom = 8;
  info.scale_num = 8;
  // The sizes with fast inverse transforms.
  while (min_side > 0 && info.scale_num > 1 &&
         shorter * (info.scale_num / 2) / 8 >=
             static_cast<unsigned>(min_side)) {
    info.scale_num /= 2;
  }
  jpeg_calc_output_dimensions(&info);
  return true;
}

// Reads all rows into `pixels`, of as many bytes as the output has.
bool ReadRows(Decoder& decoder, uint8_t* pixels) {
  jpeg_decompress_struct& info = decoder.info;
  if (setjmp(decoder.failed) != 0) return false;
  jpeg_start_decompress(&info);
  const size_t row_bytes =
      size_t{info.output_width} * static_cast<size_t>(info.output_components);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + row_bytes * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// Ink to light, without a colour profile.  Files with Adobe's marker have
// inverted inks.
std::vector<uint8_t> CmykToRgb(const std::vector<uint8_t>& cmyk,
                               bool inverted) {
  std::vector<uint8_t> rgb(cmyk.size() / 4 * 3);
  const auto light = [&](size_t i) {
    return inverted ? int{cmyk[i]} : 255 - cmyk[i];
  };
  for (size_t p = 0; p < cmyk.size() / 4; ++p) {
    for (size_t c = 0; c < 3; ++c) {
      rgb[3 * p + c] = static_cast<uint8_t>(
          (light(4 * p + c) * light(4 * p + 3) + 127) / 255);
    }
  }
  return rgb;
}

absl::Status Damaged(const Decoder& decoder) {
  return absl::DataLossError(absl::StrCat("JPEG: ", decoder.message));
}

}  // namespace

absl::StatusOr<DecodedImage> DecodeJpeg(std::span<const uint8_t> file,
                                        const DecodeOptions& options) {
  Decoder decoder;
  if (!ReadHeader(decoder, file)) return Damaged(decoder);
  jpeg_decompress_struct& info = decoder.info;
  GOSSAMER_RETURN_IF_ERROR(
      CheckImageSize(info.image_width, info.image_height, options));
  if (info.num_components == 2 || info.num_components > 4) {
    return absl::DataLossError(absl::StrCat(
        "JPEG: ", info.num_components,
        " components; only 1 (grey), 3 (colour) and 4 (inks) have a meaning"));
  }
  if (!Prepare(decoder, options.min_side)) return Damaged(decoder);
  DecodedImage image = {
      .width = static_cast<int>(info.output_width),
      .height = static_cast<int>(info.output_height),
      .rgb = {},
      .full_width = static_cast<int>(info.image_width),
      .full_height = static_cast<int>(info.image_height),
      .reduction = static_cast<int>(info.scale_denom / info.scale_num)};
  const bool inks = info.out_color_space == JCS_CMYK;
  image.rgb.resize(size_t{info.output_width} * info.output_height *
                   (inks ? 4 : 3));
  if (!ReadRows(decoder, image.rgb.data())) return Damaged(decoder);
  if (inks) image.rgb = CmykToRgb(image.rgb, info.saw_Adobe_marker != 0);
  return image;
}

}  // namespace gossamer
