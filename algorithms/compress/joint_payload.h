// The payload of an exchange that concerns several parts of the vector: a byte
// for the format of each, then the payload of each.
//
// Both ends know from the round which parts these are.  Every payload begins at
// a multiple of 16 bytes, what lies between is zero, and so kernels of any
// device read it in place.  This header knows nothing of edges or of what a
// part is.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_JOINT_PAYLOAD_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_JOINT_PAYLOAD_H_

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/kernels/device_span.h"

namespace gossamer {

// Formats of parts, in the order of Codec::Due.
using PartFormats = absl::InlinedVector<WireFormat, kMaxPlayers>;
using PartPayloads = absl::InlinedVector<Encoded, kMaxPlayers>;

// The payloads of the parts that are due in the round of `whole.key`, joint or
// the only one.  kDataLoss if `whole` has another format, or formats, sizes or
// padding that no encoder writes; what the payloads hold is not looked at.
absl::StatusOr<PartPayloads> SplitPayload(const Codec& codec,
                                          const Encoded& whole);

// Codec::Validate and Codec::MagnitudeBound, of a payload of whichever parts
// are due.
absl::Status ValidateParts(const Codec& codec, const Encoded& whole);
// The largest of the parts'; `whole` has been validated.
float MagnitudeBoundOfParts(const Codec& codec, const Encoded& whole,
                            float limit);

// Number of bytes of a payload of the parts `due` in these formats.
size_t PayloadSize(const Codec& codec, const DueParts& due,
                   const PartFormats& formats);

// Encodes the parts `due` of x to `out`, of PayloadSize bytes.  `memory`, of
// all parameters or empty, is that of the parts that have one.
void EncodeParts(const Codec& codec, const DueParts& due,
                 const PartFormats& formats, DeviceSpan<const float> x,
                 DeviceSpan<float> memory, uint64_t key,
                 DeviceSpan<std::byte> out);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_JOINT_PAYLOAD_H_
