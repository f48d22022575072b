#include "topology/fleet/registrar.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "algorithms/base/parameter_layout.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// "key: value" of a configuration by the key.  A key that has several values
// has them in their order; one that is missing is an empty text.
std::map<absl::string_view, std::string> ByKey(
    absl::string_view configuration) {
  std::map<absl::string_view, std::string> lines;
  for (const absl::string_view line :
       absl::StrSplit(configuration, '\n', absl::SkipEmpty())) {
    std::string& values = lines[line.substr(0, line.find(':'))];
    absl::StrAppend(&values, values.empty() ? "" : ", ", line);
  }
  return lines;
}

// The lines of two configurations for the first key in which they differ, of
// `keys` if there are any.
struct Difference {
  std::string own, others;
};
std::optional<Difference> DifferingLines(
    absl::string_view own, absl::string_view others,
    const std::vector<std::string>& keys = {}) {
  const auto a = ByKey(own), b = ByKey(others);
  const auto text = [](const auto& lines, absl::string_view key) {
    const auto it = lines.find(key);
    return it == lines.end() ? absl::StrCat(key, ": \"\"") : it->second;
  };
  std::set<absl::string_view> all(keys.begin(), keys.end());
  if (keys.empty()) {
    for (const auto* lines : {&a, &b}) {
      for (const auto& [key, values] : *lines) all.insert(key);
    }
  }
  for (const absl::string_view key : all) {
    const std::string ours = text(a, key), theirs = text(b, key);
    if (ours != theirs) return Difference{ours, theirs};
  }
  return std::nullopt;
}

// A value for a message: what peers send is cut, as an answer has little room.
std::string Short(const std::string& line) {
  constexpr size_t kMax = 200;
  return line.size() <= kMax ? line : line.substr(0, kMax) + "...";
}

// The refusal of a peer whose configuration does not fit.  A peer that trains
// goes on without this service, which may be the one that is wrong.
absl::Status Mismatch(const Registration& r, const std::string& why) {
  return r.trains ? absl::UnavailableError(why)
                  : absl::FailedPreconditionError(why);
}

}  // namespace

absl::Status Registrar::Check(const Registration& r, bool first) const {
  // The version first: the other fields of another release may mean something
  // else.
  if (!kControlVersions.Agree(r.versions)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer speaks control protocol %s, the service %s; install releases "
        "that have one in common",
        r.versions.Text(), kControlVersions.Text()));
  }
  if (r.run_id != options_.run_id) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "this service runs \"%s\", not \"%s\"; start the service with the "
        "run's --config, or check its address",
        options_.run_id, r.run_id));
  }
  if (r.incarnation_id == 0 || r.address.empty() ||
      r.address.size() > kMaxAddressBytes ||
      r.device.size() > kMaxDeviceBytes ||
      r.configuration.size() > kMaxConfigurationBytes ||
      r.layout.size() > kMaxLayoutBytes ||
      r.checkpoint_rounds.size() > kMaxCheckpointRounds) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "register: needs an incarnation id, an address of 1 to %d characters, "
        "a device of at most %d, a configuration of %d, a layout of %d, and at "
        "most %d checkpoint rounds",
        kMaxAddressBytes, kMaxDeviceBytes, kMaxConfigurationBytes,
        kMaxLayoutBytes, kMaxCheckpointRounds));
  }
  for (uint64_t round : r.checkpoint_rounds) {
    if (round > kMaxRound) {
      return absl::InvalidArgumentError(absl::StrCat(
          "register: checkpoint round ", round, " is out of range"));
    }
  }
  // Peers with another configuration would train another model or mix by other
  // rules, so none but the first may bring its own.  A hash of 0 in the options
  // leaves the choice to that first peer.
  const uint64_t configuration =
      first ? options_.configuration_hash : roster_.configuration_hash();
  if (configuration != 0 && r.configuration_hash != configuration) {
    std::string difference;
    const std::string& run =
        first ? options_.configuration : roster_.configuration();
    if (!r.configuration.empty() && !run.empty()) {
      if (const auto d = DifferingLines(r.configuration, run)) {
        difference = absl::StrCat(": the peer has ", Short(d->own),
                                  ", the run ", Short(d->others));
      }
    }
    return Mismatch(
        r, absl::StrFormat(
               "the peer's configuration %016x is not the run's %016x%s; start "
               "all peers from the same configuration file",
               r.configuration_hash, configuration, difference));
  }
  // Without the run's file a service would decide by values that no peer has
  // asked for.
  if (!options_.decides.empty()) {
    constexpr absl::string_view kStart =
        "start the service with the run's --config";
    if (r.configuration.empty() && !r.trains) {
      return Mismatch(r,
                      absl::StrCat("the peer's configuration is too long to be "
                                   "sent, or of an older release, and this "
                                   "service decides by its own: ",
                                   kStart));
    }
    const auto d = DifferingLines(r.configuration, options_.configuration,
                                  options_.decides);
    if (!r.configuration.empty() && d) {
      return Mismatch(
          r, absl::StrCat(
                 "the peer has ", Short(d->own),
                 ", and this service, which decides it, ", Short(d->others),
                 ": ", kStart, ", or with --set '",
                 Short(absl::StrReplaceAll(d->own, {{": ", "="}, {"\"", ""}})),
                 "'"));
    }
  }
  if (!first && r.layout_fingerprint != roster_.layout_fingerprint()) {
    std::string difference;
    if (!r.layout.empty() && !roster_.layout().empty()) {
      difference = ": " + FirstDifference(r.layout, roster_.layout(),
                                          "the run's first peer");
    }
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer's parameter layout %016x is not the run's %016x; it has "
        "another model, width or version%s",
        r.layout_fingerprint, roster_.layout_fingerprint(), difference));
  }
  // Networks that begin apart have a mean that is no network.
  if (!first && !views_.assembled() && r.checkpoint_rounds.empty() &&
      r.initial_parameters_hash != 0 &&
      roster_.initial_parameters_hash() != 0 &&
      r.initial_parameters_hash != roster_.initial_parameters_hash()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer begins with other parameters (%016x) than the run's first "
        "peer (%016x), and all must begin with the same: seed the generator of "
        "random numbers, the same at all peers, before the networks are made",
        r.initial_parameters_hash, roster_.initial_parameters_hash()));
  }
  return absl::OkStatus();
}

absl::Status Registrar::CheckGathering(const Registration& r,
                                       bool known) const {
  if (!known && views_.Finished() && r.has_parameters) {
    return absl::FailedPreconditionError(
        "the run has ended without this peer; start it anew for another");
  }
  // A peer that is known takes its own place again, also while the others
  // gather.
  if (known || roster_.registered() < options_.expected) {
    return absl::OkStatus();
  }
  // In a fleet whose members may come and go the peer only has to ask again
  // later; elsewhere there is no place for it.
  if (options_.elastic) {
    return absl::UnavailableError(absl::StrFormat(
        "the run waits to begin with its %d peers, which have registered; "
        "another peer joins once it is under way",
        options_.expected));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the run already has its %d peers; a returning peer must give its "
      "--id, and a larger fleet has more peers in everybody's configuration",
      options_.expected));
}

absl::Status Registrar::Classify(const Registration& r, MemberRecord& member,
                                 absl::Time now) const {
  const bool known = roster_.Find(member.id) != nullptr;
  if (!views_.assembled() || views_.Finished()) return CheckGathering(r, known);
  // The checkpoint of a peer that is no member may be of another fleet, or of
  // an incarnation that never trained.
  const bool goes_on = known && member.standing == Standing::kMember &&
                       !r.checkpoint_rounds.empty();
  member.needs_parameters = !r.has_parameters && !goes_on;
  // The view that the peer trains by was not recovered: it is not newer than
  // the present one, which is without the peer, or of another store.  The
  // peer hears that it is outside, and comes as another incarnation.
  if (!known && r.trains && r.view) {
    member.standing = Standing::kEvicted;
    return absl::OkStatus();
  }
  if (known && member.standing == Standing::kMember) return absl::OkStatus();
  // The incarnation that was leaving has ended, and this one joins as an
  // evicted peer does.
  if (member.standing == Standing::kLeaving) {
    member.standing = Standing::kEvicted;
  }
  if (known && now < roster_.live(member.id).may_return) {
    return absl::UnavailableError(absl::StrFormat(
        "peer %d was removed %d times; it may return in %s", member.id.value,
        member.removals,
        absl::FormatDuration(roster_.live(member.id).may_return - now)));
  }
  const int members = roster_.registered();
  // An edge list names its peers, so only those may come back.
  const bool named = options_.schedule.graph == "edge-list";
  if (!options_.elastic || members >= sizes_.Most() || (named && !known)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the run already has its %d peers; a returning peer must give its "
        "--id, a larger fleet needs a service with another graph, --max-peers "
        "or --set peers=",
        members));
  }
  // The peer waits until the fleet can have it, perhaps together with others.
  member.standing = Standing::kJoining;
  return absl::OkStatus();
}

}  // namespace gossamer
