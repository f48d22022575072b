// A new machine's first certificate over the network, and gossamer certs
// token, serve and join as people meet them.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/issuer.grpc.pb.h"
#include "runtime/cli/issuer_client.h"
#include "runtime/cli/issuer_service.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/newcomer.h"
#include "runtime/transport/grpc/tls.h"
#include "tests/runtime/identity/test_run.h"
#include "tests/runtime/transport/hostile_server.h"
#include "tests/runtime/transport/raw_client.h"
#include "tests/runtime/transport/raw_socket.h"
#include "tests/testing/cli_program.h"
#include "tests/testing/peak_memory.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr absl::Duration kPatience = absl::Seconds(30);

class IssuerTest : public ::testing::Test {
 protected:
  IssuerTest() {
    JoinDesk desk = *JoinDesk::Open(run_.authority_path());
    EXPECT_TRUE(desk.Claim().ok());
    for (JoinToken* token : {&token_, &unused_}) {
      *token = *desk.MakeToken({.identity = run_.Peer(9),
                                .names = {},
                                .until = absl::Now() + absl::Hours(1),
                                .life = absl::Hours(5)},
                               absl::Now());
    }
    service_ = std::make_unique<IssuerService>(
        std::move(desk), [this] { return began_ + later_.load(); },
        [this](const std::string& line) {
          absl::StrAppend(&log_, line, "\n");
        });
    auto server = service_->Listen("127.0.0.1:0");
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~IssuerTest() override {
    server_.server->Shutdown(std::chrono::system_clock::now());
  }
  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_.port);
  }
  std::string Folder(const std::string& name) const {
    return absl::StrCat(machines_.path(), "/", name);
  }

  const TestRun run_;
  const absl::Time began_ = absl::Now();  // the desk's time stands still
  const TemporaryFolder machines_;
  JoinToken token_, unused_;
  std::string log_;
  std::atomic<absl::Duration> later_ = absl::ZeroDuration();
  std::unique_ptr<IssuerService> service_;
  IssuerService::Server server_;
};

TEST_F(IssuerTest, ATokenBringsOneMachineIn) {
  const auto joined = JoinRun(address(), token_, Folder("new"), kPatience);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->identity, run_.Peer(9));
  // As a member of the run it is believed, and believes, at once.
  const auto opened = CertificateFolder::Open(Folder("new"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(run_.Certificates(run_.Peer(1))
                  ->Check(*ReadPemFile(Folder("new") + "/cert.pem"))
                  .ok());
  // A copy of the token on another machine is too late.
  const auto thief = JoinRun(address(), token_, Folder("thief"), kPatience);
  EXPECT_TRUE(absl::IsPermissionDenied(thief.status())) << thief.status();
  EXPECT_FALSE(std::filesystem::exists(Folder("thief") + "/cert.pem"));
  EXPECT_EQ(*service_->CountUnused(), 1);
  EXPECT_THAT(log_,
              AllOf(HasSubstr("certificate_given: peer 9 at ipv4:127.0.0.1"),
                    HasSubstr("newcomer_refused: from ipv4:127.0.0.1"),
                    Not(HasSubstr(ToText(token_)))));
}

TEST_F(IssuerTest, ALongListOfRevokedOnesReachesANewcomer) {
  std::vector<std::string> serials;
  for (int i = 0; i < 20000; ++i) {
    serials.push_back(
        absl::StrCat("7f0123456789abcdef012345", absl::Hex(i + (1 << 28))));
  }
  ASSERT_TRUE(run_.authority().Revoke(serials, began_).ok());
  const auto joined = JoinRun(address(), token_, Folder("new"), kPatience);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_GT(std::filesystem::file_size(Folder("new") + "/crl.pem"),
            kMaxCrlBytes * 3 / 4);
  EXPECT_TRUE(CertificateFolder::Open(Folder("new")).ok());
}

TEST_F(IssuerTest, AMachineWhoseAnswerWasLostAsksAgain) {
  const std::string folder = Folder("new");
  const auto joined = JoinRun(address(), token_, folder, kPatience);
  ASSERT_TRUE(joined.ok()) << joined.status();
  std::filesystem::remove(folder + "/cert.pem");
  const auto again = JoinRun(address(), token_, folder, kPatience);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->serial, joined->serial);
}

TEST_F(IssuerTest, ANewcomerBelievesItsAuthorityOnly) {
  JoinToken elsewhere = token_;
  elsewhere.authority[0] ^= 1;
  const auto refused =
      JoinRun(address(), elsewhere, Folder("new"), absl::Seconds(3));
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(std::filesystem::exists(Folder("new") + "/cert.pem"));
  // Nothing has reached the desk: the token is as good as before.
  EXPECT_EQ(*service_->CountUnused(), 2);
  EXPECT_EQ(log_, "");
}

TEST_F(IssuerTest, GiantAndCompressedRequestsAreRefusedUnseen) {
  ForgetPeakMemory();
  const int64_t before = PeakMemory();
  const auto refusal = [&](grpc_compression_algorithm algorithm,
                           size_t mebibytes) {
    grpc::ChannelArguments arguments;
    arguments.SetCompressionAlgorithm(algorithm);
    RawClient client(address(), "/gossamer.wire.Issuer/Join",
                     NewcomerCredentials(token_.authority), arguments);
    client.Write(Bomb(mebibytes));
    return client.Finish().error_code();
  };
  // What is not compressed this end holds encrypted.
  EXPECT_EQ(refusal(GRPC_COMPRESS_NONE, 8),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refusal(GRPC_COMPRESS_GZIP, 256), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_LT(PeakMemory() - before, kBombRefusal);
  EXPECT_EQ(log_, "");
  EXPECT_TRUE(JoinRun(address(), token_, Folder("new"), kPatience).ok());
}

// A byte at a time, half a handshake, and a newcomer that asks for nothing.
TEST_F(IssuerTest, WhoDawdlesIsCutOff) {
  const auto idle =
      grpc::CreateChannel(address(), NewcomerCredentials(token_.authority));
  ASSERT_TRUE(
      idle->WaitForConnected(absl::ToChronoTime(absl::Now() + kPatience)));
  RawSocket half(server_.port), slow(server_.port);
  ASSERT_TRUE(half.Send(kHalfHandshake));
  const std::string endless = kHalfHandshake + std::string(500, '\0');
  EXPECT_LT(slow.Drip(endless, absl::Milliseconds(200)), endless.size());
  EXPECT_TRUE(half.EndsWithin(kPatience));
  EXPECT_TRUE(idle->WaitForStateChange(
      GRPC_CHANNEL_READY, absl::ToChronoTime(absl::Now() + kPatience)));
}

TEST_F(IssuerTest, ADeskThatAnswersWithABombIsRefused) {
  // Of the right authority: a newcomer hears nobody else.
  const HostileServer hostile(
      DeskCredentials(*run_.authority().MakeDesk(absl::Now())));
  ForgetPeakMemory();
  const int64_t before = PeakMemory();
  const auto joined =
      JoinRun(hostile.address(), token_, Folder("new"), kPatience);
  EXPECT_TRUE(absl::IsUnimplemented(joined.status())) << joined.status();
  EXPECT_LT(PeakMemory() - before, kBombRefusal);
  EXPECT_FALSE(std::filesystem::exists(Folder("new") + "/cert.pem"));
}

// Ten that do not hold, then one a second; what a good token gets is not
// counted, and nothing is used up.
TEST_F(IssuerTest, GuessesAreBoundedInNumber) {
  const auto guess = [&](const JoinToken& token) {
    return JoinRun(address(), token, Folder("guess"), kPatience).status();
  };
  JoinToken wrong = unused_;
  for (int times = 0; times < 10; ++times) {
    ++wrong.secret[0];
    EXPECT_TRUE(absl::IsPermissionDenied(guess(wrong)));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(guess(wrong))) << guess(wrong);
  // Not even a good one is looked at meanwhile.
  EXPECT_TRUE(absl::IsResourceExhausted(guess(unused_)));
  later_ = absl::Seconds(5);
  EXPECT_TRUE(JoinRun(address(), token_, Folder("new"), kPatience).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(guess(wrong)));
  EXPECT_EQ(*service_->CountUnused(), 1);
}

// A hundred guesses, of other secrets and of other ids by turns: the desk looks
// at ten, and at one a second; nobody learns which of its parts was wrong, the
// log has a line, and both good tokens are as good as before.
TEST_F(IssuerTest, AHundredTokensOfOneAddressAreTenGuesses) {
  JoinToken wrong = token_;
  int looked_at = 0, not_listened_to = 0;
  std::set<std::string> words;
  for (int times = 0; times < 100; ++times) {
    std::string& part = times % 2 == 0 ? wrong.secret : wrong.id;
    ++part[static_cast<size_t>(times) % part.size()];
    const absl::Status refused =
        JoinRun(address(), wrong, Folder("guess"), kPatience).status();
    looked_at += absl::IsPermissionDenied(refused);
    not_listened_to += absl::IsResourceExhausted(refused);
    words.insert(std::string(refused.message()));
    if (times == 59) later_ = absl::Seconds(7);
  }
  EXPECT_EQ(looked_at, 17);
  EXPECT_EQ(not_listened_to, 83);
  EXPECT_EQ(words.size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(Folder("guess") + "/cert.pem"));
  EXPECT_EQ(std::count(log_.begin(), log_.end(), '\n'), 1) << log_;
  EXPECT_EQ(*service_->CountUnused(), 2);
  later_ = absl::Seconds(20);
  for (const JoinToken& good : {token_, unused_}) {
    const auto joined = JoinRun(address(), good, Folder("new"), kPatience);
    EXPECT_TRUE(joined.ok()) << joined.status();
    std::filesystem::remove_all(Folder("new"));
  }
}

// At most 32 of one host; the desk's own limits cut them off in the end, so
// that a newcomer that goes on asking gets in.
TEST_F(IssuerTest, ConnectionsOfStrangersAreBounded) {
  std::vector<std::unique_ptr<RawSocket>> silent;
  for (int i = 0; i < 32; ++i) {
    silent.push_back(std::make_unique<RawSocket>(server_.port));
  }
  RawSocket one_too_many(server_.port);
  EXPECT_TRUE(one_too_many.EndsWithin(kPatience));
  service_->TellStrangers();
  service_->TellStrangers();
  EXPECT_EQ(log_,
            "strangers_refused: 1 connections so far: as many were open as may "
            "be that had not brought a token\n");
  const auto joined = JoinRun(address(), token_, Folder("new"), kPatience);
  EXPECT_TRUE(joined.ok()) << joined.status();
}

class CertsJoinTest : public Cli {
 protected:
  CertsJoinTest() { EXPECT_EQ(Run("certs init --run r --ca ca").code, 0); }
  // Starts gossamer certs serve, which ends soon after its last token; its
  // port.
  std::string Serve(const std::string& linger = "1s") {
    const std::string file = folder_.path() + "/port";
    std::filesystem::remove(file);
    EXPECT_EQ(Run("certs serve --ca ca --listen 127.0.0.1:0 --port-file port "
                  "--linger " +
                  linger + " >/dev/null 2>serve.log & : ")
                  .code,
              0);
    const absl::Time end = absl::Now() + kPatience;
    while (!std::filesystem::exists(file) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    std::string port;
    std::ifstream(file) >> port;
    return port;
  }
  std::string Log() const { return ReadAll(folder_.path() + "/serve.log"); }
  bool Logs(const std::string& text) const {
    const absl::Time end = absl::Now() + kPatience;
    while (Log().find(text) == std::string::npos) {
      if (absl::Now() >= end) return false;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }
};

TEST_F(CertsJoinTest, TokenServeJoin) {
  const Result made = Run("certs token --ca ca --id 9 --valid 10m --json");
  ASSERT_EQ(made.code, 0) << made.err;
  const Json token = Json::parse(made.out);
  EXPECT_EQ(token["identity"], "gossamer://r/9");
  Write("token", token["token"].get<std::string>() + "\n");
  const std::string port = Serve();
  ASSERT_NE(port, "") << ReadAll(folder_.path() + "/serve.log");
  const Result joined = Run("certs join --issuer 127.0.0.1:" + port +
                            " --token-file token --out mine --json");
  ASSERT_EQ(joined.code, 0) << joined.err;
  EXPECT_EQ(Json::parse(joined.out)["identity"], "gossamer://r/9");
  EXPECT_EQ(Run("certs show --certs mine").code, 0);
  // Soon after its last token the door closes.
  EXPECT_TRUE(Logs("the door is closed")) << Log();
  EXPECT_THAT(Log(), AllOf(HasSubstr("peer 9 at"),
                           HasSubstr("no token is left that can be used; for "
                                     "1s a machine")));
}

// The answer to the last token is lost, and then the desk has ended, too.
TEST_F(CertsJoinTest, WhoLostTheLastAnswerAsksAgain) {
  Write("token", Run("certs token --ca ca --id 9 --valid 10m").out);
  const auto join = [&](const std::string& port) {
    const Result joined = Run("certs join --issuer 127.0.0.1:" + port +
                              " --token-file token --out mine --json");
    EXPECT_EQ(joined.code, 0) << joined.err << Log();
    std::filesystem::remove(folder_.path() + "/mine/cert.pem");
    return joined.code == 0 ? Json::parse(joined.out)["serial"] : Json();
  };
  // Longer than a machine under load needs to start a program.
  const std::string port = Serve("10s");
  const Json serial = join(port);
  EXPECT_TRUE(Logs("no token is left")) << Log();
  EXPECT_EQ(join(port), serial);
  EXPECT_TRUE(Logs("the door is closed")) << Log();
  EXPECT_EQ(join(Serve("10s")), serial);
  EXPECT_TRUE(Logs("the door is closed")) << Log();
}

TEST_F(CertsJoinTest, WrongInputsAreOneLineEach) {
  const auto refusal = [&](const std::string& arguments) {
    const Result result = Run("certs " + arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    return result.err;
  };
  EXPECT_THAT(refusal("token --ca ca --id 0"), HasSubstr("from 1"));
  EXPECT_THAT(refusal("token --ca nowhere --id 1"), HasSubstr("certs init"));
  EXPECT_THAT(refusal("token --ca ca --id 1 --valid 5"), HasSubstr("--valid"));
  EXPECT_THAT(refusal("token --ca ca --id 1 --name 'a b'"),
              HasSubstr("host name"));
  EXPECT_THAT(refusal("serve --ca ca"), HasSubstr("certs token"));
  EXPECT_THAT(refusal("serve --ca ca --linger soon"), HasSubstr("--linger"));
  Write("token", "gossamer-join-1.secret-part\n");
  EXPECT_THAT(
      refusal("join --issuer 127.0.0.1:1 --token-file token --out mine"),
      AllOf(HasSubstr("no whole token"), Not(HasSubstr("secret-part"))));
  EXPECT_THAT(refusal("join --issuer 127.0.0.1:1 --token-file none --out mine"),
              HasSubstr("none"));
  EXPECT_THAT(refusal("revoke --ca ca --token 00"), HasSubstr("no token"));
  const Json token = Json::parse(Run("certs token --ca ca --id 3 --json").out);
  EXPECT_EQ(
      Run("certs revoke --ca ca --token " + token["id"].get<std::string>())
          .code,
      0);
  EXPECT_THAT(refusal("serve --ca ca"), HasSubstr("certs token"));
}

}  // namespace
}  // namespace gossamer
