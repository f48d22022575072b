// gossamer certs: who may take part in a run.

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"
#include "runtime/config/run_config.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/join_desk.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples:
  gossamer certs init   --run cifar --ca ca
  gossamer certs issue  --ca ca --fleet 8 --out certs
  gossamer certs issue  --ca ca --id 3 --out certs/peer-3 --for 12h
  gossamer certs revoke --ca ca --id 3 --publish certs/peer-1,certs/topology
  gossamer certs show   --ca ca --json
  gossamer certs token  --ca ca --id 9 > token-9    # a new machine: see --help

Keep the folder of --ca to yourself: with its key anybody can be anybody. Each
machine gets its own folder alone, for --certs of gossamer-topology,
gossamer-peer and gossamer status. A folder that is renewed is noticed within
seconds, and so is a crl.pem that revoke has added to, once it is copied there;
nothing is to be restarted.)";

struct Options {
  std::string ca;
  std::string run;
  std::string out;
  std::string role;
  std::string serial;
  bool unknown = false;
  std::string token;
  std::string certs;
  std::optional<uint64_t> id;
  int fleet = 0;
  int days = 0;
  std::string life;
  std::vector<std::string> names;
  std::vector<std::string> publish;
  bool json = false;
};

std::string Day(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M", time, absl::UTCTimeZone());
}

Json ToJson(const Certificate& c, bool revoked) {
  return {{"identity", ToUri(c.identity)},
          {"serial", c.serial},
          {"from", absl::FormatTime(c.from, absl::UTCTimeZone())},
          {"until", absl::FormatTime(c.until, absl::UTCTimeZone())},
          {"names", c.names},
          {"use", c.only_signs ? "views" : "connections"},
          {"revoked", revoked}};
}

std::string ToLine(const Certificate& c, bool revoked, absl::Time now) {
  return absl::StrFormat("%-32s until %s UTC  serial %s%s%s", ToUri(c.identity),
                         Day(c.until), c.serial,
                         c.only_signs ? "  signs views" : "",
                         revoked         ? "  REVOKED"
                         : c.until < now ? "  EXPIRED"
                                         : "");
}

// How long --for or --days says.
absl::StatusOr<absl::Duration> LifeOf(const Options& o) {
  if (o.life.empty()) return absl::Hours(24) * o.days;
  absl::StatusOr<absl::Duration> life = ParsePositiveDuration(o.life);
  if (life.ok()) return life;
  return absl::InvalidArgumentError(
      absl::StrCat("--for ", life.status().message()));
}

// Whom --id or --role names.
absl::StatusOr<Identity> Whom(const Options& o, const std::string& run) {
  Identity identity{.run = run, .peer = {}};
  if (o.id.has_value() == !o.role.empty()) {
    return absl::InvalidArgumentError(
        "say whose with --id, a peer's number, or with --role");
  }
  if (!o.role.empty()) {
    identity.role = o.role == "topology" ? Role::kTopology : Role::kOperator;
  } else if (*o.id == 0) {
    return absl::InvalidArgumentError("--id 0: peers count from 1");
  } else {
    identity.peer = {*o.id};
  }
  return identity;
}

absl::Status Init(const Options& o) {
  if (!IsRunName(o.run)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--run \"", o.run,
                     "\": a run's name is the one of its "
                     "configuration: letters, digits, "
                     "._-"));
  }
  GOSSAMER_RETURN_IF_ERROR(AuthorityFolder::Init(o.ca, o.run, absl::Now(),
                                                 absl::Hours(24) * o.days));
  std::cout << "the authority of run \"" << o.run << "\" is in " << o.ca
            << "; keep " << o.ca << "/ca-key.pem to yourself\n";
  return absl::OkStatus();
}

absl::Status Issue(const Options& o) {
  GOSSAMER_ASSIGN_OR_RETURN(const AuthorityFolder authority,
                            AuthorityFolder::Open(o.ca));
  const std::string& run = authority.run();
  std::vector<std::pair<Identity, std::string>> wanted;
  if (o.fleet > 0) {
    if (o.id || !o.role.empty()) {
      return absl::InvalidArgumentError(
          "--fleet issues for everybody; leave --id and --role out");
    }
    wanted = {{{.run = run, .role = Role::kTopology, .peer = {}},
               o.out + "/topology"},
              {{.run = run, .role = Role::kOperator, .peer = {}},
               o.out + "/operator"}};
    for (uint64_t id = 1; id <= static_cast<uint64_t>(o.fleet); ++id) {
      wanted.push_back(
          {{.run = run, .peer = {id}}, absl::StrCat(o.out, "/peer-", id)});
    }
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(Identity identity, Whom(o, run));
    wanted.emplace_back(std::move(identity), o.out);
  }
  GOSSAMER_ASSIGN_OR_RETURN(const absl::Duration life, LifeOf(o));
  for (const auto& [identity, folder] : wanted) {
    GOSSAMER_ASSIGN_OR_RETURN(
        const Certificate issued,
        authority.Issue(identity, o.names, absl::Now(), life, folder));
    std::cout << folder << ": " << ToUri(identity) << ", until "
              << Day(issued.until) << " UTC\n";
  }
  return absl::OkStatus();
}

absl::Status CancelToken(const Options& o) {
  GOSSAMER_ASSIGN_OR_RETURN(JoinDesk desk, JoinDesk::Open(o.ca));
  const absl::StatusOr<JoinDesk::Cancelled> cancelled = desk.Cancel(o.token);
  if (absl::IsNotFound(cancelled.status())) {
    return absl::InvalidArgumentError(cancelled.status().message());
  }
  GOSSAMER_RETURN_IF_ERROR(cancelled.status());
  std::cout << "token " << o.token << " lets nobody in any more\n";
  if (!cancelled->serial.empty()) {
    std::cout << "but " << Describe(cancelled->identity)
              << " has got a certificate by it already; to take that back: "
                 "gossamer certs revoke --ca "
              << o.ca << " --serial " << cancelled->serial << "\n";
  }
  return absl::OkStatus();
}

// How many of `whom`.  A token that is left would let it, or a thief, in again.
absl::StatusOr<size_t> CancelTokensOf(const Options& o, const Identity& whom) {
  if (whom.role != Role::kPeer) return 0;  // has none, ever
  GOSSAMER_ASSIGN_OR_RETURN(JoinDesk desk, JoinDesk::Open(o.ca));
  GOSSAMER_ASSIGN_OR_RETURN(const auto cancelled, desk.CancelUnused(whom));
  for (const JoinDesk::Cancelled& c : cancelled) {
    std::cout << "token " << c.id << " of " << Describe(whom)
              << " lets nobody in any more\n";
  }
  return cancelled.size();
}

// Those of `whom` that somebody may still believe: what has ended everywhere
// would make the list longer for nothing.
absl::StatusOr<std::vector<std::string>> SerialsOf(
    const AuthorityFolder& authority, const Identity& whom, absl::Time now) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto issued, authority.List());
  std::vector<std::string> serials;
  int ended = 0;
  for (const AuthorityFolder::Issued& i : issued) {
    if (i.certificate.identity != whom || i.revoked) continue;
    if (i.certificate.until + kClockSkew <= now) {
      ++ended;
    } else {
      serials.push_back(i.certificate.serial);
    }
  }
  if (ended > 0) {
    std::cout << "left out: " << ended << " certificate"
              << (ended == 1 ? "" : "s") << " of " << Describe(whom)
              << (ended == 1 ? ", which has" : ", which have")
              << " ended; --serial revokes one all the same\n";
  }
  return serials;
}

// --serial, as lists have it.  A slip of the hand must not look like success.
absl::StatusOr<std::string> NamedSerial(const Options& o,
                                        const AuthorityFolder& authority) {
  std::string serial = absl::AsciiStrToLower(o.serial);
  GOSSAMER_ASSIGN_OR_RETURN(const auto issued, authority.List());
  for (const AuthorityFolder::Issued& i : issued) {
    if (i.certificate.serial != serial) continue;
    std::cout << ToLine(i.certificate, i.revoked, absl::Now()) << "\n";
    return serial;
  }
  if (o.unknown) return serial;
  return absl::InvalidArgumentError(absl::StrCat(
      "--serial ", o.serial, ": ", o.ca,
      " has issued no such certificate (gossamer certs show lists them); "
      "--unknown revokes it all the same, where its file has been lost"));
}

absl::Status Revoke(const Options& o) {
  GOSSAMER_ASSIGN_OR_RETURN(const AuthorityFolder authority,
                            AuthorityFolder::Open(o.ca));
  if (!o.token.empty()) return CancelToken(o);
  std::vector<std::string> serials;
  absl::StatusOr<size_t> tokens = 0;
  if (!o.serial.empty()) {
    GOSSAMER_ASSIGN_OR_RETURN(serials.emplace_back(),
                              NamedSerial(o, authority));
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(const Identity whom, Whom(o, authority.run()));
    // Before certificates are looked for: none is issued by one after that.
    tokens = CancelTokensOf(o, whom);
    GOSSAMER_ASSIGN_OR_RETURN(serials, SerialsOf(authority, whom, absl::Now()));
    if (serials.empty()) {
      if (tokens.value_or(0) > 0) return absl::OkStatus();
      GOSSAMER_RETURN_IF_ERROR(tokens.status());
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(whom), " has no certificate of ", o.ca,
                       " that still holds, and no token"));
    }
  }
  GOSSAMER_RETURN_IF_ERROR(authority.Revoke(serials, absl::Now()));
  for (const std::string& folder : o.publish) {
    GOSSAMER_RETURN_IF_ERROR(authority.Publish(folder));
  }
  std::cout << "revoked " << serials.size() << " certificate"
            << (serials.size() == 1 ? "" : "s") << "; in force wherever "
            << o.ca << "/crl.pem is copied into the folder of --certs\n";
  return tokens.status();
}

absl::Status Show(const Options& o) {
  if (o.ca.empty() == o.certs.empty()) {
    return absl::InvalidArgumentError(
        "say of what: --ca DIR, or --certs DIR of one program");
  }
  std::vector<AuthorityFolder::Issued> list;
  if (!o.ca.empty()) {
    GOSSAMER_ASSIGN_OR_RETURN(const AuthorityFolder authority,
                              AuthorityFolder::Open(o.ca));
    GOSSAMER_ASSIGN_OR_RETURN(list, authority.List());
  } else {
    const absl::StatusOr<std::string> pem = ReadPemFile(o.certs + "/cert.pem");
    if (!pem.ok()) return absl::InvalidArgumentError(pem.status().message());
    GOSSAMER_ASSIGN_OR_RETURN(Certificate own, ReadCertificate(*pem));
    list.push_back({.certificate = std::move(own)});
    // Whatever else is wrong with the folder is said as well.
    GOSSAMER_RETURN_IF_ERROR(CertificateFolder::Open(o.certs).status());
  }
  Json json = Json::array();
  for (const AuthorityFolder::Issued& i : list) {
    if (o.json) {
      json.push_back(ToJson(i.certificate, i.revoked));
    } else {
      std::cout << ToLine(i.certificate, i.revoked, absl::Now()) << "\n";
    }
  }
  if (o.json) std::cout << json.dump(2) << "\n";
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

void AddWhom(Command& command, Options& options, const std::string& more = "") {
  command.AddOption("--id", &options.id, "a peer's number, from 1" + more);
  command.AddOption("--role", &options.role, "of who is no peer",
                    {.choices = {"topology", "operator"}});
}

}  // namespace

void AddCerts(Command& program) {
  Command& certs = program.AddCommand(
      {.name = "certs",
       .about = "Make, issue and revoke the certificates of a run",
       .footer = kExamples});
  const OptionRules needed{.required = true, .value_name = "DIR"};
  auto o = std::make_shared<Options>();
  Command& init = Add(certs, "init", "Make the authority of a run", o, Init);
  init.AddOption("--ca", &o->ca, "folder to make", needed);
  init.AddOption("--run", &o->run, "the configuration's name",
                 {.required = true});
  o->days = 3650;
  init.AddOption("--days", &o->days, "of the authority",
                 {.show_default = true, .range = {{1, 36500}}});

  o = std::make_shared<Options>();
  Command& issue = Add(certs, "issue", "Make or renew certificates", o, Issue);
  issue.AddOption("--ca", &o->ca, "folder of the authority", needed);
  issue.AddOption("--out", &o->out, "folder to make or renew", needed);
  AddWhom(issue, *o);
  issue.AddOption(
      "--fleet", &o->fleet,
      "for the service, an operator and peers 1 to N, a folder each",
      {.value_name = "N", .range = {{1, 4096}}});
  issue.AddOption("--name", &o->names,
                  "host or address that it also stands for; may be given again",
                  {.one_at_a_time = true});
  o->days = 90;
  issue.AddOption("--days", &o->days, "until it expires",
                  {.show_default = true, .range = {{1, 36500}}});
  issue.AddOption("--for", &o->life, "until it expires, if it lives for less",
                  {.value_name = "TIME", .excludes = "--days"});

  o = std::make_shared<Options>();
  Command& revoke = Add(certs, "revoke", "Take certificates back", o, Revoke);
  revoke.AddOption("--ca", &o->ca, "folder of the authority", needed);
  AddWhom(revoke, *o, "; its tokens that nobody has used go, too");
  revoke.AddOption("--serial", &o->serial, "one certificate, as show says it");
  revoke.AddOption("--unknown", &o->unknown,
                   "also a --serial that the folder does not know");
  revoke.AddOption("--token", &o->token,
                   "a token, as gossamer certs token names it",
                   {.excludes = "--serial"});
  revoke.AddOption("--publish", &o->publish,
                   "folders of certificates on this machine that learn of it",
                   {.value_name = "DIRS", .delimiter = ','});

  o = std::make_shared<Options>();
  Command& show = Add(certs, "show", "Who has one, and until when", o, Show);
  show.AddOption("--ca", &o->ca, "folder of the authority: all of its",
                 {.value_name = "DIR"});
  show.AddOption("--certs", &o->certs, "folder of one program",
                 {.value_name = "DIR"});
  show.AddOption("--json", &o->json, "answer as JSON");
  AddCertsJoin(certs);
}

}  // namespace gossamer
