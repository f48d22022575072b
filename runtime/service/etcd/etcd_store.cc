#include "runtime/service/etcd/etcd_store.h"

#include <time.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/record_message.h"

namespace gossamer {
namespace {

namespace etcd = ::etcdserverpb;

// This process trusts a lease for this share of its length, counted from before
// the request, and renews it this often.  The rest allows for clocks that
// differ.
constexpr double kBelieved = 0.8;
constexpr int kAsksPerLease = 4;
// The delay before a failed save is tried again.  A call that waits for an
// impossible save delays all others.
constexpr absl::Duration kRetrySave = absl::Milliseconds(500);

// Returns the time since the machine started, its sleep included: a lease runs
// out during a sleep too.
absl::Duration SinceBoot() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::DurationFromTimespec(now);
}

void ExpectCreated(etcd::TxnRequest& transaction, const std::string& key,
                   int64_t revision) {
  etcd::Compare& compare = *transaction.add_compare();
  compare.set_result(etcd::Compare::EQUAL);
  compare.set_target(etcd::Compare::CREATE);
  compare.set_key(key);
  compare.set_create_revision(revision);
}

void ExpectModified(etcd::TxnRequest& transaction, const std::string& key,
                    int64_t revision) {
  etcd::Compare& compare = *transaction.add_compare();
  compare.set_result(etcd::Compare::EQUAL);
  compare.set_target(etcd::Compare::MOD);
  compare.set_key(key);
  compare.set_mod_revision(revision);
}

void ElseGet(etcd::TxnRequest& transaction, const std::string& key) {
  transaction.add_failure()->mutable_request_range()->set_key(key);
}

// Returns what an unsuccessful transaction found at its `place`th ElseGet.
etcd::KeyValue Found(const etcd::TxnResponse& response, int place) {
  if (place >= response.responses_size()) return {};
  const etcd::RangeResponse& range = response.responses(place).response_range();
  return range.kvs().empty() ? etcd::KeyValue() : range.kvs(0);
}

absl::Status TakenBy(const std::string& who) {
  return absl::AlreadyExistsError(
      absl::StrCat("the active one is ", absl::CHexEscape(who.substr(0, 255))));
}

}  // namespace

EtcdStore::EtcdStore(EtcdStoreOptions options,
                     std::unique_ptr<EtcdClient> client)
    : options_(std::move(options)),
      active_key_(absl::StrCat("gossamer/", options_.run_id, "/active")),
      fleet_key_(absl::StrCat("gossamer/", options_.run_id, "/fleet")),
      client_(std::move(client)),
      // The thread starts last: it uses all members before it.
      keeper_([this] { KeepAlive(); }) {}

absl::StatusOr<std::unique_ptr<EtcdStore>> EtcdStore::Open(
    EtcdStoreOptions options) {
  GOSSAMER_ASSIGN_OR_RETURN(
      std::unique_ptr<EtcdClient> client,
      EtcdClient::Create(options.endpoints, options.certificates));
  std::unique_ptr<EtcdStore> store(
      new EtcdStore(std::move(options), std::move(client)));
  // An address that is wrong is found at the start, not once this instance is
  // needed.
  const absl::Status reached = store->client_->Get(store->active_key_).status();
  if (reached.ok()) return store;
  return absl::UnavailableError(
      absl::StrCat("no answer from ", reached.message(),
                   "; is it running there, and is it etcd 3.4 or newer?"));
}

EtcdStore::~EtcdStore() {
  {
    MutexLock lock(&mu_);
    ending_ = true;
    wake_.SignalAll();
  }
  keeper_.join();
  Lose("it has been closed");
}

absl::Status EtcdStore::Acquire() {
  // A lease that is trusted still is kept; one that is not is given back before
  // another is asked for.
  if (Held().ok()) return absl::OkStatus();
  Lose("it has not been acquired");
  trouble_ = absl::OkStatus();
  // The key is read first, because etcd logs every transaction that fails.
  GOSSAMER_ASSIGN_OR_RETURN(const auto active, client_->Get(active_key_));
  if (active) return TakenBy(active->value());
  // The time is taken before the request: the lease begins at etcd some time
  // after it, so this instance trusts it for too short rather than too long.
  const absl::Duration asked = SinceBoot();
  GOSSAMER_ASSIGN_OR_RETURN(const EtcdClient::Lease lease,
                            client_->Grant(options_.lease));
  const absl::Status won = Campaign(lease, asked);
  // An unused lease would only time out.
  if (!won.ok()) client_->Revoke(lease.id).IgnoreError();
  return won;
}

absl::Status EtcdStore::Campaign(const EtcdClient::Lease& lease,
                                 absl::Duration asked) {
  etcd::TxnRequest transaction;
  ExpectCreated(transaction, active_key_, 0);
  etcd::PutRequest& put = *transaction.add_success()->mutable_request_put();
  put.set_key(active_key_);
  put.set_value(options_.self);
  put.set_lease(lease.id);
  ElseGet(transaction, active_key_);
  GOSSAMER_ASSIGN_OR_RETURN(const etcd::TxnResponse response,
                            client_->Commit(transaction));
  int64_t created = response.header().revision();
  if (!response.succeeded()) {
    const etcd::KeyValue active = Found(response, 0);
    // The key has the lease of this very call: the transaction was sent twice,
    // and won the first time.
    if (active.lease() != lease.id) return TakenBy(active.value());
    created = active.create_revision();
  }
  MutexLock lock(&mu_);
  tenure_ = {.lease = lease,
             .created = created,
             .until = asked + kBelieved * lease.length};
  wake_.SignalAll();
  return absl::OkStatus();
}

absl::Status EtcdStore::Held() const {
  MutexLock lock(&mu_);
  if (tenure_.created == 0) return absl::AbortedError(lost_);
  // The clock is this machine's, and no call is made: the answer may be given
  // in the middle of a request.
  if (SinceBoot() < tenure_.until) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("etcd at ", options_.endpoints,
                   " has not renewed this instance's lease in time"));
}

// Gives up the lease, if there is one.
void EtcdStore::Lose(const std::string& why) {
  int64_t lease = 0;
  {
    MutexLock lock(&mu_);
    if (tenure_.created != 0) lease = tenure_.lease.id;
    tenure_ = {};
    // The reason is kept for those who ask later (Held).
    lost_ = why;
  }
  // A lease that is given back lets another instance take over at once.
  if (lease != 0) client_->Revoke(lease).IgnoreError();
}

// Renews the lease on a thread of its own, so that no other work delays it.
void EtcdStore::KeepAlive() {
  MutexLock lock(&mu_);
  while (!ending_) {
    const Tenure tenure = tenure_;
    wake_.WaitFor(&mu_, tenure.created == 0
                            ? absl::Seconds(60)
                            : tenure.lease.length / kAsksPerLease);
    // The thread was woken for another tenure, which has times of its own.
    if (ending_ || tenure_.created == 0 || tenure_.created != tenure.created) {
      continue;
    }
    const absl::Duration asked = SinceBoot();
    // The lock is not held during the call: Held() must never wait for etcd.
    mu_.Unlock();
    const absl::StatusOr<absl::Duration> left =
        client_->KeepAlive(tenure.lease.id);
    mu_.Lock();
    // An error is no end: the lease runs on, and `until` says for how long.
    if (!left.ok() || tenure_.created != tenure.created) continue;
    if (*left > absl::ZeroDuration()) {
      tenure_.until = asked + kBelieved * *left;
    } else {
      tenure_ = {};
      lost_ = "this instance's lease in etcd has run out";
    }
  }
}

absl::StatusOr<std::optional<FleetRecord>> EtcdStore::Load() {
  GOSSAMER_ASSIGN_OR_RETURN(const auto stored, client_->Get(fleet_key_));
  // The revision that the next save must find; 0 stands for a key that does not
  // exist.
  fleet_revision_ = stored ? stored->mod_revision() : 0;
  if (!stored) return std::nullopt;
  absl::StatusOr<FleetRecord> record = RecordFromBytes(stored->value());
  if (record.ok()) return *std::move(record);
  return absl::DataLossError(absl::StrCat(
      "etcd at ", options_.endpoints, ", key ", fleet_key_, ": ",
      record.status().message(), "; delete it to begin with an empty state"));
}

absl::Status EtcdStore::Save(const FleetRecord& record) {
  GOSSAMER_RETURN_IF_ERROR(Held());
  // The last error answers meanwhile.
  if (!trouble_.ok() && SinceBoot() < retry_at_) return trouble_;
  const std::string bytes = ToBytes(record);
  bool again = false;
  trouble_ = Write(bytes, again);
  // Once is enough: the revision is known now.
  if (again) trouble_ = Write(bytes, again);
  if (!trouble_.ok()) retry_at_ = SinceBoot() + kRetrySave;
  return trouble_;
}

// Sets `again` if this instance is active but the stored record is not the one
// that it knew.
absl::Status EtcdStore::Write(const std::string& bytes, bool& again) {
  int64_t created = 0;
  {
    MutexLock lock(&mu_);
    if (tenure_.created == 0) return absl::AbortedError(lost_);
    created = tenure_.created;
  }
  etcd::TxnRequest transaction;
  ExpectCreated(transaction, active_key_, created);
  ExpectModified(transaction, fleet_key_, fleet_revision_);
  etcd::PutRequest& put = *transaction.add_success()->mutable_request_put();
  put.set_key(fleet_key_);
  put.set_value(bytes);
  ElseGet(transaction, active_key_);
  ElseGet(transaction, fleet_key_);
  GOSSAMER_ASSIGN_OR_RETURN(const etcd::TxnResponse response,
                            client_->Commit(transaction));
  if (response.succeeded()) {
    fleet_revision_ = response.header().revision();
    return absl::OkStatus();
  }
  // The failed transaction has read both keys, so it is known which of the two
  // conditions failed.
  const etcd::KeyValue active = Found(response, 0);
  if (active.create_revision() != created) {
    const std::string why =
        active.create_revision() == 0
            ? "this instance's lease in etcd has run out"
            : absl::StrCat("another instance has taken over: ",
                           TakenBy(active.value()).message());
    Lose(why);
    return absl::AbortedError(why);
  }
  // An earlier save of this instance succeeded, but its answer never came.
  fleet_revision_ = Found(response, 1).mod_revision();
  again = true;
  return absl::AbortedError(absl::StrCat("etcd at ", options_.endpoints,
                                         ", key ", fleet_key_,
                                         ": somebody else writes it, too"));
}

}  // namespace gossamer
