// A run with an authority and folders of certificates, in a folder of its own.

#ifndef GOSSAMER_TESTS_RUNTIME_IDENTITY_TEST_RUN_H_
#define GOSSAMER_TESTS_RUNTIME_IDENTITY_TEST_RUN_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate_folder.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {

class TestRun {
 public:
  explicit TestRun(const std::string& name = "run") : run_(name) {
    const absl::Status made = AuthorityFolder::Init(
        authority_path(), name, absl::Now(), absl::Hours(24));
    EXPECT_TRUE(made.ok()) << made;
  }
  std::string authority_path() const { return folder_.path() + "/ca"; }
  // Returns the authority's list of revoked certificates, as PEM.
  std::string Crl() const {
    return ReadCrlFile(authority_path() + "/crl.pem").value_or("");
  }
  AuthorityFolder authority() const {
    auto opened = AuthorityFolder::Open(authority_path());
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status();
      std::abort();
    }
    return *std::move(opened);
  }

  Identity Peer(uint64_t id) const { return {.run = run_, .peer = {id}}; }
  Identity Other(Role role) const {
    return {.run = run_, .role = role, .peer = {}};
  }
  std::string PathOf(const Identity& who) const {
    return absl::StrCat(folder_.path(), "/", Describe(who));
  }
  // Makes or renews the folder of `who` and returns its path; `now` is the time
  // of issue.
  std::string Issue(const Identity& who, absl::Time now = absl::Now(),
                    absl::Duration life = absl::Hours(1)) const {
    const auto issued = authority().Issue(who, {}, now, life, PathOf(who));
    EXPECT_TRUE(issued.ok()) << issued.status();
    return PathOf(who);
  }
  std::shared_ptr<CertificateFolder> Certificates(
      const Identity& who, CertificateFolder::Clock clock = absl::Now) const {
    auto opened = CertificateFolder::Open(Issue(who), std::move(clock));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  // Revokes all certificates of `who`; the folders of `told` get the list at
  // once.
  void Revoke(const Identity& who, const std::vector<Identity>& told) const {
    const AuthorityFolder authority = this->authority();
    const auto issued = authority.List();
    ASSERT_TRUE(issued.ok()) << issued.status();
    std::vector<std::string> serials;
    for (const AuthorityFolder::Issued& i : *issued) {
      if (i.certificate.identity == who) {
        serials.push_back(i.certificate.serial);
      }
    }
    const absl::Status revoked = authority.Revoke(serials, absl::Now());
    ASSERT_TRUE(revoked.ok()) << revoked;
    for (const Identity& t : told) {
      ASSERT_TRUE(authority.Publish(PathOf(t)).ok());
    }
  }

 private:
  const std::string run_;
  const TemporaryFolder folder_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_IDENTITY_TEST_RUN_H_
