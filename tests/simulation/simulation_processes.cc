// Starts and ends the processes of a simulation's peers.

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tests/simulation/simulation_run.h"

namespace gossamer::simulation {
namespace {

constexpr absl::Duration kStragglers = absl::Minutes(1);
// The share of deaths on a failing disk that damage a file.
constexpr double kRot = 0.2;

}  // namespace

void Simulation::StartProcess(SimHost& host) {
  host.down = host.ended = false;
  const bool resume = *host.machine->incarnations > 0;
  const Swarm& f = scenario_.swarm;
  outcome_.faults["wrong_clocks"] += f.clock_jump > 0 || f.clock_drift > 0;
  outcome_.faults["moves"] += resume && f.moves;
  host.process = std::make_unique<SimProcess>(world_, *host.machine, resume);
  host.process->SetContested(host.older.process != nullptr);
  host.seen = 0;
}

// A second process with the id of one that still runs, on a machine without
// its disk: its owner has replaced the first, and forgot to end it.
void Simulation::StartTwin(PeerId id) {
  SimHost& host = hosts_[id.value - 1];
  if (host.older.process || !host.process || host.process->crash().dead() ||
      !host.process->joined()) {
    return;
  }
  ++outcome_.faults["twins"];
  world_.tell(id, "is started once more, without its disk");
  // Its last corrections may reach a neighbour that has turned to the other.
  ledger_.Crash(id, host.process->number());
  host.process->SetContested(true);
  host.older.machine = std::move(host.machine);
  host.older.process = std::move(host.process);
  host.machine = std::make_unique<SimMachine>();
  host.machine->id = id;
  host.machine->incarnations = host.older.machine->incarnations;
  StartProcess(host);
}

void Simulation::EndOlder(SimHost& host) {
  ledger_.Crash(host.machine->id, host.older.process->number());
  host.older.process.reset();
}

// One of two processes with one id has ended: the other one has it alone.
void Simulation::LookAtOlder(SimHost& host) {
  if (!host.older.process) return;
  host.older.process->Check();
  if (host.older.process->crash().dead() || host.older.process->ended()) {
    world_.tell(host.machine->id, "the older process has ended");
    EndOlder(host);
    if (host.process) host.process->SetContested(false);
  } else if (host.process && host.process->refused_for_twin() &&
             (host.process->crash().dead() || host.process->ended())) {
    world_.tell(host.machine->id, "the newer process has ended");
    ledger_.Crash(host.machine->id, host.process->number());
    host.process = std::move(host.older.process);
    host.machine = std::move(host.older.machine);
    host.process->SetContested(false);
    host.seen = 0;
  }
}

// Ends the process; the machine stays.
void Simulation::EndProcess(SimHost& host) {
  host.process.reset();
  host.ended = true;
}

void Simulation::Kill(PeerId id, const Death& death) {
  SimHost& host = hosts_[id.value - 1];
  if (!host.process || host.process->crash().dead()) return;
  host.death = death;
  host.process->crash().Arm(death.effects);
}

void Simulation::Bury(SimHost& host) {
  const Death& death = host.death;
  SimMachine& machine = *host.machine;
  const uint64_t process = host.process->number();
  world_.tell(machine.id,
              absl::StrCat("dies in round ", host.process->round(),
                           death.power_loss ? " of a power cut" : "",
                           death.new_disk ? " and loses its disk" : ""));
  ledger_.Crash(machine.id, process);
  host.process.reset();
  if (death.power_loss) {
    machine.disk.CutPower(
        key_.Fold("cut").Fold(machine.id.value).Fold(process));
  }
  if (death.new_disk) {
    machine.disk.Wipe();
    machine.saved_round = 0;
  }
  const RngKey rot = key_.Fold("rot").Fold(machine.id.value).Fold(process);
  if (disk_errors_.write > 0 && rot.Uniform(0) < kRot &&
      machine.disk.Damage(SimMachine::kCheckpoints, rot.Fold("where"))) {
    ++outcome_.faults["damaged_files"];
    machine.saved_round = 0;
  }
  host.down = true;
  control_.RunAt(control_.Now() + death.downtime, [this, &host] {
    if (host.down) StartProcess(host);
  });
}

// A peer that has left registers again some time later.
void Simulation::ComeBack(SimHost& host) {
  host.process.reset();
  host.down = true;
  control_.RunAt(control_.Now() + 20 * scenario_.interval(), [this, &host] {
    if (host.down) StartProcess(host);
  });
}

void Simulation::AfterEvent() {
  ++outcome_.events;
  for (SimHost& host : hosts_) {
    LookAtOlder(host);
    if (!host.process) continue;
    const uint64_t runs = host.process->loop().runs();
    if (runs != host.seen) {
      host.seen = runs;
      Note(static_cast<uint64_t>(absl::ToUnixNanos(loop_.Now())) ^
           host.machine->id.value);
      host.process->Check();
    }
    if (host.process->crash().dead()) {
      ++outcome_.faults[host.death.power_loss ? "power_cuts" : "crashes"];
      outcome_.faults["lost_disks"] += host.death.new_disk;
      Bury(host);
    } else if (host.process->ended()) {
      const absl::Status status = host.process->status();
      world_.tell(host.machine->id, absl::StrCat("ends: ", status.ToString()));
      if (status.ok() && host.process->left()) {
        ComeBack(host);
      } else if (status.ok()) {
        EndProcess(host);
      } else if (disk_errors_.Explain(status) || host.process->may_fail()) {
        // Its disk failed as it resumed, for example; the process is started
        // again.
        host.death = {.effects = 0, .downtime = 20 * scenario_.interval()};
        Bury(host);
      } else {
        Violation(absl::StrCat("peer ", host.machine->id.value,
                               " ends with: ", status.ToString()));
      }
    }
  }
}

// Resumes a fleet that was stopped on the way.  A peer that has not stopped in
// time is killed first, as an operator would do.
void Simulation::RestartStopped() {
  if (loop_.Now() - stopping_ > kStragglers) {
    for (SimHost& host : hosts_) {
      if (!host.process) continue;
      if (host.older.process) EndOlder(host);
      ledger_.Crash(host.machine->id, host.process->number());
      EndProcess(host);
    }
  }
  const bool over = std::ranges::all_of(
      hosts_, [](const SimHost& s) { return s.ended || s.down; });
  if (!over) return;
  stopping_ = absl::InfiniteFuture();
  ++outcome_.faults["fleet_stops"];
  Tell("fleet", "goes on");
  for (SimHost& host : hosts_) StartProcess(host);
}

}  // namespace gossamer::simulation
