// The names of a socket, the kernel's own and the address of its other end; and
// its end.
//
// Internal to transport/grpc.  This header knows nothing of what they are for.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_NAMES_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gossamer {

// A number that no other socket has, also after this one is closed, as a
// descriptor does.  Nothing if this is no open socket.
std::optional<uint64_t> CookieOf(int socket);

struct OtherEnd {
  std::string host;
  std::string address;  // as gRPC writes it: "ipv4:10.0.0.2:4711"
};
// An IPv4 address within IPv6 is written as IPv4.  Both are empty unless the
// socket is connected.
OtherEnd OtherEndOf(int socket);

// The name of the socket behind a gate for the connection with this number
// from `address`.  gRPC hands it to its callers as an address.
std::string NameBehindGate(uint64_t number, absl::string_view address);
// The number in an address of gRPC; nothing if it is of no such socket.
std::optional<uint64_t> NumberBehindGate(absl::string_view address);

// The address of a connection's other end, from the one that gRPC hands to its
// callers: without its escapes, and that before the gate.
std::string PlainAddress(absl::string_view address);

// Ends a connection together with the bytes of it that wait to be read:
// shutdown() would leave them to the reader, gRPC or a gate.  The descriptor
// stays its owner's.
void ResetSocket(int socket);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_NAMES_H_
