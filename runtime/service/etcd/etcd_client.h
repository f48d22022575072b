// Blocking calls to etcd, each with a deadline: a key, a transaction, a lease.
//
// This header knows nothing of what is stored there.

#ifndef GOSSAMER_RUNTIME_SERVICE_ETCD_ETCD_CLIENT_H_
#define GOSSAMER_RUNTIME_SERVICE_ETCD_ETCD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/etcd.pb.h"

namespace gossamer {

// Safe to use from any thread.  Errors are kUnavailable and name the servers.
// After an error a change may or may not have happened.
class EtcdClient {
 public:
  // `endpoints` is host:port[,host:port...] of one cluster.  `certificates` is
  // a folder with ca.pem, cert.pem and key.pem, read now and again before each
  // call, so that they may be replaced; empty: no encryption.  A call takes at
  // most `limit`.  kInvalidArgument says what is wrong with a file.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Create(
      const std::string& endpoints, const std::string& certificates,
      absl::Duration limit = absl::Seconds(1));
  ~EtcdClient();

  // Linearizable.  Returns nullopt without such a key.
  absl::StatusOr<std::optional<etcdserverpb::KeyValue>> Get(
      const std::string& key);
  // Commits a transaction atomically.
  absl::StatusOr<etcdserverpb::TxnResponse> Commit(
      const etcdserverpb::TxnRequest& transaction);

  struct Lease {
    int64_t id = 0;
    absl::Duration length;
  };
  // Grants a lease of whole seconds, at least one; etcd may grant more.
  absl::StatusOr<Lease> Grant(absl::Duration length);
  // Renews a lease.  Returns its remaining time; zero: it has run out.
  absl::StatusOr<absl::Duration> KeepAlive(int64_t lease);
  // Ends a lease now, with the keys that depend on it.
  absl::Status Revoke(int64_t lease);

 private:
  class Stubs;
  explicit EtcdClient(std::unique_ptr<Stubs> stubs);
  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_ETCD_ETCD_CLIENT_H_
