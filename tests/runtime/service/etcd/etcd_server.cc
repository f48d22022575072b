// Starts etcd as a child process and ends it.

#include "tests/runtime/service/etcd/etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

constexpr int kNoProgram = 127;
constexpr absl::Duration kTimeout = absl::Seconds(30);

// Returns a port that is free at this moment.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
  close(fd);
  return ntohs(name.sin_port);
}

[[noreturn]] void Become(std::vector<std::string> arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) dup2(nowhere, fd);
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(kNoProgram);
}

}  // namespace

EtcdServer::EtcdServer() : address_(absl::StrCat("127.0.0.1:", FreePort())) {
  const std::string clients = absl::StrCat("http://", address_);
  const std::string peers = absl::StrCat("http://127.0.0.1:", FreePort());
  process_ = fork();
  if (process_ == 0) {
    // Elections this short allow leases of one second.
    Become({"etcd", "--name", "one", "--data-dir", folder_.path() + "/etcd",
            "--listen-client-urls", clients, "--advertise-client-urls", clients,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
            "--initial-cluster", "one=" + peers, "--heartbeat-interval", "10",
            "--election-timeout", "100"});
  }
  client_ = *EtcdClient::Create(address_, "");
  const absl::Time end = absl::Now() + kTimeout;
  while (!client_->Get("ready?").ok()) {
    int status = 0;
    if (absl::Now() > end || waitpid(process_, &status, WNOHANG) == process_) {
      ADD_FAILURE() << "etcd does not run here: deploy/setup.sh --for tests "
                       "installs it (Debian's etcd-server)";
      return;
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

EtcdServer::~EtcdServer() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void EtcdServer::PutForALease(const std::string& key,
                              const std::string& value) {
  const auto lease = client_->Grant(kTimeout);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Put(key, value, lease->id);
}

void EtcdServer::Put(const std::string& key, const std::string& value,
                     int64_t lease) {
  etcdserverpb::TxnRequest transaction;
  auto& put = *transaction.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(value);
  put.set_lease(lease);
  const auto done = client_->Commit(transaction);
  EXPECT_TRUE(done.ok()) << done.status();
}

void EtcdServer::EndLeaseOf(const std::string& key) {
  const auto found = client_->Get(key);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_EQ(client_->Revoke((*found)->lease()), absl::OkStatus());
}

void EtcdServer::Freeze() {
  kill(process_, SIGSTOP);
  // Its other threads run on until all have received the signal.
  waitpid(process_, nullptr, WUNTRACED);
}
void EtcdServer::Thaw() { kill(process_, SIGCONT); }

}  // namespace gossamer
