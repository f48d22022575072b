// The transports that a configuration may ask for.
//
// This header knows nothing of how they are made (transport_factory.h).

#ifndef GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_CHOICE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_CHOICE_H_

#include <string_view>

namespace gossamer {

// auto: nccl if the peer's parameters are on a GPU, else grpc.
inline constexpr std::string_view kTransportChoices[] = {"auto", "grpc",
                                                         "nccl"};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_CHOICE_H_
