// Parses a message of whose bytes nothing is known, such as what a file or
// another program keeps.
//
// Protobuf alone believes a message inside another one beyond the end of the
// bytes, and reserves up to 50 MB for a text in it that claims to be so long.

#ifndef GOSSAMER_TOPOLOGY_FLEET_PARSE_MESSAGE_H_
#define GOSSAMER_TOPOLOGY_FLEET_PARSE_MESSAGE_H_

#include <cstddef>
#include <span>

#include "google/protobuf/message.h"

namespace gossamer {

// False: `bytes` are no such message; what `message` holds then is undefined.
// Asks for no more memory at once than in proportion to them.
bool ParseMessage(std::span<const std::byte> bytes,
                  google::protobuf::Message& message);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_PARSE_MESSAGE_H_
