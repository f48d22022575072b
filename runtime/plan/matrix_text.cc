#include "runtime/plan/matrix_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

using Rows = std::vector<std::vector<double>>;
using Words = std::vector<std::string>;

struct Line {
  int number = 0;  // from 1
  Words words;
};

// `rtt_ms` or `mbit`: rows, or one value for all.
struct Part {
  int line = 0;  // of its heading; 0: not there
  std::optional<double> all;
  Rows rows;
  std::vector<int> row_lines;
};

class Parser {
 public:
  explicit Parser(std::string_view file) : file_(file) {}

  absl::StatusOr<NetworkMatrix> Parse(std::string_view text) {
    for (const Line& line : Split(text)) {
      GOSSAMER_RETURN_IF_ERROR(Take(line));
    }
    GOSSAMER_ASSIGN_OR_RETURN(const int size, Size());
    NetworkMatrix matrix;
    GOSSAMER_ASSIGN_OR_RETURN(matrix.rtt_ms, Complete(rtt_, "rtt_ms", size));
    GOSSAMER_ASSIGN_OR_RETURN(matrix.mbit, Complete(mbit_, "mbit", size));
    GOSSAMER_RETURN_IF_ERROR(CheckSymmetric(matrix.rtt_ms));
    matrix.names = std::move(names_);
    for (int i = static_cast<int>(matrix.names.size()); i < size; ++i) {
      matrix.names.push_back(absl::StrCat("host-", i));
    }
    return matrix;
  }

 private:
  static std::vector<Line> Split(std::string_view text) {
    std::vector<Line> lines;
    int number = 0;
    for (const absl::string_view whole :
         absl::StrSplit(std::string(text), '\n')) {
      ++number;
      const absl::string_view code = whole.substr(0, whole.find('#'));
      Words words =
          absl::StrSplit(code, absl::ByAnyChar(" \t\r,"), absl::SkipEmpty());
      if (!words.empty()) lines.push_back({number, std::move(words)});
    }
    return lines;
  }

  absl::Status Refuse(int line, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(file_), ":", line, ": ", what));
  }

  absl::Status Take(const Line& line) {
    const std::string& word = line.words[0];
    if (word == "names") return TakeNames(line);
    if (word == "rtt_ms") return TakeHeading(line, rtt_);
    if (word == "mbit") return TakeHeading(line, mbit_);
    const bool letter =
        absl::ascii_isalpha(static_cast<unsigned char>(word[0]));
    if (current_ == nullptr || (letter && word != "unlimited")) {
      return Refuse(line.number,
                    absl::StrCat("\"", word,
                                 "\" is none of names, rtt_ms and mbit; a "
                                 "matrix begins with one of these words and "
                                 "its rows follow"));
    }
    return TakeRow(line);
  }

  absl::Status TakeNames(const Line& line) {
    if (!names_.empty()) return Refuse(line.number, "names are given twice");
    names_.assign(line.words.begin() + 1, line.words.end());
    names_line_ = line.number;
    std::set<std::string> seen;
    for (const std::string& name : names_) {
      const bool plain = std::ranges::all_of(name, [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
      });
      if (!plain || name.size() > 64) {
        return Refuse(line.number,
                      absl::StrCat("the name \"", absl::CHexEscape(name),
                                   "\": letters, digits and ._- only, at most "
                                   "64"));
      }
      if (!seen.insert(name).second) {
        return Refuse(line.number,
                      absl::StrCat("two peers are called \"", name, "\""));
      }
    }
    if (names_.empty()) return Refuse(line.number, "names of whom?");
    return absl::OkStatus();
  }

  absl::Status TakeHeading(const Line& line, Part& part) {
    const std::string& name = line.words[0];
    if (part.line > 0) {
      return Refuse(line.number, absl::StrCat(name, " is given twice; line ",
                                              part.line, " has it, too"));
    }
    part.line = line.number;
    current_ = &part;
    if (line.words.size() == 1) return absl::OkStatus();
    if (line.words.size() > 2) {
      return Refuse(line.number,
                    absl::StrCat(name, " has one value, for all pairs, or ",
                                 "none, and rows on the lines below"));
    }
    GOSSAMER_ASSIGN_OR_RETURN(part.all, Value(line, 1));
    return absl::OkStatus();
  }

  absl::StatusOr<double> Value(const Line& line, size_t column) const {
    const std::string& word = line.words[column];
    const bool rate = current_ == &mbit_;
    if (rate && word == "unlimited") return 0.0;
    double value = 0;
    const double least = rate ? kLeastMatrixMbit : 0;
    const double most = rate ? kMostMatrixMbit : kMostMatrixMillis;
    // Not "0x10", "inf" or "1e3", which SimpleAtod takes.
    if (word.find_first_not_of("0123456789.") != std::string::npos ||
        !absl::SimpleAtod(word, &value)) {
      return Refuse(line.number, absl::StrCat("\"", absl::CHexEscape(word),
                                              "\" is not a ", "number of ",
                                              rate ? "Mbit/s, nor unlimited"
                                                   : "milliseconds"));
    }
    if (value < least || value > most) {
      return Refuse(line.number,
                    absl::StrFormat("%s is out of range: %g to %g %s", word,
                                    least, most, rate ? "Mbit/s" : "ms"));
    }
    return value;
  }

  absl::Status TakeRow(const Line& line) {
    Part& part = *current_;
    if (part.all) {
      return Refuse(line.number,
                    absl::StrCat("line ", part.line,
                                 " has a value for all pairs, so no rows may "
                                 "follow"));
    }
    const size_t diagonal = part.rows.size();
    if (diagonal >= line.words.size()) {
      return Refuse(line.number,
                    absl::StrCat("row ", diagonal, " has ", line.words.size(),
                                 " values; a matrix has as many columns as "
                                 "rows"));
    }
    std::vector<double> row;
    for (size_t j = 0; j < line.words.size(); ++j) {
      const std::string& word = line.words[j];
      if (j == diagonal && (word == "-" || word == "0")) {
        row.push_back(0);
        continue;
      }
      if (j == diagonal) {
        return Refuse(line.number,
                      absl::StrCat("from peer ", j, " to itself is \"",
                                   absl::CHexEscape(word), "\"; write -"));
      }
      GOSSAMER_ASSIGN_OR_RETURN(const double value, Value(line, j));
      row.push_back(value);
    }
    if (!part.rows.empty() && row.size() != part.rows[0].size()) {
      return Refuse(line.number, absl::StrCat("this row has ", row.size(),
                                              " values, the first has ",
                                              part.rows[0].size()));
    }
    part.rows.push_back(std::move(row));
    part.row_lines.push_back(line.number);
    return absl::OkStatus();
  }

  absl::StatusOr<int> Size() const {
    size_t size = std::max({names_.size(), Columns(rtt_), Columns(mbit_)});
    if (size == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(file_), ": has no matrix; it needs rtt_ms ",
                       "and mbit (gossamer plan --help shows one)"));
    }
    if (size < 2 || size > kMostMatrixPeers) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(file_), ": has ", size,
                       " peers; there can be 2 to ", kMostMatrixPeers));
    }
    if (!names_.empty() && names_.size() != size) {
      return Refuse(names_line_, absl::StrCat("there are ", names_.size(),
                                              " names for ", size, " peers"));
    }
    return static_cast<int>(size);
  }

  static size_t Columns(const Part& part) {
    return part.rows.empty() ? 0 : part.rows[0].size();
  }

  absl::StatusOr<Rows> Complete(const Part& part, const std::string& name,
                                int size) const {
    if (part.line == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(file_), ": ", name, " is missing",
          name == "mbit" ? "; write \"mbit unlimited\" if no link has a limit"
                         : ""));
    }
    const auto n = static_cast<size_t>(size);
    if (part.all) {
      Rows rows(n, std::vector<double>(n, *part.all));
      for (size_t i = 0; i < n; ++i) rows[i][i] = 0;
      return rows;
    }
    if (part.rows.size() != n || part.rows[0].size() != n) {
      return Refuse(
          part.line,
          absl::StrCat(name, " has ", part.rows.size(), " rows of ",
                       Columns(part), ", but there are ", size, " peers"));
    }
    return part.rows;
  }

  absl::Status CheckSymmetric(const Rows& rtt) const {
    for (size_t i = 0; i < rtt.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (rtt[i][j] == rtt[j][i]) continue;
        return Refuse(
            rtt_.row_lines[i],
            absl::StrFormat("from peer %d to %d and back takes %g ms, but from "
                            "%d to %d %g; a round trip is the same both ways",
                            i, j, rtt[i][j], j, i, rtt[j][i]));
      }
    }
    return absl::OkStatus();
  }

  const std::string_view file_;
  Words names_;
  int names_line_ = 0;
  Part rtt_;
  Part mbit_;
  Part* current_ = nullptr;
};

}  // namespace

absl::StatusOr<NetworkMatrix> ParseNetworkMatrix(std::string_view text,
                                                 std::string_view file) {
  return Parser(file).Parse(text);
}

}  // namespace gossamer
