// A scenario as one line for people.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/scenario.h"
#include "topology/view.h"

namespace gossamer::simulation {
namespace {

std::string GraphOf(const ScheduleSpec& spec) {
  if (spec.graph == "edge-list") return absl::StrCat("edges ", spec.edges);
  std::string name = spec.graph;
  if (name == "erdos-renyi") absl::StrAppend(&name, " ", spec.edge_probability);
  return name;
}

}  // namespace

std::string Describe(const Scenario& s) {
  using Kind = DeadlinePolicy::Kind;
  const Swarm& f = s.swarm;
  std::string text = absl::StrFormat(
      "seed %d: %d peers, %s, %s, h %s, t %d%s%s, deadline %s, %s of 2x%d with "
      "%s, %d steps a round of %s x%g, latency %s, rounds %d + %d, checkpoint "
      "every %d;",
      s.seed, s.peers, GraphOf(s.schedule),
      s.centralized() ? absl::StrCat(s.gradient_codec, " by ", s.all_reduce)
                      : s.codec,
      s.overlap == kAutoOverlap ? "auto" : absl::StrCat(s.overlap),
      s.mixing_rounds, s.chebyshev ? " chebyshev" : "",
      s.step_then_mix ? " after steps" : "",
      s.deadline.kind == Kind::kNone ? "none"
      : s.deadline.kind == Kind::kAdaptive
          ? "auto"
          : absl::FormatDuration(s.deadline.fixed),
      s.game, s.dimension,
      absl::StrCat(s.optimizer.name, s.tracked ? " tracked" : ""),
      s.steps_per_round, absl::FormatDuration(s.step_time), s.slowness,
      absl::FormatDuration(s.link.latency), s.fault_rounds, s.calm_rounds,
      s.checkpoint_every);
  const auto add = [&text](const char* name, double value) {
    if (value > 0) absl::StrAppendFormat(&text, " %s %.3g", name, value);
  };
  add("clip", s.clip_radius);
  add("replicas", s.replica_edges);
  if (s.max_neighbors != kMaxNeighbors) {
    absl::StrAppendFormat(&text, " partners %d", s.max_neighbors);
  }
  add("break", f.links.break_rate);
  add("stall", f.links.stall_rate);
  add("freeze", f.links.freeze_rate);
  add("flap", f.flapping);
  add("partition", f.partition_rate);
  add("duplicate", f.chaos.duplicate);
  add("reorder", f.chaos.reorder);
  add("lose", f.chaos.lose);
  add("crash", f.crash_rate);
  if (f.crash_rate > 0 || f.outage_rate > 0) add("power", f.power_loss);
  if (f.crash_rate > 0) add("new-disk", f.new_disk);
  add("outage", f.outage_rate);
  add("disk", f.disk_error);
  add("read", f.read_error);
  add("jump", f.clock_jump);
  add("drift", f.clock_drift);
  add("service", f.service_crash_rate);
  if (f.service_crash_rate > 0) {
    add("old-disk", f.service_old_disk);
    add("lost-disk", f.service_lost_disk);
  }
  add("service-disk", f.service_disk_error);
  add("control-loss", f.control_loss);
  add("service-cut", f.service_cut_rate);
  add("storm", f.storm_rate);
  if (s.nccl.used) {
    absl::StrAppendFormat(&text, " nccl on %d hosts", s.nccl.hosts);
    if (s.nccl.shared_gpu) text += " shared-gpu";
    if (s.nccl.other_version) text += " other-version";
    add("nccl-hang", s.nccl.hang);
    add("nccl-error", s.nccl.error);
    add("nccl-slow", s.nccl.slow);
    add("nccl-partial", s.nccl.partial);
    add("nccl-making", s.nccl.making_fault);
  }
  if (s.clockwork) text += " clockwork";
  if (f.moves) text += " moves";
  add("late", s.late);
  add("leave", f.leave_rate);
  add("spoil", f.spoil_rate);
  add("twin", f.twin_rate);
  if (f.fleet_stop) text += " stop";
  return text;
}

}  // namespace gossamer::simulation
