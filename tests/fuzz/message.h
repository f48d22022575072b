// Messages as gRPC parses them before a decoder of ours sees them.

#ifndef GOSSAMER_TESTS_FUZZ_MESSAGE_H_
#define GOSSAMER_TESTS_FUZZ_MESSAGE_H_

#include "runtime/base/protobuf_errors.h"
#include "tests/fuzz/fuzz.h"
#include "topology/fleet/protocol.h"

namespace gossamer::fuzz {

template <typename Message>
bool Parse(Bytes bytes, Message& message) {
  SilenceProtobuf();
  return bytes.size() <= static_cast<size_t>(kRequestBytes) &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace gossamer::fuzz

#endif  // GOSSAMER_TESTS_FUZZ_MESSAGE_H_
