// A meeting of processes on the hosts of a lab: a file in memory that all map,
// with a barrier and a place for each rank's values.
//
// A lab's hosts are on one machine and so have one clock; a meeting over the
// lab's network would disturb the measurement.  This header knows nothing of
// what is measured.

#ifndef GOSSAMER_TESTS_BENCHMARKS_LAB_MEETING_H_
#define GOSSAMER_TESTS_BENCHMARKS_LAB_MEETING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace gossamer {

class LabMeeting {
 public:
  static constexpr int kMaxRanks = 64;
  static constexpr int kMaxRows = 1024;

  LabMeeting(int rank, int size) : rank_(rank), size_(size) {}
  ~LabMeeting();
  LabMeeting(const LabMeeting&) = delete;
  LabMeeting& operator=(const LabMeeting&) = delete;

  // Maps the file at `path`, which is the same for all ranks; it is all zeros
  // or absent at first.
  absl::Status Join(const std::string& path);

  // This rank has reached its next barrier.
  void Arrive();
  // Returns the time at which all go on from it, on the clock of NowNanos(): a
  // little in the future, so that all can see it; 0 until all have arrived.
  int64_t Start();

  // The rows of the ranks' values; all are there after the next barrier.
  void Write(int row, double value);
  std::span<const double> Row(int row) const;

  static int64_t NowNanos();

 private:
  struct Shared {
    std::atomic<uint64_t> arrived[kMaxRanks];
    std::atomic<uint64_t> opened;
    std::atomic<int64_t> start;
    double rows[kMaxRows][kMaxRanks];
  };

  const int rank_;
  const int size_;
  uint64_t barrier_ = 0;
  Shared* shared_ = nullptr;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_BENCHMARKS_LAB_MEETING_H_
