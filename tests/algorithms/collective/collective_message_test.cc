// Messages of all-reduces come back as they were, and a damaged one is refused.

#include "algorithms/collective/collective_message.h"

#include <string>
#include <vector>

#include "algorithms/base/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace collective_message_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr CollectiveHead kHead = {
    .operation = 0x12345678907, .step = 11, .body_bytes = 4000};

TEST(CollectiveMessageTest, RoundTrips) {
  const auto bytes = EncodeCollectiveHead(kHead);
  EXPECT_EQ(bytes.size(), kCollectiveHeadBytes);
  const auto head = DecodeCollectiveHead(bytes, 4000);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(*head, kHead);
}

TEST(CollectiveMessageTest, RefusesEveryFlippedBitAndEveryOtherLength) {
  const auto bytes = EncodeCollectiveHead(kHead);
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    auto broken = bytes;
    broken[i / 8] ^= std::byte(1 << i % 8);
    EXPECT_FALSE(DecodeCollectiveHead(broken, 4000).ok()) << "bit " << i;
  }
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeCollectiveHead(std::span(bytes).first(n), 4000).ok());
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(DecodeCollectiveHead(longer, 4000).ok());
}

TEST(CollectiveMessageTest, RefusesABodyOfAnotherSize) {
  const auto bytes = EncodeCollectiveHead(kHead);
  for (const size_t body : {0, 1000, 3999, 4001, 4004}) {
    EXPECT_EQ(DecodeCollectiveHead(bytes, body).status().code(),
              absl::StatusCode::kDataLoss);
  }
  // A size that is the same in its low 32 bits.
  auto wrapped = kHead;
  wrapped.body_bytes += uint64_t{1} << 32;
  EXPECT_FALSE(DecodeCollectiveHead(EncodeCollectiveHead(wrapped), 4000).ok());
}

TEST(CollectiveMessageTest, NamesBothVersions) {
  auto bytes = EncodeCollectiveHead(kHead);
  bytes[4] = std::byte{9};
  const absl::Status status = DecodeCollectiveHead(bytes, 4000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("9 there"), HasSubstr("3 here")));
}

}  // namespace collective_message_test
}  // namespace gossamer
