// Real-time priorities of threads whose work must not wait for ordinary ones.
//
// This header knows nothing of the work.

#ifndef GOSSAMER_RUNTIME_LAB_REALTIME_PRIORITY_H_
#define GOSSAMER_RUNTIME_LAB_REALTIME_PRIORITY_H_

namespace gossamer {

// A due packet goes before the thread that measures it.
inline constexpr int kSwitchPriority = 2;
inline constexpr int kMeterPriority = 1;

// Makes the calling thread run before all ordinary ones and those of a lower
// real-time priority, with exact timers.  Returns false if that is not
// permitted; the thread then has the best nice value that is.
bool SetRealtimePriority(int priority);

// Gives the calling thread a real-time priority, if that is permitted, while
// this lives.
class ScopedRealtimePriority {
 public:
  explicit ScopedRealtimePriority(int priority);
  ~ScopedRealtimePriority();
  ScopedRealtimePriority(const ScopedRealtimePriority&) = delete;
  ScopedRealtimePriority& operator=(const ScopedRealtimePriority&) = delete;

 private:
  const bool set_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_REALTIME_PRIORITY_H_
