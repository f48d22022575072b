// A real etcd of one member, on free ports of loopback and in a folder of its
// own.  It goes with the test, even if that dies.

#ifndef GOSSAMER_TESTS_RUNTIME_SERVICE_ETCD_ETCD_SERVER_H_
#define GOSSAMER_TESTS_RUNTIME_SERVICE_ETCD_ETCD_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/service/etcd/etcd_client.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {

class EtcdServer {
 public:
  // Waits until it answers; fails the test if there is no etcd.
  EtcdServer();
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  const std::string& address() const { return address_; }
  // A client for the actions that only a test takes.
  EtcdClient& client() { return *client_; }
  void Put(const std::string& key, const std::string& value, int64_t lease = 0);
  void PutForALease(const std::string& key, const std::string& value);
  // Ends the lease of `key`, as if its owner had been silent.
  void EndLeaseOf(const std::string& key);

  void Freeze();
  void Thaw();

 private:
  TemporaryFolder folder_;
  std::string address_;
  std::unique_ptr<EtcdClient> client_;
  pid_t process_ = -1;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_SERVICE_ETCD_ETCD_SERVER_H_
