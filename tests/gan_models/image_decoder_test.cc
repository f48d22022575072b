// Picture files to pixels: every kind that people have comes out as RGB, and a
// file that is cut, damaged or claims too much is refused with the reason.

#include "gan_models/data/image_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/picture_files.h"
#include "tests/testing/peak_memory.h"

namespace gossamer {
namespace image_decoder_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string Refusal(const std::vector<uint8_t>& file,
                    const DecodeOptions& options = {}) {
  const auto image = DecodeImage(file, options);
  EXPECT_EQ(image.status().code(), absl::StatusCode::kDataLoss);
  return std::string(image.status().message());
}

// The mean absolute difference, in levels.
double Difference(const DecodedImage& a, const DecodedImage& b) {
  EXPECT_EQ(a.rgb.size(), b.rgb.size());
  double sum = 0;
  for (size_t i = 0; i < std::min(a.rgb.size(), b.rgb.size()); ++i) {
    sum += std::abs(int{a.rgb[i]} - int{b.rgb[i]});
  }
  return sum / static_cast<double>(a.rgb.size());
}

DecodedImage Grey(const DecodedImage& image) {
  DecodedImage grey = image;
  for (size_t p = 0; p < grey.rgb.size(); p += 3) {
    grey.rgb[p + 1] = grey.rgb[p + 2] = grey.rgb[p];
  }
  return grey;
}

TEST(ImageDecoderTest, EveryKindOfJpegBecomesRgb) {
  const DecodedImage picture = SomePicture(50, 37, 1);
  for (const JpegKind kind : {JpegKind::kColour, JpegKind::kGrey,
                              JpegKind::kInks, JpegKind::kProgressive}) {
    const auto decoded = DecodeImage(ToJpeg(picture, kind, 95), {});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->width, 50);
    EXPECT_EQ(decoded->height, 37);
    const DecodedImage& expected =
        kind == JpegKind::kGrey ? Grey(picture) : picture;
    EXPECT_LT(Difference(*decoded, expected), 6) << static_cast<int>(kind);
  }
}

TEST(ImageDecoderTest, EveryKindOfPngBecomesRgb) {
  const DecodedImage picture = SomePicture(50, 37, 2);
  for (const PngKind kind :
       {PngKind::kRgb, PngKind::kGrey, PngKind::kSixteenBits}) {
    const auto decoded = DecodeImage(ToPng(picture, kind), {});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    const DecodedImage& expected =
        kind == PngKind::kGrey ? Grey(picture) : picture;
    EXPECT_EQ(decoded->rgb, expected.rgb) << static_cast<int>(kind);
  }
}

TEST(ImageDecoderTest, TransparentPixelsShowWhite) {
  const DecodedImage picture = SomePicture(8, 4, 3);
  const auto decoded = DecodeImage(ToPng(picture, PngKind::kAlpha), {});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  for (size_t i = 0; i < picture.rgb.size(); ++i) {
    const bool left = i / 3 % 8 < 4;
    EXPECT_EQ(decoded->rgb[i], left ? 255 : picture.rgb[i]) << i;
  }
}

TEST(ImageDecoderTest, PalettesAreLookedUp) {
  const DecodedImage picture = SomePicture(8, 4, 4);
  const auto decoded = DecodeImage(ToPng(picture, PngKind::kPalette), {});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(std::equal(decoded->rgb.begin(), decoded->rgb.begin() + 3,
                         picture.rgb.begin()));
  EXPECT_TRUE(std::equal(decoded->rgb.end() - 3, decoded->rgb.end(),
                         picture.rgb.end() - 3));
}

TEST(ImageDecoderTest, AJpegIsDecodedSmallerAsLongAsItIsLargeEnough) {
  const auto file = ToJpeg(SomePicture(500, 376, 5), JpegKind::kColour);
  const struct {
    int min_side, width, height;
  } kCases[] = {{0, 500, 376},   {376, 500, 376}, {189, 500, 376},
                {188, 250, 188}, {94, 125, 94},   {1, 63, 47}};
  for (const auto& c : kCases) {
    const auto decoded = DecodeImage(file, {.min_side = c.min_side});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->width, c.width) << c.min_side;
    EXPECT_EQ(decoded->height, c.height) << c.min_side;
  }
}

TEST(ImageDecoderTest, AFileThatIsNoPictureIsRefusedWithTheReason) {
  EXPECT_THAT(Refusal({}), HasSubstr("empty"));
  const std::string html = "<html>404 not found</html>";
  EXPECT_THAT(Refusal({html.begin(), html.end()}),
              HasSubstr("neither JPEG nor PNG; it begins with \"<html>404"));
  EXPECT_THAT(Refusal({'G', 'I', 'F', '8', '9', 'a', 0, 1}),
              HasSubstr("\"GIF89a\\x00\\x01\""));
}

TEST(ImageDecoderTest, EveryTruncationIsRefused) {
  const DecodedImage picture = SomePicture(40, 30, 6);
  for (const auto& file :
       {ToJpeg(picture, JpegKind::kColour),
        ToJpeg(picture, JpegKind::kProgressive), ToPng(picture, PngKind::kRgb),
        ToPng(picture, PngKind::kAlpha)}) {
    // The last bytes of a PNG are those of an empty chunk.
    const bool png = file[0] == 0x89;
    for (size_t size = 0; size + (png ? 12 : 0) < file.size(); ++size) {
      EXPECT_FALSE(
          DecodeImage({file.begin(), file.begin() + static_cast<long>(size)},
                      {})
              .ok())
          << size << " of " << file.size();
    }
  }
}

TEST(ImageDecoderTest, BytesBehindAPictureAreNoDamage) {
  const DecodedImage picture = SomePicture(40, 30, 7);
  for (auto file :
       {ToJpeg(picture, JpegKind::kColour), ToPng(picture, PngKind::kRgb)}) {
    file.insert(file.end(), 100, 0x55);
    EXPECT_TRUE(DecodeImage(file, {}).ok());
  }
}

TEST(ImageDecoderTest, AJpegWithDamagedDataIsRefused) {
  auto file = ToJpeg(SomePicture(64, 64, 8), JpegKind::kColour);
  // A marker in the middle of the data ends it early.
  file[file.size() / 2] = 0xff;
  file[file.size() / 2 + 1] = 0xd9;
  EXPECT_THAT(Refusal(file), HasSubstr("JPEG: Corrupt JPEG data"));
}

// The position of the height in a JPEG's frame header.
size_t HeightAt(const std::vector<uint8_t>& file) {
  for (size_t i = 2; i + 4 < file.size();) {
    if (file[i + 1] == 0xc0 || file[i + 1] == 0xc2) return i + 5;
    i += 2 + size_t{file[i + 2]} * 256 + file[i + 3];
  }
  return 0;
}

TEST(ImageDecoderTest, AHugeClaimedSizeIsRefusedBeforeMemoryIsTaken) {
  std::vector<std::vector<uint8_t>> files;
  for (const JpegKind kind : {JpegKind::kColour, JpegKind::kProgressive}) {
    auto file = ToJpeg(SomePicture(64, 64, 9), kind);
    const size_t at = HeightAt(file);
    ASSERT_GT(at, 0u);
    std::fill(file.begin() + static_cast<long>(at),
              file.begin() + static_cast<long>(at) + 4, 0xfa);
    files.push_back(std::move(file));
  }
  files.push_back(RawPng({.width = 60000, .height = 60000}));
  files.push_back(RawPng({.width = 1u << 30, .height = 1}));
  for (const auto& file : files) {
    ResetPeakMemory();
    const int64_t before = PeakMemory();
    EXPECT_THAT(Refusal(file), AnyOf(HasSubstr("a picture has 1 to 67108864"),
                                     HasSubstr("PNG: ")));
    EXPECT_LT(PeakMemory() - before, kPeakFactor * 2048);
  }
}

TEST(ImageDecoderTest, TheCallerSetsTheMostPixels) {
  const auto file = ToJpeg(SomePicture(40, 30, 10), JpegKind::kColour);
  EXPECT_TRUE(DecodeImage(file, {.max_pixels = 1200}).ok());
  EXPECT_THAT(Refusal(file, {.max_pixels = 1199}),
              HasSubstr("claims 40x30 pixels"));
}

TEST(ImageDecoderTest, AJpegOfTooManyScansIsRefused) {
  // A progressive file, the last scan of which is repeated.
  auto file = ToJpeg(SomePicture(16, 16, 11), JpegKind::kProgressive);
  size_t scan = file.size() - 2;
  while (!(file[scan] == 0xff && file[scan + 1] == 0xda)) --scan;
  const std::vector<uint8_t> again(file.begin() + static_cast<long>(scan),
                                   file.end() - 2);
  for (int i = 0; i < 200; ++i) {
    file.insert(file.end() - 2, again.begin(), again.end());
  }
  EXPECT_THAT(Refusal(file),
              AnyOf(HasSubstr("more than 100 scans"), HasSubstr("JPEG: ")));
}

}  // namespace image_decoder_test
}  // namespace gossamer
