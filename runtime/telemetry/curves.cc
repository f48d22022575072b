#include "runtime/telemetry/curves.h"

#include <cairo/cairo.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/telemetry/line_style.h"

namespace gossamer {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kPanelWidth = 800, kPanelHeight = 500, kTitleHeight = 56;
constexpr double kLeft = 92, kRight = 28, kTop = 46, kBottom = 58;
constexpr size_t kMaxPoints = 330;  // about two pixels each
constexpr double kTitleSize = 17, kLegendSize = 13, kLegendKey = 34,
                 kLegendStroke = 28, kLegendGap = 14, kLegendLine = 19;
// More labels than fit into these lines are counted, not listed.
constexpr size_t kMaxLegendLines = 8;

struct Color {
  double r, g, b;
};
constexpr Color kInk = {0.13, 0.13, 0.15}, kGrid = {0.90, 0.90, 0.92},
                kFrame = {0.62, 0.62, 0.66};

struct Surfaces {
  void operator()(cairo_surface_t* s) const { cairo_surface_destroy(s); }
  void operator()(cairo_t* c) const { cairo_destroy(c); }
};

void SetColor(cairo_t* cr, const Color& c) {
  cairo_set_source_rgb(cr, c.r, c.g, c.b);
}

// Takes the colour and the dashes of `style`.
void SetStyle(cairo_t* cr, const LineStyle& style) {
  SetColor(cr, {style.color[0], style.color[1], style.color[2]});
  cairo_set_dash(cr, style.dashes.data(), static_cast<int>(style.dashes.size()),
                 0);
}

// Draws the shape of a point: 0 corners are a circle, 2 are a bar.
void DrawPoint(cairo_t* cr, int corners, double x, double y) {
  constexpr double kRadius = 3.2, kOfPolygon = 4;
  if (corners == 0) {
    cairo_arc(cr, x, y, kRadius, 0, 2 * M_PI);
  } else if (corners == 2) {
    cairo_rectangle(cr, x - kOfPolygon, y - 1.2, 2 * kOfPolygon, 2.4);
  } else {
    for (int i = 0; i < corners; ++i) {
      const double angle = 2 * M_PI * i / corners - M_PI / 2;
      cairo_line_to(cr, x + kOfPolygon * std::cos(angle),
                    y + kOfPolygon * std::sin(angle));
    }
    cairo_close_path(cr);
  }
  cairo_fill(cr);
}

// Returns the width in the font that Text draws with, and chooses that font.
double TextWidth(cairo_t* cr, const std::string& text, double size,
                 bool bold = false) {
  cairo_select_font_face(
      cr, "sans", CAIRO_FONT_SLANT_NORMAL,
      bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cr, size);
  cairo_text_extents_t extents;
  cairo_text_extents(cr, text.c_str(), &extents);
  return extents.x_advance;
}

void Text(cairo_t* cr, const std::string& text, double x, double y, double size,
          double align, bool bold = false) {
  const double width = TextWidth(cr, text, size, bold);
  cairo_move_to(cr, std::round(x - align * width), std::round(y));
  cairo_show_text(cr, text.c_str());
}

// Beyond these, differences and ratios of values are no longer finite.
constexpr double kMaxDrawn = 1e120, kMinOnLog = 1e-120;

bool Finite(const std::pair<double, double>& p) {
  return std::abs(p.first) < kMaxDrawn && std::abs(p.second) < kMaxDrawn;
}

// Returns whether a logarithmic axis has anything to show.  Values that are 0,
// such as the consensus distance of an all-reduce, are then left out.
bool AnyAbove0(const Panel& panel, double std::pair<double, double>::*of) {
  for (const Series& s : panel.series) {
    for (const auto& p : s.points) {
      if (Finite(p) && p.*of > kMinOnLog) return true;
    }
  }
  return false;
}

// Returns the means over equal stretches of x, of the points that can be drawn.
// More points than pixels would make the picture large and no clearer.
Points Thin(const Points& points, bool log_x, bool log_y) {
  Points finite;
  for (const auto& p : points) {
    if (Finite(p) && (!log_x || p.first > kMinOnLog) &&
        (!log_y || p.second > kMinOnLog)) {
      finite.push_back(p);
    }
  }
  // A short series is drawn as it is: a mean would hide its single values.
  if (finite.size() <= kMaxPoints) return finite;
  Points out;
  for (size_t b = 0; b < kMaxPoints; ++b) {
    const size_t begin = b * finite.size() / kMaxPoints;
    const size_t end = (b + 1) * finite.size() / kMaxPoints;
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += finite[i].first;
      y += finite[i].second;
    }
    const double n = static_cast<double>(end - begin);
    out.emplace_back(x / n, y / n);
  }
  return out;
}

// Maps values to pixels of one panel.
class Axis {
 public:
  Axis(double low, double high, bool log, double from, double to)
      : log_(log), low_(low), high_(high), from_(from), to_(to) {}
  double operator()(double v) const {
    // Pixels grow downwards; the caller gives from and to in that order.
    const double t = log_ ? std::log(v / low_) / std::log(high_ / low_)
                          : (v - low_) / (high_ - low_);
    return from_ + t * (to_ - from_);
  }
  std::vector<double> Ticks(int most) const {
    if (!log_) return LinearTicks(low_, high_, most);
    std::vector<double> ticks;
    const double decades = std::log10(high_ / low_);
    const int every = std::max(1, static_cast<int>(std::ceil(decades / most)));
    for (int e = static_cast<int>(std::floor(std::log10(low_)));
         e <= static_cast<int>(std::ceil(std::log10(high_))); e += every) {
      for (double m : {1.0, 2.0, 5.0}) {
        // Over many decades the powers of ten are enough.
        if (m > 1 && 3 * decades > most) break;
        const double v = m * std::pow(10.0, e);
        if (v >= low_ * 0.999 && v <= high_ * 1.001) ticks.push_back(v);
      }
    }
    // Within one decade the ticks 1, 2, 5 are too few, and round numbers fit
    // better.
    return ticks.size() < 3 && decades < 1 ? LinearTicks(low_, high_, most)
                                           : ticks;
  }

 private:
  const bool log_;
  const double low_, high_, from_, to_;
};

struct Range {
  double low = 0, high = 1;
};

Range YRange(const std::vector<Points>& series, bool log) {
  std::vector<double> ys;
  for (const Points& points : series) {
    for (const auto& p : points) ys.push_back(p.second);
  }
  if (ys.empty()) return {};
  std::sort(ys.begin(), ys.end());
  // A few wild values at the start must not flatten all the rest.
  const size_t cut = ys.size() > 200 && !log ? ys.size() / 200 : 0;
  double low = ys[cut], high = ys[ys.size() - 1 - cut];
  if (log) {
    if (high <= low * 1.01) return {low / 2, high * 2};
    const double pad = std::pow(high / low, 0.06);
    return {low / pad, high * pad};
  }
  const double pad =
      high > low ? 0.06 * (high - low) : std::max(1e-6, std::abs(low) * 0.1);
  return {low - pad, high + pad};
}

void DrawFrame(cairo_t* cr, const Panel& panel, double top, const Axis& x,
               const Axis& y) {
  const double right = kPanelWidth - kRight, bottom = kPanelHeight - kBottom;
  cairo_set_line_width(cr, 1);
  const auto grid_line = [cr](double x0, double y0, double x1, double y1) {
    SetColor(cr, kGrid);
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
    cairo_stroke(cr);
    SetColor(cr, kInk);
  };
  for (double v : x.Ticks(8)) {
    // A line of one pixel is sharp only if it is drawn through the middle of a
    // pixel.
    const double px = std::round(x(v)) + 0.5;
    grid_line(px, top, px, bottom);
    Text(cr, absl::StrFormat("%.6g", v), px, bottom + 20, 14, 0.5);
  }
  for (double v : y.Ticks(8)) {
    const double py = std::round(y(v)) + 0.5;
    grid_line(kLeft, py, right, py);
    Text(cr, absl::StrFormat("%.4g", v), kLeft - 9, py + 5, 14, 1);
  }
  SetColor(cr, kFrame);
  cairo_rectangle(cr, kLeft + 0.5, top + 0.5, right - kLeft, bottom - top);
  cairo_stroke(cr);
  SetColor(cr, kInk);
  Text(cr, panel.title, kLeft, kTop - 14, kTitleSize, 0, true);
  Text(cr, panel.x_label, (kLeft + right) / 2, bottom + 44, 14, 0.5);
}

void DrawSeries(cairo_t* cr, const Points& points, size_t number, const Axis& x,
                const Axis& y, bool markers) {
  const LineStyle style = StyleOf(number);
  SetStyle(cr, style);
  cairo_set_line_width(cr, 1.8);
  cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
  for (const auto& p : points) cairo_line_to(cr, x(p.first), y(p.second));
  cairo_stroke(cr);
  // A single point has no line and would not be seen.
  if (!markers && points.size() > 1) return;
  for (const auto& p : points) {
    DrawPoint(cr, style.corners, x(p.first), y(p.second));
  }
}

// Returns the labels in order of first appearance.
std::vector<std::string> Labels(const Panel& panel) {
  std::vector<std::string> labels;
  for (const Series& s : panel.series) {
    if (std::find(labels.begin(), labels.end(), s.label) == labels.end()) {
      labels.push_back(s.label);
    }
  }
  return labels;
}

// The legend of a panel: to the right of its title if all labels fit there,
// else in lines of its own below the title.
class Legend {
 public:
  Legend(cairo_t* cr, const Panel& panel, std::vector<std::string> labels)
      : labels_(std::move(labels)), panel_markers_(panel.markers) {
    // A single label says no more than the title.
    if (labels_.size() < 2) return;
    const double right = kPanelWidth - kRight;
    double all = 0;
    for (const std::string& label : labels_) all += Width(cr, label);
    const double title = TextWidth(cr, panel.title, kTitleSize, true);
    double x = right - all;
    const bool beside = x >= kLeft + title;
    if (!beside) x = kLeft, lines_ = 1;
    for (size_t i = 0; i < labels_.size(); ++i) {
      const double width = Width(cr, labels_[i]);
      if (!beside && x + width > right && x > kLeft) {
        if (lines_ == kMaxLegendLines) break;
        x = kLeft, ++lines_;
      }
      entries_.push_back({x, static_cast<double>(lines_) * kLegendLine});
      x += width;
    }
  }

  // The height of the lines below the title, in pixels.
  double height() const { return static_cast<double>(lines_) * kLegendLine; }
  const std::vector<std::string>& labels() const { return labels_; }

  void Draw(cairo_t* cr) const {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const double x = entries_[i].x + (lines_ > 0 ? 0 : kLegendGap);
      const double y = kTop - 14 + entries_[i].y;
      cairo_save(cr);
      const LineStyle style = StyleOf(i);
      SetStyle(cr, style);
      cairo_set_line_width(cr, style.dashes.empty() ? 3 : 2);
      cairo_move_to(cr, x, y - 4.5);
      cairo_line_to(cr, x + kLegendStroke, y - 4.5);
      cairo_stroke(cr);
      if (panel_markers_) {
        DrawPoint(cr, style.corners, x + kLegendStroke / 2, y - 4.5);
      }
      cairo_restore(cr);
      SetColor(cr, kInk);
      Text(cr, labels_[i], x + kLegendKey, y, kLegendSize, 0);
    }
    if (!entries_.empty() && entries_.size() < labels_.size()) {
      Text(cr, absl::StrCat("+", labels_.size() - entries_.size()),
           kPanelWidth - kRight, kTop - 14, kLegendSize, 1);
    }
  }

 private:
  struct Entry {
    double x, y;
  };

  static double Width(cairo_t* cr, const std::string& label) {
    return kLegendKey + TextWidth(cr, label, kLegendSize) + kLegendGap;
  }

  const std::vector<std::string> labels_;
  const bool panel_markers_;
  size_t lines_ = 0;  // below the title
  std::vector<Entry> entries_;
};

void DrawPanel(cairo_t* cr, const Panel& panel) {
  const bool log_y =
      panel.log_y && AnyAbove0(panel, &std::pair<double, double>::second);
  const bool log_x =
      panel.log_x && AnyAbove0(panel, &std::pair<double, double>::first);
  std::vector<Points> series;
  double x_low = std::numeric_limits<double>::infinity();
  double x_high = panel.x_end;
  for (const Series& s : panel.series) {
    series.push_back(Thin(s.points, log_x, log_y));
    for (const auto& p : series.back()) x_low = std::min(x_low, p.first);
    // Thinning averages the last points, so the axis must reach the true last
    // one.
    if (!s.points.empty()) x_high = std::max(x_high, s.points.back().first);
  }
  // A linear axis begins at 0, so that lengths on it compare.
  if (!log_x) x_low = std::min(x_low, 0.0);
  // An axis of no length would divide by zero; the test is also false for NaN.
  if (!(x_high > x_low)) x_high = x_low + 2;
  const Range range = YRange(series, log_y);
  const Legend legend(cr, panel, Labels(panel));
  const double right = kPanelWidth - kRight, bottom = kPanelHeight - kBottom;
  const double top = kTop + legend.height();
  const Axis x(x_low, x_high, log_x, kLeft, right);
  const Axis y(range.low, range.high, log_y, bottom, top);
  DrawFrame(cr, panel, top, x, y);
  cairo_save(cr);
  cairo_rectangle(cr, kLeft, top - 3, right - kLeft + 3, bottom - top + 6);
  // Values beyond the range, cut off by YRange(), must not be drawn over the
  // labels.
  cairo_clip(cr);
  for (size_t i = 0; i < series.size(); ++i) {
    const auto label =
        std::ranges::find(legend.labels(), panel.series[i].label);
    DrawSeries(cr, series[i],
               static_cast<size_t>(label - legend.labels().begin()), x, y,
               panel.markers);
  }
  cairo_restore(cr);
  legend.Draw(cr);
}

}  // namespace

std::vector<double> LinearTicks(double low, double high, int most) {
  const double raw = (high - low) / std::max(1, most);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double m : {5.0, 2.0, 1.0}) {
    if (m * power >= raw) step = m * power;
  }
  std::vector<double> ticks;
  // If `step` is below the precision of the numbers, adding it changes nothing,
  // and the loop ends.
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= most; ++i) {
    const double tick = (first + i) * step;
    const bool beyond = !(tick <= high + 1e-9 * step);
    if (beyond || (i > 0 && tick <= ticks.back())) break;
    ticks.push_back(tick == 0 ? 0 : tick);  // never -0
  }
  return ticks;
}

absl::Status DrawCurves(const std::vector<Panel>& panels,
                        const std::string& title, const std::string& path) {
  if (panels.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": there is nothing to draw yet"));
  }
  const int columns = panels.size() == 1 ? 1 : 2;
  const int rows = (static_cast<int>(panels.size()) + columns - 1) / columns;
  const std::unique_ptr<cairo_surface_t, Surfaces> surface(
      cairo_image_surface_create(
          CAIRO_FORMAT_RGB24, static_cast<int>(columns * kPanelWidth),
          static_cast<int>(rows * kPanelHeight + kTitleHeight)));
  const std::unique_ptr<cairo_t, Surfaces> cr(cairo_create(surface.get()));
  cairo_set_source_rgb(cr.get(), 1, 1, 1);
  cairo_paint(cr.get());
  SetColor(cr.get(), kInk);
  Text(cr.get(), title, kLeft, 38, 22, 0, true);
  for (size_t i = 0; i < panels.size(); ++i) {
    cairo_save(cr.get());
    cairo_translate(
        cr.get(), static_cast<double>(i % columns) * kPanelWidth,
        static_cast<double>(i / columns) * kPanelHeight + kTitleHeight);
    DrawPanel(cr.get(), panels[i]);
    cairo_restore(cr.get());
  }
  const cairo_status_t written =
      cairo_surface_write_to_png(surface.get(), path.c_str());
  if (written != CAIRO_STATUS_SUCCESS) {
    return absl::InternalError(absl::StrCat(
        path, ": cannot be written: ", cairo_status_to_string(written)));
  }
  return absl::OkStatus();
}

}  // namespace gossamer
