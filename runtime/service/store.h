// The state that the topology service keeps over a restart, and the right of
// one of several instances to change it.
//
// This header knows nothing of what the record means.

#ifndef GOSSAMER_RUNTIME_SERVICE_STORE_H_
#define GOSSAMER_RUNTIME_SERVICE_STORE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "topology/fleet/fleet_record.h"

namespace gossamer {

// One thread at a time calls Acquire, Load and Save; any thread calls Held.
class Store {
 public:
  virtual ~Store() = default;

  // Makes this process the only one whose saves succeed, until the store is
  // destroyed or the process falls silent.  Returns kAlreadyExists, naming the
  // other process, if another is active; kUnavailable if that is unknown.  The
  // caller may try again.
  virtual absl::Status Acquire() = 0;
  // Returns OK as long as certainly no other process may save.  Never waits.
  // kAborted says why it no longer holds; the state in memory may then be out
  // of date.
  virtual absl::Status Held() const = 0;
  // Returns nullopt before the first save; kDataLoss if the record is invalid.
  virtual absl::StatusOr<std::optional<FleetRecord>> Load() = 0;
  // Saves the record; durable when it returns OK.  After an error it may be
  // durable too, unless another process has acquired the store since: then it
  // never is.
  virtual absl::Status Save(const FleetRecord& record) = 0;
};

// The place of the state, by the command line.
struct StoreOptions {
  // Holds an SQLite file; empty: the state is in etcd.
  std::string folder;
  std::string etcd;          // host:port[,host:port...]
  std::string certificates;  // ca.pem, cert.pem, key.pem for etcd; empty: none
  absl::Duration lease = absl::Seconds(5);
};

// `self` is the name that other instances see while this one is active.
// Returns kUnavailable, kDataLoss or kInvalidArgument, in the terms of the
// command line.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreOptions& options,
                                                 const std::string& run_id,
                                                 const std::string& self);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_STORE_H_
