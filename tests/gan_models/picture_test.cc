// Pictures of samples: grids, scatter plots, and PNG files that read back the
// same.

#include "gan_models/evaluation/picture.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/testing.h"

namespace gossamer {
namespace picture_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::array<int, 3> At(const Picture& p, int x, int y) {
  const auto* const pixel = p.rgb.data() + 3 * (y * p.width + x);
  return {pixel[0], pixel[1], pixel[2]};
}

TEST(PictureTest, GridPlacesAndScalesImages) {
  // Two images of 2x2: black, and red with a green first pixel.
  std::vector<float> images(2 * 3 * 4, -1);
  std::fill_n(images.begin() + 12, 4, 1.0f);
  images[12] = -1;
  images[16] = 1;
  const Picture p = ImageGrid(images, /*size=*/2, /*columns=*/1, /*scale=*/3);
  EXPECT_EQ(p.width, 3 + 6 + 3);
  EXPECT_EQ(p.height, 3 + 6 + 3 + 6 + 3);
  EXPECT_THAT(At(p, 2, 2), ElementsAre(255, 255, 255));
  EXPECT_THAT(At(p, 3, 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(At(p, 8, 8), ElementsAre(0, 0, 0));
  EXPECT_THAT(At(p, 3, 12), ElementsAre(0, 255, 0));
  EXPECT_THAT(At(p, 5, 14), ElementsAre(0, 255, 0));
  EXPECT_THAT(At(p, 6, 12), ElementsAre(255, 0, 0));
  EXPECT_THAT(At(p, 8, 17), ElementsAre(255, 0, 0));
  EXPECT_THAT(At(p, 8, 18), ElementsAre(255, 255, 255));
}

TEST(PictureTest, GridClampsAndRoundsValues) {
  const std::vector<float> image = {-7, 0, 7};
  EXPECT_THAT(At(ImageGrid(image, 1, 1, 1), 1, 1), ElementsAre(0, 128, 255));
}

TEST(PictureTest, ScatterHasUpwardsUpAndKeepsStrayPointsOut) {
  const std::vector<float> reference = {-0.5f, 0};
  const std::vector<float> samples = {0, 0.5f, 1e30f, -1e30f};
  const Picture p = Scatter(reference, samples, 1, 100);
  EXPECT_THAT(At(p, 25, 50), ElementsAre(190, 190, 190));
  EXPECT_THAT(At(p, 50, 25), ElementsAre(20, 90, 200));
  EXPECT_THAT(At(p, 50, 75), ElementsAre(255, 255, 255));
}

TEST(PictureTest, PngComesBackTheSame) {
  const TemporaryFolder folder;
  const std::vector<float> points = {0.1f, 0.2f, -0.7f, 0.4f};
  const Picture p = Scatter(points, points, 1, 50);
  const std::string path = folder / "p.png";
  ASSERT_TRUE(WritePng(p, path).ok());
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_TRUE(png_image_begin_read_from_file(&image, path.c_str()));
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> rgb(PNG_IMAGE_SIZE(image));
  ASSERT_TRUE(png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr));
  EXPECT_EQ(rgb, p.rgb);
  EXPECT_THAT(std::string(WritePng(p, "/no/such/p.png").message()),
              HasSubstr("/no/such/p.png"));
}

}  // namespace picture_test
}  // namespace gossamer
