#include "runtime/telemetry/curves.h"

#include <cairo/cairo.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gossamer {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kPanelWidth = 800, kPanelHeight = 500, kTitleHeight = 56;
constexpr double kLeft = 92, kRight = 28, kTop = 46, kBottom = 58;
constexpr size_t kMostPoints = 330;  // about two pixels each
constexpr double kTitleSize = 17, kLegendSize = 13, kLegendKey = 22,
                 kLegendGap = 14;

struct Color {
  double r, g, b;
};
// Okabe and Ito's palette, which the colour-blind can tell apart, without its
// yellow, which white swallows.
constexpr Color kPalette[] = {{0.00, 0.45, 0.70}, {0.84, 0.37, 0.00},
                              {0.00, 0.62, 0.45}, {0.80, 0.47, 0.65},
                              {0.90, 0.62, 0.00}, {0.34, 0.71, 0.91},
                              {0.35, 0.35, 0.35}};
constexpr Color kInk = {0.13, 0.13, 0.15}, kGrid = {0.90, 0.90, 0.92},
                kFrame = {0.62, 0.62, 0.66};

struct Surfaces {
  void operator()(cairo_surface_t* s) const { cairo_surface_destroy(s); }
  void operator()(cairo_t* c) const { cairo_destroy(c); }
};

void SetColor(cairo_t* cr, const Color& c) {
  cairo_set_source_rgb(cr, c.r, c.g, c.b);
}

void Text(cairo_t* cr, const std::string& text, double x, double y, double size,
          double align, bool bold = false) {
  cairo_select_font_face(
      cr, "sans", CAIRO_FONT_SLANT_NORMAL,
      bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cr, size);
  cairo_text_extents_t extents;
  cairo_text_extents(cr, text.c_str(), &extents);
  cairo_move_to(cr, std::round(x - align * extents.x_advance), std::round(y));
  cairo_show_text(cr, text.c_str());
}

// Means over equal stretches of x.
Points Thin(const Points& points) {
  Points finite;
  for (const auto& p : points) {
    if (std::isfinite(p.first) && std::isfinite(p.second)) finite.push_back(p);
  }
  if (finite.size() <= kMostPoints) return finite;
  Points out;
  for (size_t b = 0; b < kMostPoints; ++b) {
    const size_t begin = b * finite.size() / kMostPoints;
    const size_t end = (b + 1) * finite.size() / kMostPoints;
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
        if (m > 1 && decades > 2) break;
        const double v = m * std::pow(10.0, e);
        if (v >= low_ * 0.999 && v <= high_ * 1.001) ticks.push_back(v);
      }
    }
    return ticks;
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

void DrawFrame(cairo_t* cr, const Panel& panel, const Axis& x, const Axis& y) {
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
    const double px = std::round(x(v)) + 0.5;
    grid_line(px, kTop, px, bottom);
    Text(cr, absl::StrFormat("%.6g", v), px, bottom + 20, 14, 0.5);
  }
  for (double v : y.Ticks(8)) {
    const double py = std::round(y(v)) + 0.5;
    grid_line(kLeft, py, right, py);
    Text(cr, absl::StrFormat("%.4g", v), kLeft - 9, py + 5, 14, 1);
  }
  SetColor(cr, kFrame);
  cairo_rectangle(cr, kLeft + 0.5, kTop + 0.5, right - kLeft, bottom - kTop);
  cairo_stroke(cr);
  SetColor(cr, kInk);
  Text(cr, panel.title, kLeft, kTop - 14, kTitleSize, 0, true);
  Text(cr, panel.x_label, (kLeft + right) / 2, bottom + 44, 14, 0.5);
}

void DrawSeries(cairo_t* cr, const Points& points, const Color& color,
                const Axis& x, const Axis& y, bool markers) {
  SetColor(cr, color);
  cairo_set_line_width(cr, 1.8);
  cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
  for (const auto& p : points) cairo_line_to(cr, x(p.first), y(p.second));
  cairo_stroke(cr);
  if (!markers && points.size() > 1) return;
  for (const auto& p : points) {
    cairo_arc(cr, x(p.first), y(p.second), 3.2, 0, 2 * M_PI);
    cairo_fill(cr);
  }
}

// Labels in order of first appearance.
std::vector<std::string> Labels(const Panel& panel) {
  std::vector<std::string> labels;
  for (const Series& s : panel.series) {
    if (std::find(labels.begin(), labels.end(), s.label) == labels.end()) {
      labels.push_back(s.label);
    }
  }
  return labels;
}

double TextWidth(cairo_t* cr, const std::string& text, double size) {
  cairo_set_font_size(cr, size);
  cairo_text_extents_t extents;
  cairo_text_extents(cr, text.c_str(), &extents);
  return extents.x_advance;
}

// To the right of the title, as many entries as fit there.
void DrawLegend(cairo_t* cr, const Panel& panel,
                const std::vector<std::string>& labels) {
  if (labels.size() < 2) return;
  double room = kPanelWidth - kRight - kLeft - kLegendGap -
                TextWidth(cr, panel.title, kTitleSize);
  cairo_select_font_face(cr, "sans", CAIRO_FONT_SLANT_NORMAL,
                         CAIRO_FONT_WEIGHT_NORMAL);
  const double more_width = TextWidth(cr, "+999", kLegendSize) + kLegendGap;
  size_t shown = 0;
  for (; shown < labels.size(); ++shown) {
    const double width =
        TextWidth(cr, labels[shown], kLegendSize) + kLegendKey + kLegendGap;
    const double reserved = shown + 1 < labels.size() ? more_width : 0;
    if (width + reserved > room) break;
    room -= width;
  }
  double x = kPanelWidth - kRight;
  if (shown < labels.size()) {
    SetColor(cr, kInk);
    Text(cr, absl::StrCat("+", labels.size() - shown), x, kTop - 14,
         kLegendSize, 1);
    x -= more_width;
  }
  for (size_t i = shown; i-- > 0;) {
    SetColor(cr, kInk);
    Text(cr, labels[i], x, kTop - 14, kLegendSize, 1);
    x -= TextWidth(cr, labels[i], kLegendSize) + 6;
    SetColor(cr, kPalette[i % std::size(kPalette)]);
    cairo_set_line_width(cr, 3);
    cairo_move_to(cr, x - 16, kTop - 18.5);
    cairo_line_to(cr, x, kTop - 18.5);
    cairo_stroke(cr);
    x -= kLegendKey - 6 + kLegendGap;
  }
}

void DrawPanel(cairo_t* cr, const Panel& panel) {
  std::vector<Points> series;
  double x_low = std::numeric_limits<double>::infinity();
  double x_high = panel.x_end;
  bool log = panel.log_y, log_x = panel.log_x;
  for (const Series& s : panel.series) {
    series.push_back(Thin(s.points));
    for (const auto& p : series.back()) {
      x_low = std::min(x_low, p.first);
      log = log && p.second > 0;
      log_x = log_x && p.first > 0;
    }
    // Thinning ends before the last point.
    if (!s.points.empty()) x_high = std::max(x_high, s.points.back().first);
  }
  if (!log_x) x_low = std::min(x_low, 0.0);
  if (!(x_high > x_low)) x_high = x_low + 2;
  const Range range = YRange(series, log);
  const double right = kPanelWidth - kRight, bottom = kPanelHeight - kBottom;
  const Axis x(x_low, x_high, log_x, kLeft, right);
  const Axis y(range.low, range.high, log, bottom, kTop);
  DrawFrame(cr, panel, x, y);
  const std::vector<std::string> labels = Labels(panel);
  cairo_save(cr);
  cairo_rectangle(cr, kLeft, kTop - 3, right - kLeft + 3, bottom - kTop + 6);
  cairo_clip(cr);
  for (size_t i = 0; i < series.size(); ++i) {
    const auto label =
        std::find(labels.begin(), labels.end(), panel.series[i].label);
    const size_t color = static_cast<size_t>(label - labels.begin());
    DrawSeries(cr, series[i], kPalette[color % std::size(kPalette)], x, y,
               panel.markers);
  }
  cairo_restore(cr);
  DrawLegend(cr, panel, labels);
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
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step;
       ++k) {
    ticks.push_back(k == 0 ? 0 : k * step);  // never -0
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

std::string ScoreTitle(const RoundMetrics& metrics) {
  return absl::StrCat(metrics.score_name.empty() ? "score" : metrics.score_name,
                      " (lower is better)");
}

std::vector<Panel> RunPanels(const std::vector<PeerLog>& peers,
                             const std::vector<Sample>& consensus) {
  Panel generator{.title = "generator loss"};
  Panel discriminator{.title = "discriminator loss"};
  Panel score{.title = "", .log_y = true, .markers = true};
  Panel distance{.title = "consensus distance", .log_y = true};
  for (const PeerLog& peer : peers) {
    Series g{peer.label, {}}, d{peer.label, {}}, s{peer.label, {}};
    for (const RoundMetrics& m : peer.rounds) {
      const double round = static_cast<double>(m.round);
      g.points.emplace_back(round, m.generator_loss);
      d.points.emplace_back(round, m.discriminator_loss);
      if (!m.score) continue;
      s.points.emplace_back(round, *m.score);
      score.title = ScoreTitle(m);
    }
    if (g.points.empty()) continue;
    generator.series.push_back(std::move(g));
    discriminator.series.push_back(std::move(d));
    if (!s.points.empty()) score.series.push_back(std::move(s));
  }
  Series fleet{"fleet", {}};
  for (const Sample& sample : consensus) {
    fleet.points.emplace_back(static_cast<double>(sample.round), sample.value);
  }
  if (!fleet.points.empty()) distance.series.push_back(std::move(fleet));
  double last = 0;
  for (const Series& s : generator.series) {
    last = std::max(last, s.points.back().first);
  }
  std::vector<Panel> panels;
  for (Panel* panel : {&generator, &discriminator, &score, &distance}) {
    panel->x_end = last;
    if (!panel->series.empty()) panels.push_back(std::move(*panel));
  }
  return panels;
}

}  // namespace gossamer
