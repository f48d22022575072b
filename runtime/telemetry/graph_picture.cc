#include "runtime/telemetry/graph_picture.h"

#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gossamer {
namespace {

constexpr int kWidth = 1520;
constexpr int kHeight = 820;
constexpr double kSide = 640;  // of each of the two panels
constexpr double kTop = 120;
constexpr double kGraphLeft = 70;
constexpr double kMatrixLeft = 790;

struct Color {
  double r, g, b;
};
constexpr Color kInk = {0.13, 0.14, 0.18};
constexpr Color kEdge = {0.16, 0.38, 0.62};
constexpr Color kPaper = {1, 1, 1};

void Use(cairo_t* cr, Color c) { cairo_set_source_rgb(cr, c.r, c.g, c.b); }

// Returns a colour from paper over teal to ink; t in [0, 1].
Color Heat(double t) {
  constexpr Color kMiddle = {0.20, 0.60, 0.66};
  const Color from = t < 0.5 ? Color{0.97, 0.97, 0.95} : kMiddle;
  const Color to = t < 0.5 ? kMiddle : Color{0.10, 0.12, 0.33};
  const double s = t < 0.5 ? 2 * t : 2 * t - 1;
  return {from.r + s * (to.r - from.r), from.g + s * (to.g - from.g),
          from.b + s * (to.b - from.b)};
}

double TextWidth(cairo_t* cr, const std::string& text) {
  cairo_text_extents_t extents;
  cairo_text_extents(cr, text.c_str(), &extents);
  return extents.x_advance;
}

// Draws the text centred at (x, y) in both directions.
void TextAt(cairo_t* cr, double x, double y, const std::string& text) {
  cairo_font_extents_t font;
  cairo_font_extents(cr, &font);
  cairo_move_to(cr, x - TextWidth(cr, text) / 2,
                y + (font.ascent - font.descent) / 2);
  cairo_show_text(cr, text.c_str());
}

void DrawGraph(cairo_t* cr, const GraphLayout& layout) {
  const double radius = std::clamp(
      160.0 / std::sqrt(static_cast<double>(layout.nodes.size())) / 2, 4.0,
      24.0);
  auto x = [&](int i) {
    return kGraphLeft + radius + layout.nodes[i].x * (kSide - 2 * radius);
  };
  auto y = [&](int i) {
    return kTop + radius + layout.nodes[i].y * (kSide - 2 * radius);
  };
  double largest = 0;
  for (const GraphEdge& e : layout.edges) {
    largest = std::max(largest, e.weight);
  }
  // Dense graphs get thinner and fainter lines, or they are one blot.
  const double crowd =
      std::min(1.0, 150.0 / (1 + static_cast<double>(layout.edges.size())));
  cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
  for (const GraphEdge& e : layout.edges) {
    cairo_set_source_rgba(cr, kEdge.r, kEdge.g, kEdge.b, 0.35 + 0.5 * crowd);
    cairo_set_line_width(
        cr, 0.4 + (1.0 + 5.0 * e.weight / largest) * std::sqrt(crowd));
    cairo_move_to(cr, x(e.a), y(e.a));
    cairo_line_to(cr, x(e.b), y(e.b));
    cairo_stroke(cr);
  }
  cairo_set_font_size(cr, radius * 0.9);
  for (int i = 0; i < static_cast<int>(layout.nodes.size()); ++i) {
    cairo_new_path(cr);
    cairo_arc(cr, x(i), y(i), radius, 0, 2 * M_PI);
    Use(cr, kPaper);
    cairo_fill_preserve(cr);
    Use(cr, kInk);
    cairo_set_line_width(cr, 1.6);
    cairo_stroke(cr);
    // A smaller circle has no room for a number.
    if (radius >= 8) TextAt(cr, x(i), y(i), absl::StrCat(i));
  }
}

void DrawMatrix(cairo_t* cr, const MixingMatrix& w, double largest) {
  const int m = w.size();
  const double cell = kSide / m;
  // Cells meet without seams when their edges are not smoothed.
  cairo_set_antialias(cr, CAIRO_ANTIALIAS_NONE);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < m; ++j) {
      Use(cr, Heat(w(i, j) / largest));
      cairo_rectangle(cr, kMatrixLeft + j * cell, kTop + i * cell, cell, cell);
      cairo_fill(cr);
    }
  }
  cairo_set_antialias(cr, CAIRO_ANTIALIAS_DEFAULT);
  Use(cr, kInk);
  cairo_set_line_width(cr, 1.2);
  cairo_rectangle(cr, kMatrixLeft, kTop, kSide, kSide);
  cairo_stroke(cr);
  // In smaller cells numbers cannot be read.
  if (m > 16) return;
  cairo_set_font_size(cr, std::min(16.0, cell * 0.32));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < m; ++j) {
      if (w(i, j) == 0) continue;
      // The numbers stand out from the colour below them.
      Use(cr, w(i, j) > 0.45 * largest ? kPaper : kInk);
      TextAt(cr, kMatrixLeft + (j + 0.5) * cell, kTop + (i + 0.5) * cell,
             absl::StrFormat("%.2f", w(i, j)));
    }
  }
}

void DrawScale(cairo_t* cr, double largest) {
  constexpr int kSteps = 128;
  constexpr double kLeft = kMatrixLeft + kSide + 16;
  constexpr double kBar = 14;
  cairo_set_antialias(cr, CAIRO_ANTIALIAS_NONE);
  for (int s = 0; s < kSteps; ++s) {
    Use(cr, Heat(1 - (s + 0.5) / kSteps));
    cairo_rectangle(cr, kLeft, kTop + s * kSide / kSteps, kBar,
                    kSide / kSteps + 1);
    cairo_fill(cr);
  }
  cairo_set_antialias(cr, CAIRO_ANTIALIAS_DEFAULT);
  Use(cr, kInk);
  cairo_set_font_size(cr, 15);
  for (double t : {0.0, 0.5, 1.0}) {
    TextAt(cr, kLeft + kBar + 24, kTop + (1 - t) * kSide,
           absl::StrFormat("%.3g", t * largest));
  }
}

}  // namespace

absl::Status DrawMixing(const MixingMatrix& w, const GraphLayout& layout,
                        const std::string& title, const std::string& path) {
  const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, kWidth, kHeight),
      cairo_surface_destroy);
  const std::unique_ptr<cairo_t, void (*)(cairo_t*)> context(
      cairo_create(surface.get()), cairo_destroy);
  cairo_t* cr = context.get();
  Use(cr, kPaper);
  cairo_paint(cr);
  cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         CAIRO_FONT_WEIGHT_NORMAL);
  double largest = 0;
  for (int i = 0; i < w.size(); ++i) {
    for (int j = 0; j < w.size(); ++j) largest = std::max(largest, w(i, j));
  }
  if (largest == 0) {
    return absl::InvalidArgumentError(
        "a mixing matrix of zeros has no picture");
  }
  DrawGraph(cr, layout);
  DrawMatrix(cr, w, largest);
  DrawScale(cr, largest);
  Use(cr, kInk);
  cairo_set_font_size(cr, 26);
  // A long title is drawn smaller, so that it fits.
  cairo_set_font_size(cr,
                      26 * std::min(1.0, 1400 / (1 + TextWidth(cr, title))));
  TextAt(cr, kWidth / 2.0, 56, title);
  const cairo_status_t written =
      cairo_surface_write_to_png(surface.get(), path.c_str());
  if (written != CAIRO_STATUS_SUCCESS) {
    return absl::UnavailableError(
        absl::StrCat("cannot write the picture ", path, ": ",
                     cairo_status_to_string(written),
                     "; does its folder exist, and is there room?"));
  }
  return absl::OkStatus();
}

}  // namespace gossamer
