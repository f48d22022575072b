// gossamer certs: the certificates of a run, from its authority to its members.

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
#include "runtime/base/run_name.h"
#include "runtime/cli/command.h"
#include "runtime/config/run_config.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/request_folder.h"
#include "runtime/identity/signing_request.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples:
  gossamer certs init   --run cifar --ca ca
  gossamer certs issue  --ca ca --fleet 8 --out certs
  gossamer certs issue  --ca ca --id 3 --out certs/peer-3 --for 12h
  gossamer certs revoke --ca ca --id 3 --publish certs/peer-1,certs/topology
  gossamer certs show   --ca ca --json
a machine that makes its own key, which never leaves it:
  gossamer certs request --id 9 --run cifar --out certs      # on that machine
  gossamer certs sign   --ca ca --request request.pem --id 9 --out answer
  gossamer certs show   --certs certs     # there, with the answer copied into it

Keep the folder of --ca to yourself: with its key anybody can be anybody. Each
machine gets its own folder alone, for --certs of gossamer-topology,
gossamer-peer and gossamer status. A folder that is renewed is noticed within
seconds, and so is a crl.pem that revoke has added to, once it is copied there;
nothing is to be restarted.)";

constexpr char kRequestExamples[] = R"(examples, on the new machine:
  gossamer certs request --id 9 --run cifar --out certs
  gossamer certs request --role operator --run cifar --out certs
where the authority is, to which certs/request.pem alone has been brought:
  gossamer certs sign --ca ca --request request.pem --id 9 --out answer
  gossamer certs sign --ca ca --request request.pem --id 9 --out answer --for 12h
and on the new machine again, when the files of answer have been copied to certs:
  gossamer certs show --certs certs
before that certificate ends, a request for another one of the same key:
  gossamer certs request --id 9 --run cifar --out certs --same-key

A request holds no secret, but another one in its place would get the
certificate: compare the SHA-256 of the key, which both commands print. The
identity in a request is a wish. sign without --id or --role says what it is and
signs nothing; with them it signs only what they name.)";

struct Options {
  std::string ca;
  std::string run;
  std::string out;
  std::string role;
  std::string serial;
  std::string request;
  bool same_key = false;
  bool unknown = false;
  std::string certs;
  std::optional<uint64_t> id;
  int fleet = 0;
  int days = 0;
  std::string valid;
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

// Returns the validity that --for or --days gives.
absl::StatusOr<absl::Duration> ValidityOf(const Options& o) {
  if (o.valid.empty()) return absl::Hours(24) * o.days;
  absl::StatusOr<absl::Duration> valid = ParsePositiveDuration(o.valid);
  if (valid.ok()) return valid;
  return absl::InvalidArgumentError(
      absl::StrCat("--for ", valid.status().message()));
}

// Returns the identity that --id or --role names.
absl::StatusOr<Identity> Whom(const Options& o, const std::string& run) {
  Identity identity{.run = run, .peer = {}};
  // One of the two is needed, and no more: a certificate has one identity.
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

// Returns the flag that names `identity`.
std::string FlagOf(const Identity& identity) {
  switch (identity.role) {
    case Role::kTopology:
      return "--role topology";
    case Role::kOperator:
      return "--role operator";
    default:
      return absl::StrCat("--id ", identity.peer.value);
  }
}

absl::Status CheckRun(const std::string& run) {
  if (IsRunName(run)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--run \"", run,
                   "\": a run's name is the one of its configuration: letters, "
                   "digits, ._-"));
}

absl::Status Init(const Options& o) {
  GOSSAMER_RETURN_IF_ERROR(CheckRun(o.run));
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
  GOSSAMER_ASSIGN_OR_RETURN(const absl::Duration valid, ValidityOf(o));
  // A failure leaves the folders before it done, and the same command may be
  // given again: to issue is also to renew.
  for (const auto& [identity, folder] : wanted) {
    GOSSAMER_ASSIGN_OR_RETURN(
        const Certificate issued,
        authority.Issue(identity, o.names, absl::Now(), valid, folder));
    std::cout << folder << ": " << ToUri(identity) << ", until "
              << Day(issued.until) << " UTC\n";
  }
  return absl::OkStatus();
}

absl::Status Request(const Options& o) {
  GOSSAMER_RETURN_IF_ERROR(CheckRun(o.run));
  GOSSAMER_ASSIGN_OR_RETURN(const Identity whom, Whom(o, o.run));
  GOSSAMER_ASSIGN_OR_RETURN(
      const SigningRequest made,
      WriteRequest(o.out, whom,
                   o.same_key ? RequestedKey::kSame : RequestedKey::kNew));
  const bool service = whom.role == Role::kTopology;
  std::cout << o.out << "/request.pem: asks for " << ToUri(whom)
            << ", key SHA-256 " << KeyDigest(made) << "\n"
            << "next: bring request.pem to where the authority is, and there\n"
            << "  gossamer certs sign --ca ca --request request.pem "
            << FlagOf(whom) << " --out answer\n"
            << "then copy ca.pem, crl.pem, cert.pem"
            << (service ? ", signer.pem" : "") << " of answer into " << o.out
            << ", which is complete with them: gossamer certs show --certs "
            << o.out << " looks\n";
  return absl::OkStatus();
}

absl::Status Sign(const Options& o) {
  GOSSAMER_ASSIGN_OR_RETURN(const AuthorityFolder authority,
                            AuthorityFolder::Open(o.ca));
  GOSSAMER_ASSIGN_OR_RETURN(const SigningRequest request,
                            ReadRequest(o.request));
  const Identity& asked = request.identity;
  if (!o.id && o.role.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        o.request, " asks for ", ToUri(asked), ", key SHA-256 ",
        KeyDigest(request), "; nothing is signed: if it is to be, add ",
        FlagOf(asked)));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const Identity whom, Whom(o, authority.run()));
  // The request came from another machine: it is signed only if the person at
  // the authority names the same identity.
  if (whom != asked) {
    return absl::InvalidArgumentError(
        absl::StrCat(o.request, " asks for ", ToUri(asked),
                     ", and the command line names ", ToUri(whom)));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const absl::Duration valid, ValidityOf(o));
  GOSSAMER_ASSIGN_OR_RETURN(
      const Certificate issued,
      authority.Sign(request, o.names, absl::Now(), valid, o.out));
  const bool service = whom.role == Role::kTopology;
  std::cout << o.out << ": " << ToUri(whom) << ", until " << Day(issued.until)
            << " UTC, serial " << issued.serial << ", key SHA-256 "
            << KeyDigest(request) << "\n"
            << "next: copy ca.pem, crl.pem, cert.pem"
            << (service ? ", signer.pem" : "")
            << " into the folder of the request, which is complete with them\n";
  return absl::OkStatus();
}

// Certificates of `whom` that may still be believed: no others need an entry.
absl::StatusOr<std::vector<std::string>> SerialsOf(
    const AuthorityFolder& authority, const Identity& whom, absl::Time now) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto issued, authority.List());
  std::vector<std::string> serials;
  int ended = 0;
  for (const AuthorityFolder::Issued& i : issued) {
    // All of them are taken, not only the newest: a renewal leaves the earlier
    // certificate valid until it ends, and its copy may be the one that was
    // stolen.
    if (i.certificate.identity != whom || i.revoked) continue;
    if (HasEndedEverywhere(i.certificate.until, now)) {
      ++ended;
    } else {
      serials.push_back(i.certificate.serial);
    }
  }
  if (ended > 0) {
    std::cout << "left out: " << ended << " certificate"
              << (ended == 1 ? "" : "s") << " of " << Describe(whom)
              << (ended == 1 ? ", which has" : ", which have") << " ended\n";
  }
  return serials;
}

// Returns --serial in the form that lists have.  A slip of the hand must not
// look like success, nor may a certificate that nobody believes any more.
absl::StatusOr<std::string> NamedSerial(const Options& o,
                                        const AuthorityFolder& authority,
                                        absl::Time now) {
  std::string serial = absl::AsciiStrToLower(o.serial);
  GOSSAMER_ASSIGN_OR_RETURN(const auto issued, authority.List());
  for (const AuthorityFolder::Issued& i : issued) {
    if (i.certificate.serial != serial) continue;
    if (HasEndedEverywhere(i.certificate.until, now)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--serial ", o.serial, ": that certificate of ",
          Describe(i.certificate.identity), " ended at ",
          Day(i.certificate.until), " UTC; nobody believes it any more"));
    }
    std::cout << ToLine(i.certificate, i.revoked, now) << "\n";
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
  const absl::Time now = absl::Now();
  std::vector<std::string> serials;
  if (!o.serial.empty()) {
    GOSSAMER_ASSIGN_OR_RETURN(serials.emplace_back(),
                              NamedSerial(o, authority, now));
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(const Identity whom, Whom(o, authority.run()));
    GOSSAMER_ASSIGN_OR_RETURN(serials, SerialsOf(authority, whom, now));
    if (serials.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(whom), " has no certificate of ", o.ca,
                       " that still holds"));
    }
  }
  // The authority's own list comes first: copies are made of it.
  GOSSAMER_RETURN_IF_ERROR(authority.Revoke(serials, now));
  // If a folder fails, the list is already in force at the authority; the
  // command may be given again, or the file be copied by hand.
  for (const std::string& folder : o.publish) {
    GOSSAMER_RETURN_IF_ERROR(authority.Publish(folder));
  }
  std::cout << "revoked " << serials.size() << " certificate"
            << (serials.size() == 1 ? "" : "s") << "; in force wherever "
            << o.ca << "/crl.pem is copied into the folder of --certs\n";
  return absl::OkStatus();
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
    // The whole folder is checked as a program would: a certificate that is
    // shown may still be of no use.
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
             absl::Status (*run)(const Options&),
             const char* examples = kExamples) {
  return certs.AddCommand(
      {.name = name, .about = about, .footer = examples, .run = [=] {
         const absl::Status status = run(*options);
         return status.ok() ? kOk : PrintError("certs " + name, status);
       }});
}

void AddWhom(Command& command, Options& options) {
  command.AddOption("--id", &options.id, "a peer's number, from 1");
  command.AddOption("--role", &options.role, "whose, if not a peer's",
                    {.choices = {"topology", "operator"}});
}

// Adds the options for the contents of a certificate, of issue and sign.
void AddTerms(Command& command, Options& options) {
  command.AddOption("--name", &options.names,
                    "host or address that it also stands for; may be given "
                    "again",
                    {.one_at_a_time = true});
  options.days = 90;
  command.AddOption("--days", &options.days, "until it expires",
                    {.show_default = true, .range = {{1, 36500}}});
  command.AddOption("--for", &options.valid,
                    "until it expires, if that is sooner",
                    {.value_name = "TIME", .excludes = "--days"});
}

}  // namespace

void AddCerts(Command& program) {
  Command& certs = program.AddCommand(
      {.name = "certs",
       .about = "Make, issue and revoke the certificates of a run",
       .footer = kExamples});
  const OptionRules needed{.required = true, .value_name = "DIR"};
  // Each subcommand has options of its own, which live as long as its command.
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
      {.value_name = "N", .range = {{1, kMaxPeers}}});
  AddTerms(issue, *o);

  o = std::make_shared<Options>();
  Command& request =
      Add(certs, "request", "Make a key here, and ask for its certificate", o,
          Request, kRequestExamples);
  AddWhom(request, *o);
  request.AddOption("--run", &o->run, "the configuration's name",
                    {.required = true});
  request.AddOption("--out", &o->out, "folder to make", needed);
  request.AddOption("--same-key", &o->same_key,
                    "ask again with the key that is in --out");

  o = std::make_shared<Options>();
  Command& sign =
      Add(certs, "sign", "Answer a request", o, Sign, kRequestExamples);
  sign.AddOption("--ca", &o->ca, "folder of the authority", needed);
  sign.AddOption("--request", &o->request, "what certs request has written",
                 {.required = true, .value_name = "FILE"});
  sign.AddOption("--out", &o->out,
                 "folder for the answer, or the request's own", needed);
  AddWhom(sign, *o);
  AddTerms(sign, *o);

  o = std::make_shared<Options>();
  Command& revoke = Add(certs, "revoke", "Take certificates back", o, Revoke);
  revoke.AddOption("--ca", &o->ca, "folder of the authority", needed);
  AddWhom(revoke, *o);
  revoke.AddOption("--serial", &o->serial, "one certificate, as show says it");
  revoke.AddOption("--unknown", &o->unknown,
                   "also a --serial that the folder does not know");
  revoke.AddOption("--publish", &o->publish,
                   "folders of certificates on this machine that learn of it",
                   {.value_name = "DIRS", .delimiter = ','});

  o = std::make_shared<Options>();
  Command& show =
      Add(certs, "show", "List certificates, and when they end", o, Show);
  show.AddOption("--ca", &o->ca, "folder of the authority: all of its",
                 {.value_name = "DIR"});
  show.AddOption("--certs", &o->certs, "folder of one program",
                 {.value_name = "DIR"});
  show.AddOption("--json", &o->json, "answer as JSON");
}

}  // namespace gossamer
