#include "topology/fleet/view_message.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "topology/fleet/protocol.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr char kSameEveryRound[] = "fixed";  // a message's schedule
// The rule of Metropolis and Hastings, and its name on regular graphs.
constexpr char kWeights[] = "metropolis";
constexpr char kUniform[] = "uniform";

absl::Status Refused(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("a view ", why));
}

}  // namespace

// Peers check the service's signature over these bytes
// (tests/golden/wire/view).
wire::ViewMessage ToMessage(const View& view) {
  wire::ViewMessage m;
  m.set_run_id(view.run_id);
  m.set_generation(view.generation);
  m.set_epoch(view.epoch);
  m.set_from_round(view.from_round);
  for (const Member& member : view.members) {
    m.add_member_id(member.id.value);
    m.add_member_address(member.address);
  }
  // A view of a fleet in host memory keeps the bytes that it always had.
  if (std::ranges::any_of(view.members, [](const Member& member) {
        return !member.device.empty();
      })) {
    for (const Member& member : view.members) {
      m.add_member_device(member.device);
    }
  }
  for (const Departure& d : view.departures) {
    m.add_departing_id(d.id.value);
    m.add_departing_round(d.round);
    m.add_departing_address(d.address);
  }
  // The message has a name for a static graph and one for a time-varying one,
  // and the weights' rule, of which there is one.
  const bool changes = IsTimeVarying(view.schedule.graph);
  m.set_graph(changes ? ScheduleSpec{}.graph : view.schedule.graph);
  m.set_schedule(changes ? view.schedule.graph : kSameEveryRound);
  m.set_weights(kWeights);
  m.set_degree(static_cast<uint32_t>(view.schedule.degree));
  m.set_edge_probability(view.schedule.edge_probability);
  m.set_edges(view.schedule.edges);
  // Without sites the budget has no meaning: neither is sent, and the reader
  // keeps its default.
  if (!view.schedule.sites.empty()) {
    m.set_sites(view.schedule.sites);
    m.set_variance_budget(view.schedule.variance_budget);
  }
  m.set_seed(view.seed);
  m.set_gamma(view.gamma);
  m.set_overlap_steps(static_cast<uint32_t>(view.overlap_steps));
  m.set_configuration_hash(view.configuration_hash);
  m.set_resume_round(view.resume_round);
  return m;
}

absl::StatusOr<View> FromMessage(const wire::ViewMessage& m) {
  // Lists first: the loops below index ids, addresses and rounds side by side.
  if (m.member_id_size() < 1 || m.member_id_size() > kMaxPeers ||
      m.member_id_size() != m.member_address_size()) {
    return Refused(absl::StrCat("with ", m.member_id_size(), " ids and ",
                                m.member_address_size(), " addresses"));
  }
  const bool devices = m.member_device_size() != 0;
  if (devices && m.member_device_size() != m.member_id_size()) {
    return Refused(absl::StrCat("with ", m.member_id_size(), " ids and ",
                                m.member_device_size(), " devices"));
  }
  // A departure is not a member, so it has an address of its own: neighbours
  // complete their exchanges with it.
  if (m.departing_id_size() > kMaxPeers ||
      m.departing_id_size() != m.departing_round_size() ||
      m.departing_id_size() != m.departing_address_size()) {
    return Refused(absl::StrCat("with ", m.departing_id_size(),
                                " departing peers, ", m.departing_round_size(),
                                " rounds and ", m.departing_address_size(),
                                " addresses"));
  }
  if (m.epoch() == 0 || m.from_round() > kMaxRound ||
      m.resume_round() > kMaxRound || !std::isfinite(m.gamma()) ||
      m.gamma() < 0 || m.gamma() > 1 || m.overlap_steps() > kMaxOverlap ||
      m.degree() > kMaxPeers || !std::isfinite(m.variance_budget())) {
    return Refused("with a number out of range");
  }
  // Both ends of an edge must mix by one matrix: a rule or a combination that
  // this release does not know is refused, not taken for another.
  const bool same = m.schedule() == kSameEveryRound;
  // Older services call the graph of one-peer-exponential fixed, too.
  const bool known =
      same ? !IsTimeVarying(m.graph()) || m.graph() == "one-peer-exponential"
           : IsTimeVarying(m.schedule());
  if (!known || (m.weights() != kWeights && m.weights() != kUniform)) {
    return Refused("whose mixing matrix this release does not know");
  }
  View view;
  for (int i = 0; i < m.member_id_size(); ++i) {
    // Ascending ids make a rank the same at every peer, and rule out a peer
    // that is in the view twice.
    if (m.member_id(i) == 0 ||
        (i > 0 && m.member_id(i) <= m.member_id(i - 1))) {
      return Refused("whose ids do not ascend");
    }
    if (m.member_address(i).empty() ||
        m.member_address(i).size() > kMaxAddressBytes) {
      return Refused("with a member that has no proper address");
    }
    if (devices && m.member_device(i).size() > kMaxDeviceBytes) {
      return Refused("with a member that has no proper device");
    }
    view.members.push_back(
        {.id = {m.member_id(i)},
         .address = m.member_address(i),
         .device = devices ? m.member_device(i) : std::string()});
  }
  for (int i = 0; i < m.departing_id_size(); ++i) {
    if (m.departing_id(i) == 0 || m.departing_address(i).empty() ||
        m.departing_address(i).size() > kMaxAddressBytes) {
      return Refused("with a departing peer that has no proper address");
    }
    if (m.departing_round(i) > kMaxRound) {
      return Refused("with a departure at a round out of range");
    }
    view.departures.push_back({.id = {m.departing_id(i)},
                               .round = m.departing_round(i),
                               .address = m.departing_address(i)});
  }
  view.run_id = m.run_id();
  view.generation = m.generation();
  view.epoch = m.epoch();
  view.from_round = m.from_round();
  view.schedule = {
      .graph = m.schedule() == kSameEveryRound ? m.graph() : m.schedule(),
      .degree = static_cast<int>(m.degree()),
      .edge_probability = m.edge_probability(),
      .edges = m.edges(),
      .sites = m.sites()};
  if (!m.sites().empty()) {
    view.schedule.variance_budget = m.variance_budget();
  }
  view.seed = m.seed();
  view.gamma = m.gamma();
  view.overlap_steps = static_cast<int>(m.overlap_steps());
  view.configuration_hash = m.configuration_hash();
  view.resume_round = m.resume_round();
  return view;
}

// The fields are in the order of their numbers and there are no maps, so the
// bytes are deterministic.  Fields that a newer service has added are kept and
// signed too.
std::string SignedPart(wire::ViewMessage view) {
  // These two fields are the signature's own.
  view.clear_signature();
  view.clear_certificate();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::CodedOutputStream coded(&out);
    coded.SetSerializationDeterministic(true);
    (void)view.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace gossamer
