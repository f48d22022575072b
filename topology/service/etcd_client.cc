#include "topology/service/etcd_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/etcd.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/transport/grpc/replicas.h"

namespace gossamer {
namespace {

namespace etcd = ::etcdserverpb;

// Above the record of the largest fleet.
constexpr int kMostReceived = 4 << 20;

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFrom(
    const std::string& folder) {
  if (folder.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  GOSSAMER_RETURN_IF_ERROR(CheckPrivate(folder + "/key.pem"));
  GOSSAMER_ASSIGN_OR_RETURN(options.pem_root_certs,
                            ReadPemFile(folder + "/ca.pem"));
  GOSSAMER_ASSIGN_OR_RETURN(options.pem_cert_chain,
                            ReadPemFile(folder + "/cert.pem"));
  GOSSAMER_ASSIGN_OR_RETURN(options.pem_private_key,
                            ReadPemFile(folder + "/key.pem"));
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& endpoint,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostReceived);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  // Else a message may be inflated before it is refused.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(endpoint, credentials, arguments);
}

}  // namespace

struct EtcdClient::Stubs {
  const std::string endpoints;
  const absl::Duration limit;
  Replicas replicas;

  absl::Status Ask(const Replicas::Call& call) {
    const grpc::Status status = replicas.Ask(limit, call);
    if (status.ok()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("etcd at ", endpoints, ": ", status.error_message()));
  }
};

EtcdClient::EtcdClient(std::unique_ptr<Stubs> stubs)
    : stubs_(std::move(stubs)) {}
EtcdClient::~EtcdClient() = default;

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Create(
    const std::string& endpoints, const std::string& certificates,
    absl::Duration limit) {
  GOSSAMER_ASSIGN_OR_RETURN(auto credentials, CredentialsFrom(certificates));
  std::unique_ptr<Stubs> stubs(
      new Stubs{.endpoints = endpoints,
                .limit = limit,
                .replicas = {endpoints, [credentials = std::move(credentials)](
                                            const std::string& endpoint) {
                               return MakeChannel(endpoint, credentials);
                             }}});
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::move(stubs)));
}

absl::StatusOr<std::optional<etcd::KeyValue>> EtcdClient::Get(
    const std::string& key) {
  etcd::RangeRequest request;
  request.set_key(key);
  etcd::RangeResponse response;
  GOSSAMER_RETURN_IF_ERROR(stubs_->Ask([&](const auto& channel, auto* context) {
    return etcd::KV::Stub(channel).Range(context, request, &response);
  }));
  if (response.kvs().empty()) return std::nullopt;
  return response.kvs(0);
}

absl::StatusOr<etcd::TxnResponse> EtcdClient::Commit(
    const etcd::TxnRequest& transaction) {
  etcd::TxnResponse response;
  GOSSAMER_RETURN_IF_ERROR(stubs_->Ask([&](const auto& channel, auto* context) {
    return etcd::KV::Stub(channel).Txn(context, transaction, &response);
  }));
  return response;
}

absl::StatusOr<EtcdClient::Lease> EtcdClient::Grant(absl::Duration length) {
  etcd::LeaseGrantRequest request;
  request.set_ttl(std::max<int64_t>(1, absl::ToInt64Seconds(length)));
  etcd::LeaseGrantResponse response;
  GOSSAMER_RETURN_IF_ERROR(stubs_->Ask([&](const auto& channel, auto* context) {
    return etcd::Lease::Stub(channel).LeaseGrant(context, request, &response);
  }));
  return Lease{.id = response.id(), .length = absl::Seconds(response.ttl())};
}

absl::StatusOr<absl::Duration> EtcdClient::KeepAlive(int64_t lease) {
  etcd::LeaseKeepAliveRequest request;
  request.set_id(lease);
  etcd::LeaseKeepAliveResponse response;
  // etcd offers a stream for it; one turn of one serves a lease of seconds.
  GOSSAMER_RETURN_IF_ERROR(stubs_->Ask([&](const auto& channel, auto* context) {
    const auto stream = etcd::Lease::Stub(channel).LeaseKeepAlive(context);
    const bool answered = stream->Write(request) && stream->Read(&response);
    if (answered) {
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
  return stubs_->Ask([&](const auto& channel, auto* context) {
    return etcd::Lease::Stub(channel).LeaseRevoke(context, request, &response);
  });
}

}  // namespace gossamer
