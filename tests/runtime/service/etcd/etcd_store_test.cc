// The right to save where several replicas share an etcd, and the errors of an
// etcd that does not work.

#include "runtime/service/etcd/etcd_store.h"

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/service/etcd/etcd_server.h"

namespace gossamer {
namespace etcd_store_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(30);

FleetRecord Generation(uint64_t generation) {
  FleetRecord record;
  record.generation = generation;
  return record;
}

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

class EtcdStoreTest : public testing::Test {
 protected:
  // A long lease is renewed so rarely that its owner does not notice its end.
  std::unique_ptr<EtcdStore> Open(const std::string& self,
                                  absl::Duration lease = absl::Seconds(60)) {
    auto store = EtcdStore::Open({.endpoints = etcd_.address(),
                                  .certificates = "",
                                  .run_id = "run",
                                  .self = self,
                                  .lease = lease});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  uint64_t Stored(Store& store) {
    const auto record = store.Load();
    EXPECT_TRUE(record.ok() && record->has_value()) << record.status();
    return (*record)->generation;
  }

  EtcdServer etcd_;
};

TEST_F(EtcdStoreTest, AnInstanceThatLostItsLeaseUnnoticedCannotSave) {
  const auto first = Open("first"), second = Open("second");
  ASSERT_EQ(first->Acquire(), absl::OkStatus());
  ASSERT_EQ(first->Save(Generation(1)), absl::OkStatus());
  ASSERT_TRUE(absl::IsAlreadyExists(second->Acquire()));
  etcd_.EndLeaseOf("gossamer/run/active");
  ASSERT_EQ(second->Acquire(), absl::OkStatus());
  EXPECT_EQ(Stored(*second), 1);
  ASSERT_EQ(first->Held(), absl::OkStatus()) << "it has noticed by itself";
  const absl::Status refused = first->Save(Generation(7));
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_THAT(MessageOf(refused), HasSubstr("second"));
  EXPECT_FALSE(first->Held().ok());
  EXPECT_EQ(Stored(*second), 1);
  EXPECT_EQ(second->Save(Generation(2)), absl::OkStatus());
}

// A save is refused even if no replica has taken over: one may have come and
// gone.
TEST_F(EtcdStoreTest, ASaveIsRefusedOnceItsLeaseHasEnded) {
  const auto first = Open("first");
  ASSERT_EQ(first->Acquire(), absl::OkStatus());
  etcd_.EndLeaseOf("gossamer/run/active");
  EXPECT_TRUE(absl::IsAborted(first->Save(Generation(7))));
  ASSERT_EQ(first->Acquire(), absl::OkStatus());
  EXPECT_EQ(first->Save(Generation(8)), absl::OkStatus());
}

TEST_F(EtcdStoreTest, ALeaseIsRenewedForAsLongAsItsOwnerLives) {
  const auto second = Open("second");
  {
    const auto first = Open("first", absl::Seconds(1));
    ASSERT_EQ(first->Acquire(), absl::OkStatus());
    // Two leases pass, so the lease must have been renewed.
    absl::SleepFor(absl::Seconds(2));
    EXPECT_TRUE(absl::IsAlreadyExists(second->Acquire()));
    EXPECT_EQ(first->Save(Generation(1)), absl::OkStatus());
  }
  EXPECT_EQ(second->Acquire(), absl::OkStatus()) << "an end is told at once";
}

TEST_F(EtcdStoreTest, AnEarlierSaveWithoutAnAnswerHindersNoLaterOne) {
  const auto store = Open("first");
  ASSERT_EQ(store->Acquire(), absl::OkStatus());
  ASSERT_EQ(store->Save(Generation(1)), absl::OkStatus());
  etcd_.Put("gossamer/run/fleet", "what it wrote and does not know of");
  EXPECT_EQ(store->Save(Generation(2)), absl::OkStatus());
  EXPECT_EQ(Stored(*store), 2);
}

TEST_F(EtcdStoreTest, AFrozenEtcdFailsEveryCallAndEndsTheLease) {
  const auto store = Open("first", absl::Seconds(1));
  ASSERT_EQ(store->Acquire(), absl::OkStatus());
  ASSERT_EQ(store->Save(Generation(1)), absl::OkStatus());
  etcd_.Freeze();
  const absl::Status unsaved = store->Save(Generation(2));
  EXPECT_FALSE(unsaved.ok());
  absl::Status held;
  const absl::Time end = absl::Now() + kTimeout;
  while ((held = store->Held()).ok() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(MessageOf(held), HasSubstr(etcd_.address()));
  EXPECT_TRUE(absl::IsUnavailable(store->Acquire()));
  EXPECT_EQ(store->Save(Generation(3)).code(), absl::StatusCode::kAborted);
  etcd_.Thaw();
  while (!store->Acquire().ok() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_LE(Stored(*store), 2);
  EXPECT_EQ(store->Save(Generation(4)), absl::OkStatus());
  EXPECT_EQ(Stored(*store), 4);
}

TEST_F(EtcdStoreTest, AValueThatIsNoRecordIsRefusedByItsKey) {
  const auto store = Open("first");
  ASSERT_EQ(store->Acquire(), absl::OkStatus());
  for (const std::string value : {"garbage", "\x08\x09", ""}) {
    etcd_.Put("gossamer/run/fleet", value);
    const absl::Status refused = store->Load().status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(MessageOf(refused),
                AllOf(HasSubstr("gossamer/run/fleet"),
                      HasSubstr(etcd_.address()), HasSubstr("delete it")));
  }
}

TEST_F(EtcdStoreTest, TheActiveInstanceIsShownWithoutControlCharacters) {
  etcd_.Put("gossamer/run/active", "evil\x1b[2J");
  const absl::Status taken = Open("first")->Acquire();
  EXPECT_TRUE(absl::IsAlreadyExists(taken));
  EXPECT_THAT(MessageOf(taken), HasSubstr("evil\\x1b[2J"));
}

TEST(EtcdStoreOpenTest, AMissingEtcdOrCertificateFolderIsNamed) {
  const auto nobody = EtcdStore::Open({.endpoints = "127.0.0.1:1",
                                       .certificates = "",
                                       .run_id = "run",
                                       .self = "me"});
  EXPECT_TRUE(absl::IsUnavailable(nobody.status()));
  EXPECT_THAT(MessageOf(nobody.status()),
              AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("is it running")));
  TemporaryFolder folder;
  const auto unlocked = EtcdStore::Open({.endpoints = "127.0.0.1:1",
                                         .certificates = folder.path(),
                                         .run_id = "run",
                                         .self = "me"});
  EXPECT_THAT(MessageOf(unlocked.status()), HasSubstr(folder.path()));
}

}  // namespace etcd_store_test
}  // namespace gossamer
