// The events that the topology service reports, of itself and of calls that it
// refuses: each has a name that stays, a condition and an action, and is
// counted.
//
// A name that is not in this list does not compile.  Names are in logs, in
// `gossamer status --json` and in people's scripts.  This header knows nothing
// of the code that reports.

#ifndef GOSSAMER_TOPOLOGY_FLEET_SERVICE_EVENT_H_
#define GOSSAMER_TOPOLOGY_FLEET_SERVICE_EVENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "algorithms/base/throttle.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {

// The events in the order of their names.  runtime/service/README.md has the
// same table (telemetry_test).
inline constexpr EventInfo kServiceEvents[] = {
    {"active", "this instance serves now", ""},
    {"call_refused",
     "a certificate does not hold any more, or its owner may not ask this, or "
     "not so often; or a connection floods",
     "`gossamer certs show` there; `gossamer certs revoke`, if it goes on"},
    {"certificate_expires",
     "this program's own certificate, or what it signs views with, ends within "
     "a week, or a tenth of its term, or has ended; once a day",
     "`gossamer certs issue` again into its folder; nothing is to be "
     "restarted"},
    {"peer_refused", "a peer cannot be in this fleet, as it says",
     "the same release and configuration there"},
    {"peer_waits", "a peer cannot be in this fleet yet: it asks again",
     "as it says, if it goes on"},
    {"request_refused",
     "a heartbeat, stop, status, survey or returned view was invalid for this "
     "run",
     "the same run and release there; the store that the run began with; a "
     "firewall, if the asking host is unknown"},
    {"save_failed", "the state cannot be saved: nobody gets an answer",
     "make room, or mend the disk or etcd that it names"},
    {"saves_again", "answers go out again", ""},
    {"stands_by", "another instance serves, or none is known to", ""},
    {"strangers_refused",
     "connections were shut down: as many unauthenticated ones were open as "
     "may be, hardly a descriptor was left, or their host had flooded within a "
     "minute",
     "a firewall, if members cannot get in; more descriptors (ulimit -Hn, "
     "LimitNOFILE)"},
    {"trust_unread",
     "ca.pem or crl.pem in the folder of certificates is damaged, gone or "
     "older than before: what was read before stays in force",
     "copy the authority's newest into it"},
};

// One of these, as from its name: ServiceEvent event = "stands_by".
class ServiceEvent {
 public:
  consteval ServiceEvent(const char* name)  // NOLINT: as a name is written
      : index_(Find(name)) {}
  constexpr size_t index() const { return index_; }
  constexpr std::string_view name() const {
    return kServiceEvents[index_].name;
  }

 private:
  // Not constexpr, so that a wrong name stops the compiler here.
  static size_t IsNotInServiceEvents();
  static constexpr size_t Find(std::string_view name) {
    for (size_t i = 0; i < std::size(kServiceEvents); ++i) {
      if (kServiceEvents[i].name == name) return i;
    }
    return IsNotInServiceEvents();
  }

  size_t index_;
};

// Lines "name: what" for a log, and counts.  One thread at a time.
class ServiceEvents {
 public:
  explicit ServiceEvents(std::function<void(const std::string&)> log)
      : log_(std::move(log)) {}

  void Report(ServiceEvent event, std::string_view what) {
    ++counts_[event.index()];
    Log(event, what);
  }
  // An event that a caller can repeat as often as it likes: at most one line in
  // ten seconds.
  void ReportByTime(ServiceEvent event, absl::Time now, std::string_view what) {
    ++counts_[event.index()];
    Throttle& throttle = by_time_[event.index()];
    if (throttle.Due(now) == 0) return;
    Log(event,
        absl::StrCat(std::string(what), " (", throttle.seen(), " so far)"));
  }
  // An event that is counted elsewhere, `times` by now: a line at the first,
  // the tenth, the hundredth.
  void ReportByCount(ServiceEvent event, uint64_t times,
                     std::string_view what) {
    counts_[event.index()] = times;
    if (by_count_[event.index()].Due(times) == 0) return;
    Log(event, absl::StrCat(times, " ", std::string(what)));
  }

  uint64_t count(ServiceEvent event) const { return counts_[event.index()]; }
  // The counts of all events, by name.
  template <typename Map>
  void CopyTo(Map& counts) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      counts[std::string(kServiceEvents[i].name)] = counts_[i];
    }
  }

 private:
  static constexpr size_t kEvents = std::size(kServiceEvents);
  void Log(ServiceEvent event, std::string_view what) {
    log_(absl::StrCat(std::string(event.name()), ": ", std::string(what)));
  }

  const std::function<void(const std::string&)> log_;
  std::array<uint64_t, kEvents> counts_ = {};
  std::array<Throttle, kEvents> by_time_;
  std::array<Throttle, kEvents> by_count_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_SERVICE_EVENT_H_
