// The calls that have begun on a connection, as gRPC's own counters (channelz)
// have them.
//
// Internal to transport/grpc.  This header knows nothing of what they are for.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_CALL_COUNTER_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_CALL_COUNTER_H_

#include <cstdint>
#include <string>
#include <utility>

namespace gossamer {

class CallCounter {
 public:
  // The connection from `address` to a server of this process.
  explicit CallCounter(std::string address) : address_(std::move(address)) {}

  // Returns how many streams of HTTP/2 the other end has opened, ended ones
  // included; 0 while gRPC knows no such connection.
  uint64_t Begun();

 private:
  void Find();

  std::string address_;
  int64_t id_ = 0;  // the connection's name in channelz; 0: not found yet
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CALL_COUNTER_H_
