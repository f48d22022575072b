#include "runtime/cli/report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/proc_file.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

constexpr char kStyle[] = R"(
body{font:15px/1.5 system-ui,sans-serif;color:#222;background:#fff;
margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2.6rem}
h3{font-size:1.05rem;margin-top:1.6rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .7rem;text-align:right;white-space:nowrap;
border-bottom:1px solid #e3e3e8}
th{font-weight:600;vertical-align:bottom}th small{font-weight:400;color:#667}
td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}
td small{color:#667}.best{font-weight:600;background:#eaf5ef}
figure{display:inline-block;margin:0 1.2rem 1rem 0;max-width:100%}
figure img{max-width:100%;border:1px solid #e3e3e8}
figcaption{color:#556;font-size:.9rem}
pre{background:#f6f6f8;padding:.8rem;overflow-x:auto;font-size:.85rem}
)";

// Names come from configurations and folders, and people send the page around:
// a browser must not take one for markup.
std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// A column of the table: its value, its unit, and which end is better.
struct Column {
  const char* name;
  const char* unit;
  std::vector<double> ComparedSetting::*values;
  double factor = 1;
  enum { kLess, kMore, kNeither } better = kNeither;
  bool bytes = false;
};

std::vector<Column> Columns(const Comparison& comparison) {
  std::vector<Column> columns;
  if (!comparison.score_name.empty()) {
    columns = {
        {"time to target", "s", &ComparedSetting::seconds_to_target, 1,
         Column::kLess},
        {"sent until then", "by the first peer",
         &ComparedSetting::bytes_to_target, 1, Column::kLess, true},
        {"last score", "lower is better", &ComparedSetting::last_score, 1,
         Column::kLess},
        {"best score", "", &ComparedSetting::best_score, 1, Column::kLess}};
  }
  const Column rest[] = {
      {"rounds/s", "", &ComparedSetting::rounds_per_second, 1, Column::kMore},
      {"computing", "ms a round", &ComparedSetting::computing, 1e3},
      {"waiting", "ms a round, exposed communication",
       &ComparedSetting::waiting, 1e3, Column::kLess},
      {"exchange", "ms, hidden or not", &ComparedSetting::exchange, 1e3},
      {"sent", "a peer and round", &ComparedSetting::bytes_per_round, 1,
       Column::kLess, true},
      {"consensus distance", "at the end",
       &ComparedSetting::consensus_distance},
  };
  columns.insert(columns.end(), std::begin(rest), std::end(rest));
  // Closed-form games have no images, and no column of zeros.
  const bool sees_images =
      std::ranges::any_of(comparison.settings, [](const ComparedSetting& s) {
        return std::ranges::count(s.images, 0) < std::ssize(s.images);
      });
  if (sees_images) {
    columns.push_back(
        {"images", "seen by all peers", &ComparedSetting::images});
  }
  return columns;
}

// Returns the best mean of a column among the settings of one network.
std::optional<double> Best(const Column& column, const Comparison& comparison,
                           const std::string& network) {
  std::optional<double> best;
  int rivals = 0;
  for (const ComparedSetting& s : comparison.settings) {
    const std::optional<Spread> spread = SpreadOf(s.*column.values);
    if (s.network != network || !spread) continue;
    ++rivals;
    const bool better =
        !best || (column.better == Column::kLess ? spread->mean < *best
                                                 : spread->mean > *best);
    if (better) best = spread->mean;
  }
  // A single setting is not the best of anything.
  if (rivals < 2 || column.better == Column::kNeither) return std::nullopt;
  return best;
}

std::string Number(const Column& column, double value) {
  if (column.bytes) return HumanBytes(value);
  const double v = value * column.factor;
  return std::abs(v) >= 1e4 ? absl::StrFormat("%.0f", v)
                            : absl::StrFormat("%.4g", v);
}

std::string Cell(const Column& column, const ComparedSetting& setting,
                 const std::optional<double>& best) {
  const std::vector<double>& values = setting.*column.values;
  const std::optional<Spread> spread = SpreadOf(values);
  if (!spread) return "<td>&ndash;</td>";
  std::string text = Number(column, spread->mean);
  if (values.size() > 1 && spread->deviation > 0) {
    absl::StrAppend(&text, " <small>&plusmn; ",
                    Number(column, spread->deviation), "</small>");
  }
  // A mean over fewer seeds than the others is marked as such: those that are
  // missing may be the worse ones.
  if (values.size() < setting.seeds.size()) {
    absl::StrAppend(&text, " <small>(", values.size(), " of ",
                    setting.seeds.size(), ")</small>");
  }
  return absl::StrCat(best == spread->mean ? "<td class=best>" : "<td>", text,
                      "</td>");
}

std::string Table(const Comparison& comparison) {
  const std::vector<Column> columns = Columns(comparison);
  std::string html =
      "<div class=scroll><table><tr><th>network</th><th>algorithm</th>"
      "<th>seeds</th>";
  for (const Column& c : columns) {
    absl::StrAppend(&html, "<th>", c.name, "<br><small>", c.unit,
                    "</small></th>");
  }
  html += "</tr>\n";
  for (const ComparedSetting& s : comparison.settings) {
    absl::StrAppend(&html, "<tr><td>", Escape(s.network), "</td><td>",
                    Escape(s.algorithm), "</td><td>", s.seeds.size(), "</td>");
    for (const Column& c : columns) {
      html += Cell(c, s, Best(c, comparison, s.network));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string Pictures(const std::string& heading,
                     const std::vector<ReportPicture>& pictures) {
  std::string html;
  for (const ReportPicture& p : pictures) {
    std::ifstream file(p.path, std::ios::binary);
    const std::string png((std::istreambuf_iterator<char>(file)),
                          std::istreambuf_iterator<char>());
    if (png.empty()) continue;
    // Pictures are in the page, which people send around as one file.
    absl::StrAppend(&html, "<figure><img alt=\"", Escape(p.caption),
                    "\" src=\"data:image/png;base64,", absl::Base64Escape(png),
                    "\"><figcaption>", Escape(p.caption),
                    "</figcaption></figure>\n");
  }
  return html.empty() ? "" : absl::StrCat("<h3>", heading, "</h3>\n", html);
}

std::string Differences(const ReportGame& game) {
  if (game.differences.empty()) return "";
  std::string html = absl::StrCat("<h3>What is not as with ",
                                  Escape(game.comparison.settings[0].algorithm),
                                  "</h3>\n<table>");
  for (const auto& [algorithm, lines] : game.differences) {
    absl::StrAppend(&html, "<tr><td>", Escape(algorithm), "</td><td><code>",
                    absl::StrReplaceAll(Escape(lines), {{"\n", "<br>"}}),
                    "</code></td></tr>\n");
  }
  return html + "</table>\n";
}

std::string GameHtml(const ReportGame& game) {
  const Comparison& c = game.comparison;
  std::string html = Table(c);
  if (c.target) {
    absl::StrAppendFormat(
        &html,
        "<p>Means over seeds &plusmn; standard deviation. Time to target: "
        "until %s was first at most %.4g; &ndash; for a run that never got there. "
        "Marked: the best in its network.</p>\n",
        Escape(c.score_name), *c.target);
  }
  html += Differences(game);
  html += Pictures("Curves", game.curves);
  return html + Pictures("Samples", game.samples);
}

}  // namespace

std::string ReportHtml(const Report& report) {
  std::string html = absl::StrCat(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width\">\n<title>",
      Escape(report.title), "</title>\n<style>", kStyle,
      "</style></head><body>\n<h1>", Escape(report.title), "</h1>\n");
  for (const ReportGame& game : report.games) {
    if (report.games.size() > 1) {
      absl::StrAppend(&html, "<h2>", Escape(game.comparison.game), "</h2>\n");
    }
    html += GameHtml(game);
  }
  html += "<h2>Machine</h2>\n<table>";
  for (const auto& [name, value] : report.machine) {
    absl::StrAppend(&html, "<tr><td>", Escape(name), "</td><td>", Escape(value),
                    "</td></tr>");
  }
  absl::StrAppend(&html, "</table>\n<h2>Command</h2>\n<pre>",
                  Escape(report.command), "</pre>\n");
  for (const ReportGame& game : report.games) {
    absl::StrAppend(&html, "<h2>Configuration of the first run of ",
                    Escape(game.comparison.game), "</h2>\n<pre>",
                    Escape(game.configuration), "</pre>\n");
  }
  return html + "</body></html>\n";
}

std::vector<std::pair<std::string, std::string>> DescribeMachine() {
  utsname system{};
  uname(&system);
  const auto value_of = [](const char* path, const char* key) {
    const std::string value = ProcValue(path, key);
    return value.empty() ? "unknown" : value;
  };
  return {{"processor", value_of("/proc/cpuinfo", "model name")},
          {"cores", std::to_string(sysconf(_SC_NPROCESSORS_ONLN))},
          {"memory", value_of("/proc/meminfo", "MemTotal")},
          {"system", absl::StrCat(system.sysname, " ", system.release)}};
}

}  // namespace gossamer
