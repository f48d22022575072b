#include "runtime/transport/grpc/instance_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/address.h"
#include "runtime/base/steady_time.h"
#include "runtime/transport/grpc/steady_deadline.h"

namespace gossamer {
namespace {

bool Serves(const grpc::Status& status) {
  // An instance that stands by answers UNAVAILABLE; every other answer, also a
  // refusal, is the service's.
  return status.error_code() != grpc::StatusCode::UNAVAILABLE &&
         status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeCallChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    int max_answer_bytes) {
  grpc::ChannelArguments arguments;
  // Only the identity is allowed: parsers of compressed messages have inflated
  // bombs.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  // Otherwise a message may be inflated before it is refused.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetMaxReceiveMessageSize(max_answer_bytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Newer releases of gRPC go by this instead.  It is longer, since it holds
  // for pings, too, whose answers wait behind a large message on a slow link.
  arguments.SetInt("grpc.http2.ping_timeout_ms", 30'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // InstanceCalls asks again itself.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

InstanceCalls::InstanceCalls(const std::string& addresses, MakeChannel make,
                             int silent_calls)
    : addresses_(SplitAddresses(addresses)),
      make_(std::move(make)),
      silent_calls_(silent_calls),
      instances_(addresses_.size()) {}

grpc::Status InstanceCalls::Run(absl::Duration limit, const Call& call) {
  const size_t count = addresses_.size();
  const absl::Time end = SteadyNow() + limit;
  size_t first = 0;
  {
    // The lock is not held during a call: it blocks, and Cancel() needs the
    // lock to end it.
    MutexLock lock(&mu_);
    first = first_;
  }
  grpc::Status status(grpc::StatusCode::UNAVAILABLE, "there is no address");
  std::string answers;
  for (size_t i = 0; i < count; ++i) {
    const size_t place = (first + i) % count;
    grpc::ClientContext context;
    // Every address gets an equal share of the time that is left, so that one
    // silent address does not use up the time of those that serve.
    const absl::Duration left = end - SteadyNow();
    context.set_deadline(
        SteadyDeadline(left / static_cast<int64_t>(count - i)));
    const std::shared_ptr<grpc::Channel> channel = Begin(place, &context);
    if (channel == nullptr) return {grpc::StatusCode::CANCELLED, "cancelled"};
    status = call(channel, &context);
    MutexLock lock(&mu_);
    in_flight_.erase(&context);
    Instance& instance = instances_[place];
    if (Serves(status)) {
      first_ = place;
      instance.silent = 0;
      return status;
    }
    bool useless = false;
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      useless = ++instance.silent >= silent_calls_;
      if (i == 0) first_ = (place + 1) % count;
    } else {
      instance.silent = 0;
      // A channel that has failed to connect tries again in its own time, and
      // only while a call waits for it, so the next call makes another.
      useless =
          channel->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY;
    }
    if (useless) instance = {};
    absl::StrAppend(&answers, i > 0 ? "; " : "", addresses_[place], ": ",
                    status.error_message());
  }
  // One address needs no list of answers.
  return count < 2 ? status : grpc::Status(status.error_code(), answers);
}

std::shared_ptr<grpc::Channel> InstanceCalls::Begin(
    size_t place, grpc::ClientContext* context) {
  MutexLock lock(&mu_);
  // Cancel() may come between two addresses: no call may begin after it.
  if (cancelled_) return nullptr;
  std::shared_ptr<grpc::Channel>& channel = instances_[place].channel;
  if (channel == nullptr) channel = make_(addresses_[place]);
  // The context is in the set before the call begins, so Cancel() always finds
  // it.
  in_flight_.insert(context);
  return channel;
}

void InstanceCalls::ResetChannels() {
  MutexLock lock(&mu_);
  instances_.assign(addresses_.size(), {});
}

void InstanceCalls::Cancel() {
  MutexLock lock(&mu_);
  cancelled_ = true;
  for (grpc::ClientContext* context : in_flight_) context->TryCancel();
}

}  // namespace gossamer
