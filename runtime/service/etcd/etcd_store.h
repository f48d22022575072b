// A Store in etcd, which several instances of the topology service share.
//
// There are two keys. gossamer/<run>/active names the instance that may save,
// and lives as long as that instance's lease; gossamer/<run>/fleet is the
// record.  A save is a transaction that compares the revision at which the
// active key was created.  So an instance that has lost the key, even without
// noticing, can never save again.  The transaction also compares the record's
// revision, so that a save whose outcome was unknown cannot come after a later
// one.
//
// This header knows nothing of what the record means.

#ifndef GOSSAMER_RUNTIME_SERVICE_ETCD_ETCD_STORE_H_
#define GOSSAMER_RUNTIME_SERVICE_ETCD_ETCD_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "runtime/service/etcd/etcd_client.h"
#include "runtime/service/store.h"

namespace gossamer {

struct EtcdStoreOptions {
  std::string endpoints;     // host:port[,host:port...]
  std::string certificates;  // a folder for EtcdClient; empty: none
  std::string run_id;
  // The name that other instances see while this one is active.
  std::string self;
  // The silence of the active instance after which another may take over; whole
  // seconds, and etcd may take longer.
  absl::Duration lease = absl::Seconds(5);
};

class EtcdStore final : public Store {
 public:
  // Returns kUnavailable if no server answers; kInvalidArgument as EtcdClient.
  static absl::StatusOr<std::unique_ptr<EtcdStore>> Open(
      EtcdStoreOptions options);
  // Releases the lease, so that another instance can take over at once.
  ~EtcdStore() override;

  absl::Status Acquire() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Held() const override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::optional<FleetRecord>> Load() override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Save(const FleetRecord& record) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Times are those of a clock that also runs while the machine sleeps.
  struct Tenure {
    EtcdClient::Lease lease;
    int64_t created = 0;  // revision of the key; 0: no tenure
    absl::Duration until;
  };

  EtcdStore(EtcdStoreOptions options, std::unique_ptr<EtcdClient> client);
  absl::Status Campaign(const EtcdClient::Lease& lease, absl::Duration asked);
  absl::Status Write(const std::string& bytes, bool& again);
  void Lose(const std::string& why) ABSL_LOCKS_EXCLUDED(mu_);
  void KeepAlive() ABSL_LOCKS_EXCLUDED(mu_);

  const EtcdStoreOptions options_;
  const std::string active_key_, fleet_key_;
  const std::unique_ptr<EtcdClient> client_;
  // Used only by the thread that saves.
  int64_t fleet_revision_ = 0;
  absl::Status trouble_;
  absl::Duration retry_at_;

  mutable Mutex mu_;
  CondVar wake_;
  Tenure tenure_ ABSL_GUARDED_BY(mu_);
  std::string lost_ ABSL_GUARDED_BY(mu_) = "it has not been acquired";
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread keeper_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_ETCD_ETCD_STORE_H_
