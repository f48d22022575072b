// Writes metrics.jsonl and events.jsonl of one peer: appended to, a line each.
//
// Training never ends because of its log.  A full disk is reported once, the
// lines that do not fit are dropped, and writing goes on when there is room
// again.  A line that a crash cut is removed at the next start.  With a limit
// the oldest lines go: a file that has reached half of it becomes FILE.1, in
// the place of the one before, and a new file begins.  This header knows
// nothing of what the numbers mean.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_JSONL_SINK_H_
#define GOSSAMER_RUNTIME_TELEMETRY_JSONL_SINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/telemetry/metrics.h"

namespace gossamer {

// The bytes of a file together with the one before it; 0: all lines are kept.
using LogLimit = uint64_t;

// A file of lines, buffered.
class LineFile {
 public:
  // Opens or creates `path` and removes a last line that has no end.
  static absl::StatusOr<std::unique_ptr<LineFile>> Open(const std::string& path,
                                                        LogLimit limit = 0);
  ~LineFile();  // Flushes what it can.
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void Add(std::string_view line);
  // Writes the added lines.  On an error the file ends after the last good
  // flush, and the lines since then are dropped.
  absl::Status Flush();
  size_t buffered() const { return buffer_.size(); }

 private:
  LineFile(std::string path, LogLimit limit, int fd, int64_t size)
      : path_(std::move(path)), limit_(limit), fd_(fd), size_(size) {}
  absl::Status StartFile();

  const std::string path_;
  const LogLimit limit_;
  int fd_;
  int64_t size_;  // of whole lines, in bytes
  std::string buffer_;
};

// The sink of a peer's folder.
class JsonlSink : public MetricsSink {
 public:
  // Called when writing begins to fail, and not again until it has worked.
  using Report = std::function<void(const absl::Status&)>;

  // Opens both files in `folder`, which exists.  `limit` holds for each of
  // them.
  static absl::StatusOr<std::unique_ptr<JsonlSink>> Open(
      const std::string& folder, Report report, LogLimit limit = 0);

  // The line is on disk within a second, or once 64 KiB have gathered.
  void OnRound(const RoundMetrics& metrics) override;
  // The line is on disk at once.
  void OnEvent(const Event& event) override;
  void Flush();

 private:
  JsonlSink(std::unique_ptr<LineFile> metrics, std::unique_ptr<LineFile> events,
            Report report)
      : metrics_(std::move(metrics)),
        events_(std::move(events)),
        report_(std::move(report)) {}

  const std::unique_ptr<LineFile> metrics_;
  const std::unique_ptr<LineFile> events_;
  const Report report_;
  absl::Time flushed_ = absl::InfinitePast();
  bool failing_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_JSONL_SINK_H_
