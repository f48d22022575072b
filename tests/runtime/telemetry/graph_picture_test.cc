// The picture of a graph is a PNG with ink on it.

#include "runtime/telemetry/graph_picture.h"

#include <cairo.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "topology/mixing_schedule.h"

namespace gossamer {
namespace {

MixingMatrix Ring(int size) {
  auto schedule = MakeSchedule({}, size, 1);
  EXPECT_TRUE(schedule.ok());
  return MatrixOfRound(**schedule, 1);
}

TEST(GraphPictureTest, WritesAReadablePngWithInkOnIt) {
  const std::string path = testing::TempDir() + "/graph_picture_test.png";
  const MixingMatrix w = Ring(5);
  ASSERT_TRUE(DrawMixing(w, LayOut("ring", w), "ring of 5", path).ok());
  cairo_surface_t* read = cairo_image_surface_create_from_png(path.c_str());
  ASSERT_EQ(cairo_surface_status(read), CAIRO_STATUS_SUCCESS);
  EXPECT_EQ(cairo_image_surface_get_width(read), 1520);
  EXPECT_EQ(cairo_image_surface_get_height(read), 820);
  const unsigned char* pixels = cairo_image_surface_get_data(read);
  const int stride = cairo_image_surface_get_stride(read);
  int dark = 0;
  for (int y = 0; y < 820; ++y) {
    for (int x = 0; x < 1520; ++x) dark += pixels[y * stride + 4 * x] < 128;
  }
  EXPECT_GT(dark, 5000);
  cairo_surface_destroy(read);
  std::filesystem::remove(path);
}

TEST(GraphPictureTest, SaysWhereItCannotWrite) {
  const MixingMatrix w = Ring(3);
  const absl::Status status =
      DrawMixing(w, LayOut("ring", w), "ring", "/nonexistent/a.png");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(status.message()).find("/nonexistent/a.png"),
            std::string::npos);
}

}  // namespace
}  // namespace gossamer
