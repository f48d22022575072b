// What the topology service keeps over a restart, and which of several
// replicas of the service may change it.
//
// Knows nothing of what the record means.

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

// Acquire, Load and Save: one thread at a time; Held: any thread.
class Store {
 public:
  virtual ~Store() = default;

  // Makes this process the only one whose saves succeed, until the store is
  // destroyed or the process falls silent.  kAlreadyExists: another one is,
  // which the message names; kUnavailable: it cannot be told.  To be asked
  // again.
  virtual absl::Status Acquire() = 0;
  // OK as long as certainly no other process may save.  Never waits.
  // kAborted says since when not; what this process knows may be out of date.
  virtual absl::Status Held() const = 0;
  // nullopt: nothing saved yet.  kDataLoss if it does not make sense.
  virtual absl::StatusOr<std::optional<FleetRecord>> Load() = 0;
  // Durable when it returns OK; after an error it may be, too, unless another
  // process has acquired the store since: then it is not and will not be.
  virtual absl::Status Save(const FleetRecord& record) = 0;
};

// Where the command line says that the state is.
struct StoreOptions {
  std::string folder;        // of an SQLite file; empty: in etcd
  std::string etcd;          // host:port[,host:port...]
  std::string certificates;  // ca.pem, cert.pem, key.pem for etcd; empty: none
  absl::Duration lease = absl::Seconds(5);
};

// `self` is what the others are told of who is active.  kUnavailable,
// kDataLoss, kInvalidArgument in the words of the command line.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreOptions& options,
                                                 const std::string& run_id,
                                                 const std::string& self);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_STORE_H_
