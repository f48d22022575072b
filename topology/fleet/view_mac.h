// Message authentication codes of views: where no certificates sign views, the
// service knows by them those that it has made, though its disk may be older.
//
// Only the service has the key.  Peers keep a MAC with its view and hand both
// back.  This header knows nothing of where the key is kept.

#ifndef GOSSAMER_TOPOLOGY_FLEET_VIEW_MAC_H_
#define GOSSAMER_TOPOLOGY_FLEET_VIEW_MAC_H_

#include <string>

#include "absl/status/status.h"
#include "proto/topology.pb.h"

namespace gossamer {

// Gives `view` its HMAC-SHA256 by `key`, in place of a signature; without a key
// it stays as it is.  kInternal: OpenSSL cannot.
absl::Status AddMac(const std::string& key, wire::ViewMessage& view);

// `view` has its MAC by `key`; false without a key.
bool HasMac(const std::string& key, const wire::ViewMessage& view);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_VIEW_MAC_H_
