// Messages are parsed as Protobuf parses them, but a false length allocates
// nothing.

#include "topology/fleet/parse_message.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "proto/topology.pb.h"

namespace gossamer {
namespace parse_message_test {

bool Parses(const std::string& bytes, google::protobuf::Message& message) {
  return ParseMessage(std::as_bytes(std::span(bytes)), message);
}

std::string Stored() {
  wire::StoredFleet stored;
  stored.set_format(1);
  stored.add_members()->set_address("a:1");
  stored.add_members()->add_checkpoint_rounds(300);
  stored.mutable_view()->set_run_id("run");
  stored.mutable_view()->add_member_address("b:2");
  return stored.SerializeAsString();
}

TEST(ParseMessageTest, AMessageIsAsItWasWritten) {
  wire::StoredFleet read;
  ASSERT_TRUE(Parses(Stored(), read));
  EXPECT_EQ(read.SerializeAsString(), Stored());
  // A message of a later version has unknown fields, a group among them.
  ASSERT_TRUE(
      Parses(Stored() + "\xfa\x7f\x02hi\xfb\x7f\x08\x05\xfc\x7f", read));
  EXPECT_EQ(read.view().run_id(), "run");
  EXPECT_TRUE(Parses("", read));
  EXPECT_EQ(read.format(), 0u);
}

// A message that is cut short anywhere is refused, or is a shorter message.
TEST(ParseMessageTest, DecidesAsProtobufDoes) {
  const std::string whole = Stored();
  for (size_t size = 0; size <= whole.size(); ++size) {
    wire::StoredFleet read, alone;
    const std::string cut = whole.substr(0, size);
    EXPECT_EQ(Parses(cut, read), alone.ParseFromString(cut)) << size;
  }
}

TEST(ParseMessageTest, NoMessageEndsBehindTheOneAroundIt) {
  wire::StoredFleet read;
  // A member (field 13) of 2 GB with an address (3) of 40 MB, without any of
  // those bytes.
  EXPECT_FALSE(Parses("\x6a\xf0\xff\xff\xff\x07\x1a\x80\xb4\x89\x13", read));
  EXPECT_EQ(read.members_size(), 0) << "it has not been begun";
  // The text ends within the bytes, but not within the member.
  EXPECT_FALSE(
      Parses("\x6a\x03\x1a\x04"
             "abcdef",
             read));
  // A missing size, an unfinished size, and the end of a group that never
  // began.
  EXPECT_FALSE(Parses("\x6a", read));
  EXPECT_FALSE(Parses("\x6a\xff", read));
  EXPECT_FALSE(Parses("\x6c", read));
}

}  // namespace parse_message_test
}  // namespace gossamer
