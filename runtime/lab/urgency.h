// Threads whose work must not wait for ordinary threads.
//
// Knows nothing of the work.

#ifndef GOSSAMER_RUNTIME_LAB_URGENCY_H_
#define GOSSAMER_RUNTIME_LAB_URGENCY_H_

namespace gossamer {

// A due packet goes before the thread that measures it.
inline constexpr int kSwitchUrgency = 2;
inline constexpr int kMeterUrgency = 1;

// Makes the calling thread run before all ordinary ones and those less urgent,
// with exact timers.  Returns false if that is not permitted; the thread then
// has the best nice value that is.
bool BecomeUrgent(int urgency);

// Makes the calling thread urgent, if that is permitted, while this lives.
class ScopedUrgency {
 public:
  explicit ScopedUrgency(int urgency);
  ~ScopedUrgency();
  ScopedUrgency(const ScopedUrgency&) = delete;
  ScopedUrgency& operator=(const ScopedUrgency&) = delete;

 private:
  const bool urgent_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_URGENCY_H_
