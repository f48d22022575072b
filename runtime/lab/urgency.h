// Threads whose work must not wait for ordinary ones.
//
// Knows nothing of what the work is.

#ifndef GOSSAMER_RUNTIME_LAB_URGENCY_H_
#define GOSSAMER_RUNTIME_LAB_URGENCY_H_

namespace gossamer {

// A packet that is due goes before those who measure it.
inline constexpr int kSwitchUrgency = 2;
inline constexpr int kMeterUrgency = 1;

// The calling thread runs before all ordinary ones and those less urgent, and
// its timers are exact.  False if it may not; then it is as nice to itself as
// it may be.
bool BecomeUrgent(int urgency);

// The calling thread is urgent, if it may, while this lives.
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
