#include "topology/fleet/parse_message.h"

#include <cstdint>
#include <limits>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace gossamer {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Far more than any message of this program has.
constexpr int kMaxNested = 16;

// Up to the present limit of `in`: whether every message in it ends where the
// one around it does, or before.
bool Nests(google::protobuf::io::CodedInputStream& in, const Descriptor& type,
           int levels) {
  while (in.BytesUntilLimit() > 0) {
    const uint32_t tag = in.ReadTag();
    const FieldDescriptor* const field =
        type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    // Texts and bytes are skipped by SkipField, which fails beyond the limit;
    // only messages have an inside to look into.
    if (field == nullptr || field->type() != FieldDescriptor::TYPE_MESSAGE ||
        WireFormatLite::GetTagWireType(tag) !=
            WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t size = 0;
    if (levels == 0 || !in.ReadVarint32(&size) ||
        size > static_cast<uint32_t>(in.BytesUntilLimit())) {
      return false;
    }
    const auto around = in.PushLimit(static_cast<int>(size));
    if (!Nests(in, *field->message_type(), levels - 1)) return false;
    in.PopLimit(around);
  }
  return true;
}

}  // namespace

bool ParseMessage(std::span<const std::byte> bytes,
                  google::protobuf::Message& message) {
  if (bytes.size() > std::numeric_limits<int>::max()) return false;
  const int size = static_cast<int>(bytes.size());
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t*>(bytes.data()), size);
  (void)in.PushLimit(size);
  // Looked through first, without memory for any field; parsed only then.
  return Nests(in, *message.GetDescriptor(), kMaxNested) &&
         message.ParseFromArray(bytes.data(), size);
}

}  // namespace gossamer
