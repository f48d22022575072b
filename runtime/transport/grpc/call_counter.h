// The calls that have begun on a connection, as gRPC's own counters (channelz)
// have them.
//
// Internal to transport/grpc.  This header knows nothing of what they are for.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_CALL_COUNTER_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_CALL_COUNTER_H_

#include <cstdint>
#include <map>
#include <string>

namespace gossamer {

// A connection's name in channelz; 0 is none.
using CountedConnection = int64_t;

// Returns the connections to the servers of this process by the address of
// their other end, as OtherEnd has it.  Takes as long as the list of all
// connections is.
std::map<std::string, CountedConnection> CountedConnections();

// Returns how many streams of HTTP/2 the other end has opened, ended ones
// included; 0 if gRPC knows no such connection any more.
uint64_t CallsBegun(CountedConnection connection);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CALL_COUNTER_H_
