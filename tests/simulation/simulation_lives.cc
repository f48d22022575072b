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

void Simulation::StartLife(Seat& seat) {
  seat.down = seat.ended = false;
  const bool resume = seat.machine.lives > 0;
  const Swarm& f = scenario_.swarm;
  outcome_.faults["wrong_clocks"] += f.clock_jump > 0 || f.clock_drift > 0;
  outcome_.faults["moves"] += resume && f.moves;
  seat.life = std::make_unique<SimLife>(world_, seat.machine, resume);
  seat.seen = 0;
}

// Ends the process; the machine stays.
void Simulation::EndLife(Seat& seat) {
  seat.life.reset();
  seat.ended = true;
}

void Simulation::Kill(PeerId id, const Death& death) {
  Seat& seat = seats_[id.value - 1];
  if (!seat.life || seat.life->crash().dead()) return;
  seat.death = death;
  seat.life->crash().Arm(death.effects);
}

void Simulation::Bury(Seat& seat) {
  const Death& death = seat.death;
  SimMachine& machine = seat.machine;
  const uint64_t life = seat.life->number();
  world_.tell(machine.id,
              absl::StrCat("dies in round ", seat.life->round(),
                           death.power_loss ? " of a power cut" : "",
                           death.new_disk ? " and loses its disk" : ""));
  ledger_.Crash(machine.id, life);
  seat.life.reset();
  if (death.power_loss) {
    machine.disk.CutPower(key_.Fold("cut").Fold(machine.id.value).Fold(life));
  }
  if (death.new_disk) {
    machine.disk.Wipe();
    machine.saved_round = 0;
  }
  const RngKey rot = key_.Fold("rot").Fold(machine.id.value).Fold(life);
  if (disk_errors_.write > 0 && rot.Uniform(0) < kRot &&
      machine.disk.Damage(SimLife::kCheckpoints, rot.Fold("where"))) {
    ++outcome_.faults["damaged_files"];
    machine.saved_round = 0;
  }
  seat.down = true;
  control_.RunAt(control_.Now() + death.downtime, [this, &seat] {
    if (seat.down) StartLife(seat);
  });
}

// A peer that has left registers again some time later.
void Simulation::ComeBack(Seat& seat) {
  seat.life.reset();
  seat.down = true;
  control_.RunAt(control_.Now() + 20 * scenario_.interval(), [this, &seat] {
    if (seat.down) StartLife(seat);
  });
}

void Simulation::AfterEvent() {
  ++outcome_.events;
  for (Seat& seat : seats_) {
    if (!seat.life) continue;
    const uint64_t runs = seat.life->loop().runs();
    if (runs != seat.seen) {
      seat.seen = runs;
      Note(static_cast<uint64_t>(absl::ToUnixNanos(loop_.Now())) ^
           seat.machine.id.value);
      seat.life->Check();
    }
    if (seat.life->crash().dead()) {
      ++outcome_.faults[seat.death.power_loss ? "power_cuts" : "crashes"];
      outcome_.faults["lost_disks"] += seat.death.new_disk;
      Bury(seat);
    } else if (seat.life->ended()) {
      const absl::Status status = seat.life->status();
      world_.tell(seat.machine.id, absl::StrCat("ends: ", status.ToString()));
      if (status.ok() && seat.life->left()) {
        ComeBack(seat);
      } else if (status.ok()) {
        EndLife(seat);
      } else if (disk_errors_.Explain(status) || seat.life->may_fail()) {
        // Its disk failed as it resumed, for example; the process is started
        // again.
        seat.death = {.effects = 0, .downtime = 20 * scenario_.interval()};
        Bury(seat);
      } else {
        Violation(absl::StrCat("peer ", seat.machine.id.value,
                               " ends with: ", status.ToString()));
      }
    }
  }
}

// Resumes a fleet that was stopped on the way.  A peer that has not stopped in
// time is killed first, as an operator would do.
void Simulation::RestartStopped() {
  if (loop_.Now() - stopping_ > kStragglers) {
    for (Seat& seat : seats_) {
      if (!seat.life) continue;
      ledger_.Crash(seat.machine.id, seat.life->number());
      EndLife(seat);
    }
  }
  const bool over = std::ranges::all_of(
      seats_, [](const Seat& s) { return s.ended || s.down; });
  if (!over) return;
  stopping_ = absl::InfiniteFuture();
  ++outcome_.faults["fleet_stops"];
  Tell("fleet", "goes on");
  for (Seat& seat : seats_) StartLife(seat);
}

}  // namespace gossamer::simulation
