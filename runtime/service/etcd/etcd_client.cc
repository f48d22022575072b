#include "runtime/service/etcd/etcd_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/status_macros.h"
#include "proto/etcd.grpc.pb.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/transport/grpc/instance_calls.h"

namespace gossamer {
namespace {

namespace etcd = ::etcdserverpb;

// The largest answer, above the record of the largest fleet.
constexpr int kMaxReceived = 4 << 20;

// The certificates for etcd; all empty: no encryption.
struct Pems {
  std::string authority, certificate, key;
  friend bool operator==(const Pems&, const Pems&) = default;
};

absl::StatusOr<Pems> ReadPems(const std::string& folder) {
  Pems pems;
  if (folder.empty()) return pems;
  const std::string key = folder + "/key.pem";
  // A key that others can read is refused before it is used.
  GOSSAMER_RETURN_IF_ERROR(CheckPrivate(key));
  GOSSAMER_ASSIGN_OR_RETURN(pems.authority, ReadPemFile(folder + "/ca.pem"));
  GOSSAMER_ASSIGN_OR_RETURN(pems.certificate,
                            ReadPemFile(folder + "/cert.pem"));
  GOSSAMER_ASSIGN_OR_RETURN(pems.key, ReadPemFile(key));
  // Files that are being replaced do not fit together for a moment.
  if (KeyFits(pems.certificate, pems.key)) return pems;
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": is not the private key of cert.pem beside it"));
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const Pems& pems) {
  if (pems == Pems{}) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = pems.authority;
  options.pem_cert_chain = pems.certificate;
  options.pem_private_key = pems.key;
  return grpc::SslCredentials(options);
}

}  // namespace

// Holds gRPC's types, so that the header needs none of them.
class EtcdClient::Stubs {
 public:
  Stubs(std::string endpoints, std::string folder, Pems pems,
        absl::Duration limit)
      : endpoints_(std::move(endpoints)),
        folder_(std::move(folder)),
        limit_(limit),
        pems_(std::move(pems)),
        instances_(endpoints_, [this](const std::string& endpoint) {
          MutexLock lock(&mu_);
          return MakeCallChannel(endpoint, CredentialsOf(pems_), kMaxReceived);
        }) {}

  absl::Status Run(const InstanceCalls::Call& call) {
    // An error here is no reason to stop: the certificates that were read
    // before may still be good.
    const absl::Status read = ReadAgain();
    const grpc::Status status = instances_.Run(limit_, call);
    if (status.ok()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("etcd at ", endpoints_, ": ", status.error_message(),
                     read.ok() ? "" : "; ", read.message(),
                     read.ok() ? "" : "; what was read before is used"));
  }

 private:
  // Reads the certificates again.  An open connection outlives its
  // certificates, but a new one would show the old ones, so the channels are
  // made anew when the files change.  Files that are being replaced do not fit
  // together and are not used.
  absl::Status ReadAgain() {
    GOSSAMER_ASSIGN_OR_RETURN(Pems now, ReadPems(folder_));
    {
      MutexLock lock(&mu_);
      if (now == pems_) return absl::OkStatus();
      pems_ = std::move(now);
    }
    instances_.ResetChannels();
    return absl::OkStatus();
  }

  const std::string endpoints_;
  const std::string folder_;
  const absl::Duration limit_;
  Mutex mu_;
  Pems pems_ ABSL_GUARDED_BY(mu_);
  InstanceCalls instances_;
};

EtcdClient::EtcdClient(std::unique_ptr<Stubs> stubs)
    : stubs_(std::move(stubs)) {}
EtcdClient::~EtcdClient() = default;

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Create(
    const std::string& endpoints, const std::string& certificates,
    absl::Duration limit) {
  GOSSAMER_ASSIGN_OR_RETURN(Pems pems, ReadPems(certificates));
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::make_unique<Stubs>(
      endpoints, certificates, std::move(pems), limit)));
}

absl::StatusOr<std::optional<etcd::KeyValue>> EtcdClient::Get(
    const std::string& key) {
  etcd::RangeRequest request;
  request.set_key(key);
  etcd::RangeResponse response;
  GOSSAMER_RETURN_IF_ERROR(stubs_->Run([&](const auto& channel, auto* context) {
    return etcd::KV::Stub(channel).Range(context, request, &response);
  }));
  if (response.kvs().empty()) return std::nullopt;
  return response.kvs(0);
}

absl::StatusOr<etcd::TxnResponse> EtcdClient::Commit(
    const etcd::TxnRequest& transaction) {
  etcd::TxnResponse response;
  GOSSAMER_RETURN_IF_ERROR(stubs_->Run([&](const auto& channel, auto* context) {
    return etcd::KV::Stub(channel).Txn(context, transaction, &response);
  }));
  return response;
}

absl::StatusOr<EtcdClient::Lease> EtcdClient::Grant(absl::Duration length) {
  etcd::LeaseGrantRequest request;
  // etcd counts leases in whole seconds.
  request.set_ttl(std::max<int64_t>(1, absl::ToInt64Seconds(length)));
  etcd::LeaseGrantResponse response;
  GOSSAMER_RETURN_IF_ERROR(stubs_->Run([&](const auto& channel, auto* context) {
    return etcd::Lease::Stub(channel).LeaseGrant(context, request, &response);
  }));
  return Lease{.id = response.id(), .length = absl::Seconds(response.ttl())};
}

absl::StatusOr<absl::Duration> EtcdClient::KeepAlive(int64_t lease) {
  etcd::LeaseKeepAliveRequest request;
  request.set_id(lease);
  etcd::LeaseKeepAliveResponse response;
  // etcd offers a stream for this; one exchange over a stream is enough for a
  // lease of seconds.
  GOSSAMER_RETURN_IF_ERROR(stubs_->Run([&](const auto& channel, auto* context) {
    const auto stream = etcd::Lease::Stub(channel).LeaseKeepAlive(context);
    const bool answered = stream->Write(request) && stream->Read(&response);
    if (answered) {
      // The stream has done its work; cancelling spares the wait for the
      // server's end of it.
      stream->WritesDone();
      context->TryCancel();
    }
    const grpc::Status status = stream->Finish();
    return answered ? grpc::Status::OK : status;
  }));
  return absl::Seconds(std::max<int64_t>(0, response.ttl()));
}

absl::Status EtcdClient::Revoke(int64_t lease) {
  etcd::LeaseRevokeRequest request;
  request.set_id(lease);
  etcd::LeaseRevokeResponse response;
  return stubs_->Run([&](const auto& channel, auto* context) {
    return etcd::Lease::Stub(channel).LeaseRevoke(context, request, &response);
  });
}

}  // namespace gossamer
