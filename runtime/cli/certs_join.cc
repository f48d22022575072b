// gossamer certs token, serve, join: a new machine's first certificate.

#include <signal.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/base/descriptor_limit.h"
#include "runtime/base/steady_time.h"
#include "runtime/cli/command.h"
#include "runtime/cli/issuer_client.h"
#include "runtime/cli/issuer_service.h"
#include "runtime/config/run_config.h"
#include "runtime/identity/join_desk.h"
#include "runtime/transport/grpc/steady_deadline.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples, where the authority is:
  gossamer certs token --ca ca --id 9 --valid 1h > token-9
  gossamer certs serve --ca ca --listen 10.0.0.9:7701
and on the new machine, to which only the token has been brought:
  gossamer certs join  --issuer 10.0.0.9:7701 --token-file token-9 --out certs

A token is good for one peer, one key and one certificate, for as long as
--valid says.  Keep it as a password: who comes first gets in.  The new machine
makes its own key, which never leaves it, and believes nobody but the authority
that made the token.  serve ends --linger after no token is left, so that the
door is open only while somebody is expected, and a machine whose answer was lost
can ask again; gossamer certs revoke --token ID takes one back.)";

struct Options {
  std::string ca;
  std::string listen = "127.0.0.1:7701";
  std::string port_file;
  std::string issuer;
  std::string token_file;
  std::string out;
  std::string valid = "1h";
  std::string timeout = "60s";
  std::string linger = "60s";
  uint64_t id = 0;
  int days = 90;
  std::vector<std::string> names;
  bool keep = false;
  bool json = false;
};

absl::StatusOr<absl::Duration> DurationOf(const std::string& flag,
                                          const std::string& text) {
  const absl::StatusOr<absl::Duration> duration = ParsePositiveDuration(text);
  if (duration.ok()) return duration;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", duration.status().message()));
}

std::string Moment(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

absl::Status MakeToken(const Options& o) {
  GOSSAMER_ASSIGN_OR_RETURN(const absl::Duration valid,
                            DurationOf("--valid", o.valid));
  GOSSAMER_ASSIGN_OR_RETURN(JoinDesk desk, JoinDesk::Open(o.ca));
  if (o.id == 0) {
    return absl::InvalidArgumentError("--id 0: peers count from 1");
  }
  const absl::Time until = absl::Now() + valid;
  const Identity whose{.run = desk.authority().run(), .peer = {o.id}};
  GOSSAMER_ASSIGN_OR_RETURN(const JoinToken token,
                            desk.MakeToken({.identity = whose,
                                            .names = o.names,
                                            .until = until,
                                            .life = absl::Hours(24) * o.days},
                                           absl::Now()));
  const std::string id = absl::BytesToHexString(token.id);
  if (o.json) {
    std::cout << Json{{"token", ToText(token)},
                      {"id", id},
                      {"identity", ToUri(whose)},
                      {"until", absl::FormatTime(until, absl::UTCTimeZone())}}
                     .dump(2)
              << "\n";
    return absl::OkStatus();
  }
  std::cout << ToText(token) << "\n";
  std::cerr << "token " << id << " of " << Describe(whose) << ", until "
            << Moment(until) << "\n";
  return absl::OkStatus();
}

// True if SIGINT or SIGTERM came within a while.
bool WaitForSignal(const sigset_t& signals) {
  const timespec tick = {.tv_sec = 0, .tv_nsec = 200'000'000};
  return sigtimedwait(&signals, nullptr, &tick) > 0;
}

using Say = std::function<void(const std::string&)>;

// Until a signal comes or the door is to close.
absl::Status WaitForNewcomers(IssuerService& service, const sigset_t& signals,
                              const Options& o, absl::Duration linger,
                              const Say& say) {
  absl::Time closes = absl::InfiniteFuture();
  while (!WaitForSignal(signals)) {
    service.TellStrangers();
    GOSSAMER_ASSIGN_OR_RETURN(const int unused, service.CountUnused());
    if (unused > 0 || o.keep) {
      closes = absl::InfiniteFuture();
    } else if (closes == absl::InfiniteFuture()) {
      closes = SteadyNow() + linger;
      say(absl::StrCat("no token is left that can be used; for ",
                       absl::FormatDuration(linger),
                       " a machine whose answer was lost can ask again"));
    } else if (SteadyNow() >= closes) {
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status Serve(const Options& o) {
  GOSSAMER_ASSIGN_OR_RETURN(const absl::Duration linger,
                            DurationOf("--linger", o.linger));
  RaiseDescriptorLimit();
  // Before any thread is started, so that all of them inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  GOSSAMER_ASSIGN_OR_RETURN(JoinDesk desk, JoinDesk::Open(o.ca));
  GOSSAMER_RETURN_IF_ERROR(desk.Claim());
  const Say say = [](const std::string& line) {
    std::cerr << absl::FormatTime("%H:%M:%S ", absl::Now(),
                                  absl::LocalTimeZone())
              << line << std::endl;
  };
  GOSSAMER_ASSIGN_OR_RETURN(const JoinDesk::Counts tokens,
                            desk.Count(absl::Now()));
  if (tokens.unused == 0 && tokens.used == 0 && !o.keep) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no token of ", o.ca,
        " can be used; gossamer certs token makes one (--keep waits for it)"));
  }
  IssuerService service(std::move(desk), absl::Now, say);
  GOSSAMER_ASSIGN_OR_RETURN(const IssuerService::Server server,
                            service.Listen(o.listen));
  say(absl::StrCat("waiting for ", tokens.unused,
                   tokens.unused == 1 ? " newcomer" : " newcomers", " on ",
                   o.listen, " (port ", server.port, ")"));
  if (!o.port_file.empty()) {
    std::ofstream(o.port_file + ".new") << server.port << "\n";
    std::rename((o.port_file + ".new").c_str(), o.port_file.c_str());
  }
  GOSSAMER_RETURN_IF_ERROR(WaitForNewcomers(service, signals, o, linger, say));
  // Answers on their way.
  server.server->Shutdown(SteadyDeadline(absl::Seconds(1)));
  say("the door is closed");
  return absl::OkStatus();
}

absl::StatusOr<JoinToken> ReadToken(const std::string& path) {
  std::stringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
  } else {
    std::ifstream file(path);
    if (!file) {
      return absl::InvalidArgumentError(
          absl::StrCat("--token-file ", path, " cannot be read"));
    }
    text << file.rdbuf();
  }
  const absl::StatusOr<JoinToken> token = ParseJoinToken(text.str());
  if (token.ok()) return token;
  return absl::InvalidArgumentError(
      absl::StrCat("--token-file ", path, ": ", token.status().message()));
}

absl::Status Join(const Options& o) {
  GOSSAMER_ASSIGN_OR_RETURN(const absl::Duration timeout,
                            DurationOf("--timeout", o.timeout));
  GOSSAMER_ASSIGN_OR_RETURN(const JoinToken token, ReadToken(o.token_file));
  GOSSAMER_ASSIGN_OR_RETURN(const Certificate issued,
                            JoinRun(o.issuer, token, o.out, timeout));
  if (o.json) {
    std::cout << Json{{"identity", ToUri(issued.identity)},
                      {"serial", issued.serial},
                      {"until",
                       absl::FormatTime(issued.until, absl::UTCTimeZone())}}
                     .dump(2)
              << "\n";
  } else {
    std::cout << o.out << ": " << ToUri(issued.identity) << ", until "
              << Moment(issued.until) << "\n";
  }
  return absl::OkStatus();
}

Command& Add(Command& certs, const std::string& name, const std::string& about,
             const std::shared_ptr<Options>& options,
             absl::Status (*run)(const Options&)) {
  return certs.AddCommand(
      {.name = name, .about = about, .footer = kExamples, .run = [=] {
         const absl::Status status = run(*options);
         return status.ok() ? kOk : Complain("certs " + name, status);
       }});
}

}  // namespace

void AddCertsJoin(Command& certs) {
  const OptionRules folder{.required = true, .value_name = "DIR"};
  auto o = std::make_shared<Options>();
  Command& token =
      Add(certs, "token", "Let a new machine in, once", o, MakeToken);
  token.AddOption("--ca", &o->ca, "folder of the authority", folder);
  token.AddOption("--id", &o->id, "the peer's number, from 1",
                  {.required = true});
  token.AddOption("--valid", &o->valid, "how long it can be used",
                  {.show_default = true, .value_name = "TIME"});
  token.AddOption("--days", &o->days, "until its certificate expires",
                  {.show_default = true, .range = {{1, 36500}}});
  token.AddOption("--name", &o->names,
                  "host or address that the certificate also stands for; may "
                  "be given again",
                  {.one_at_a_time = true});
  token.AddOption("--json", &o->json, "answer as JSON");

  o = std::make_shared<Options>();
  Command& serve =
      Add(certs, "serve", "Issue to machines that bring a token", o, Serve);
  serve.AddOption("--ca", &o->ca, "folder of the authority", folder);
  serve.AddOption("--listen", &o->listen, "host:port; port 0 takes a free one",
                  {.show_default = true});
  serve.AddOption("--port-file", &o->port_file,
                  "write the port here when ready");
  serve.AddOption("--keep", &o->keep,
                  "go on when no token is left: others will be made");
  serve.AddOption("--linger", &o->linger,
                  "go on for so long when no token is left: the --timeout of "
                  "join, as its answer may have been lost",
                  {.show_default = true, .value_name = "TIME"});

  o = std::make_shared<Options>();
  Command& join = Add(certs, "join", "Get a first certificate", o, Join);
  join.AddOption("--issuer", &o->issuer, "host:port of gossamer certs serve",
                 {.required = true});
  join.AddOption("--token-file", &o->token_file, "the token; -: from stdin",
                 {.required = true, .value_name = "FILE"});
  join.AddOption("--out", &o->out, "folder to make", folder);
  join.AddOption("--timeout", &o->timeout, "how long to try",
                 {.show_default = true, .value_name = "TIME"});
  join.AddOption("--json", &o->json, "answer as JSON");
}

}  // namespace gossamer
