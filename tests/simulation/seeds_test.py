#!/usr/bin/env python3
"""Seeds of `fleet_swarm` without a violation, that do what they are said
to: neither more nor much less work than usual (counted, since time is not the
same twice), every kind of fault, and fleets that come to one mind.

usage: seeds_test.py FLEET_SWARM FROM SEEDS [--nccl]

With --nccl all fleets are on GPUs, and what they do is NCCL's, too.
"""

import json
import subprocess
import sys

LONGEST = 3500  # seconds, less than the test may take

# Measure -> least, most: half of the mean of 1,729 seeds, and half more where
# more would be slow (means 1,340, 27.0, 21.8 and 2,741; 0.067 core-seconds a
# seed).
WORK = {
    "peer-rounds a seed": (670, 2010),
    "events a peer-round": (13, 40),
    "lives a seed": (10, None),
    "corrections a seed": (1370, None),
}
# The same where all use NCCL: polls of what is under way are events, too (mean
# 43), and 245 operations a seed.
WORK_OF_NCCL = {
    **WORK,
    "events a peer-round": (20, 65),
    "operations of NCCL a seed": (200, None),
}
# Kind of fleet -> most of the median and of the ninth decile of the share of
# the consensus distance that the calm leaves, None where it says nothing.  The
# bounds are twice what one in a thousand draws of 500 from those seeds exceeds.
# Fleets that do not mix have 1 left.
LEFT = {
    "waits": (1e-4, 0.25),
    "deadlines": (1e-4, 0.13),
    "clipped": (4e-4, 0.8),
    "coarse": (1, None),
    "small_steps": (0.9, None),
}
# Each fault happens at least once in so many seeds; the rarest came once in 8.
SEEDS_A_FAULT = 50
FAULTS = """breaks crashes damaged_files disk_errors flaps fleet_stops freezes
joins leaves lost_calls lost_disks lost_frames moves old_service_disks
one_way_partitions outages partitions power_cuts read_errors removals
reordered_frames repeated_frames resumed_without_service returns
service_cuts service_deaths service_disk_errors spoils stalls storms twins wrong_clocks""".split()
# A communicator that fails is not used again within its view, so that these are
# rare where few fleets use NCCL.
FAULTS_OF_NCCL = "nccl_errors nccl_hangs nccl_partial nccl_slow nccl_torn".split()


def work_problems(told, seeds, nccl):
    measured = {
        "peer-rounds a seed": told["peer_rounds"] / seeds,
        "events a peer-round": told["events"] / told["peer_rounds"],
        "lives a seed": told["lives"] / seeds,
        "corrections a seed": told["corrections"] / seeds,
    }
    if nccl:
        measured["operations of NCCL a seed"] = told["nccl_operations"] / seeds
    for what, value in measured.items():
        print(f"{value:.1f} {what}")
        least, most = (WORK_OF_NCCL if nccl else WORK)[what]
        if value < least:
            yield f"{what}: {value:.1f}, at least {least}"
        if most and value > most:
            yield f"{what}: {value:.1f}, at most {most}"


def distance_problems(told):
    for mixing, (median, p90) in LEFT.items():
        left = told["distance_left"].get(mixing)
        if left is None:
            yield f"no fleet is seen of the kind {mixing}"
            continue
        for which, most in (("median", median), ("p90", p90)):
            if most is not None and not left[which] <= most:
                yield (f"{mixing}: {which} of what is left of the distance: "
                       f"{left[which]:.3g}, at most {most}")


def fault_problems(told, seeds, nccl):
    for fault in FAULTS + FAULTS_OF_NCCL * nccl:
        times = told["faults"].get(fault, 0)
        if times * SEEDS_A_FAULT < seeds:
            yield f"{fault}: {times} in {seeds} seeds"
    for fault in sorted(set(told["faults"]) - set(FAULTS) -
                        set(FAULTS_OF_NCCL)):
        yield f"{fault}: is not in the list of faults"


def main():
    program, first, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    nccl = "--nccl" in sys.argv[4:]
    with subprocess.Popen([program, "--from", first, "--seeds",
                           str(seeds), "--jobs", "1", "--json",
                           *["--nccl"] * nccl],
                          stdout=subprocess.PIPE, text=True) as run:
        try:
            out, _ = run.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            run.terminate()  # it says which seed it is at
            out, _ = run.communicate()
    print(out)
    if run.returncode != 0:
        return 1
    told = json.loads(out)
    problems = [*work_problems(told, seeds, nccl), *distance_problems(told),
                *fault_problems(told, seeds, nccl)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
