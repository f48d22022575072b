#include "runtime/transport/grpc/call_counter.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "runtime/transport/grpc/socket_names.h"

namespace gossamer {
namespace {

using nlohmann::json;

// Takes what gRPC has allocated.
json Parse(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owned(text, gpr_free);
  // gRPC returns null for what has gone meanwhile.
  return owned == nullptr ? json()
                          : json::parse(owned.get(), nullptr,
                                        /*allow_exceptions=*/false);
}

json Part(const json& of, const char* name) {
  return of.is_object() ? of.value(name, json()) : json();
}

std::string Text(const json& of, const char* name) {
  const json part = Part(of, name);
  return part.is_string() ? part.get<std::string>() : "";
}

// Returns a number of channelz, which are strings in JSON.
int64_t Number(const json& of, const char* name) {
  int64_t number = 0;
  return absl::SimpleAtoi(Text(of, name), &number) ? number : 0;
}

}  // namespace

std::map<std::string, CountedConnection> CountedConnections() {
  std::map<std::string, CountedConnection> found;
  const json servers = Parse(grpc_channelz_get_servers(0));
  for (const json& server : Part(servers, "server")) {
    const int64_t id = Number(Part(server, "ref"), "serverId");
    // The answer is one page of many.
    for (int64_t next = 0; next >= 0;) {
      const json page = Parse(grpc_channelz_get_server_sockets(id, next, 0));
      next = -1;
      for (const json& socket : Part(page, "socketRef")) {
        const int64_t number = Number(socket, "socketId");
        if (Part(page, "end") != true) next = number + 1;
        // The name ends with the address, behind the kind of the transport.
        const std::string name = PlainAddress(Text(socket, "name"));
        const size_t address = name.rfind("ipv");
        if (address != std::string::npos) found[name.substr(address)] = number;
      }
    }
  }
  return found;
}

uint64_t CallsBegun(CountedConnection connection) {
  const json whole = Parse(grpc_channelz_get_socket(connection));
  return static_cast<uint64_t>(
      Number(Part(Part(whole, "socket"), "data"), "streamsStarted"));
}

}  // namespace gossamer
