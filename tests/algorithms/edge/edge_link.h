// Two ends of an edge and an unreliable wire between them, in ticks.
//
// The wire breaks connections and loses a random suffix each way, delivers the
// rest at once or long after, stalls, dials twice, and reports all this to the
// two ends at different times.  It logs and compares the corrections that both
// ends applied.  It knows nothing of rounds.

#ifndef GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_LINK_H_
#define GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_LINK_H_

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge.h"

namespace gossamer {

// A stream of random values from one key.
class Draws {
 public:
  explicit Draws(RngKey key) : key_(key) {}
  uint64_t Below(uint64_t n) { return key_.Below(n, next_++); }
  bool Chance(double p) { return key_.Uniform(next_++) < p; }

 private:
  RngKey key_;
  uint64_t next_ = 0;
};

// The corrections that one end applied: the number of times, and a hash of the
// bits of c·D. The upper end negates them and makes zeros positive, so that
// opposite corrections hash alike.
class CorrectionLog final : public CorrectionObserver {
 public:
  explicit CorrectionLog(bool negate) : negate_(negate) {}

  void OnCorrection(const Correction& correction) override;

  struct Entry {
    uint64_t hash = 0;
    int times = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  // Of an exchange and the part of x that begins at an offset.
  using Key = std::pair<ExchangeId, size_t>;
  const std::map<Key, Entry>& entries() const { return entries_; }

 private:
  bool negate_;
  std::map<Key, Entry> entries_;
};

class EdgeLink {
 public:
  // End 0 has the lower peer id.  The ends live as long as the link.  `repeat`
  // and `swap` are the rates of frames, as in FaultRates.
  EdgeLink(std::array<Edge*, 2> ends, const Codec& codec, size_t size,
           RngKey key, double repeat = 0, double swap = 0);
  EdgeLink(const EdgeLink&) = delete;

  Edge& end(int e) { return *ends_[e]; }
  // Puts the frames that end `e` wants to send on its sending connection.
  void Collect(int e, int64_t now);
  // Dials, delivers and breaks whatever is due; an end that is not `awake` gets
  // nothing.
  void Tick(int64_t now, std::array<bool, 2> awake);
  // The faults.  Break ends every connection, and none is dialled before
  // `closed`.
  void Break(int64_t now, int64_t closed);
  // Delays the frames of end `e` until `until`.
  void Stall(int e, int64_t until);
  // Opens a connection beside others that are open; the ends may disagree about
  // which one is the newest.
  void Dial(int64_t now);
  // Ends one connection of several.
  void BreakOne(int64_t now);
  // Ends the faults.  A swapped frame is resent on another connection only
  // (PROTOCOL.md 8), so connections break once.
  void Heal(int64_t now);

  // The violation of an invariant, and later that of a complete end; empty if
  // there is none.
  const std::string& failure() const { return failure_; }
  void CheckDifferences();
  // Returns whether everything below `end` is complete at both ends, and
  // nothing is retained.
  bool Settled(ExchangeId end) const;
  void CheckSettled(ExchangeId end);

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  struct Flight {
    int64_t due = 0;
    Edge::OutFrame frame;
  };
  struct Connection {
    bool alive = true;
    // The number that each end gives it once it is up.
    std::array<uint64_t, 2> id{};
    std::array<int64_t, 2> up_at{};
    std::array<int64_t, 2> down_at{kNever, kNever};
    std::array<bool, 2> up{};
    std::array<std::deque<Flight>, 2> queue;  // indexed by sender
  };

  void Kill(Connection& c, int64_t now);
  void ReportUps(int64_t now, std::array<bool, 2> awake);
  void ReportDowns(int64_t now, std::array<bool, 2> awake);
  void Deliver(Connection& c, int sender, int64_t now);
  int Alive() const;
  void CheckBounds();
  void Fail(std::string what);

  std::array<Edge*, 2> ends_;
  std::array<CorrectionLog, 2> logs_;
  Draws draws_;
  double repeat_, swap_;
  std::list<Connection> connections_;
  std::array<uint64_t, 2> last_id_{};
  int64_t closed_until_ = 0;
  std::array<int64_t, 2> stalled_until_{};
  std::string failure_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_LINK_H_
