#!/usr/bin/env python3
"""What the others notice when a peer dies, freezes or joins.

Prints, for five peers with deadline "auto" on this machine: the longest stall
of a survivor after kill -9 of a peer, after a freeze until it is back in the
view, and while a sixth one joins, beside the median round before and the
deadlines missed meanwhile; how long the service took to remove the dead one.

usage: membership_stall.py FOLDER_OF_THE_PROGRAMS
"""

import datetime
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "integration"))
import processes_test as processes  # noqa: E402

MIXING = 'deadline: "auto"'


def rounds(fleet, k):
    """Of a peer: (when each round ended, deadlines missed by then)."""
    path = os.path.join(fleet.run_dir, f"peer-{k - 1}", "metrics.jsonl")
    with open(path) as f:
        lines = [json.loads(line) for line in f.read().splitlines()[:-1]]
    return [(datetime.datetime.fromisoformat(
        line["finished"].replace("Z", "+00:00")).timestamp(), line["late"])
            for line in lines]


def longest_gap(times, begin, end):
    times = [t for t in times if begin - 1 <= t <= end]
    return max((b - a for a, b in zip(times, times[1:])), default=0.0)


def standing(fleet, k):
    done = processes.run(processes.program("gossamer"), "status", "--topology",
                         f"127.0.0.1:{fleet.port}", "--json")
    peers = json.loads(done.stdout)["peers"] if done.returncode == 0 else []
    return {p["peer"]: p["standing"] for p in peers}.get(k)


def report(name, fleet, others, begin):
    end = time.time()
    gaps, medians, late = [], [], 0
    for k in others:
        lines = rounds(fleet, k)
        times = [t for t, _ in lines]
        late += lines[-1][1] - max(n for t, n in lines if t < begin)
        before = [t for t in times if t < begin]
        medians.append(statistics.median(
            b - a for a, b in zip(before, before[1:])))
        gaps.append(longest_gap(times, begin, end))
    print(f"{name}: longest stall {1e3 * max(gaps):.0f} ms, median round "
          f"{1e3 * statistics.median(medians):.1f} ms, {late} deadlines missed",
          flush=True)


def main():
    processes.BIN = sys.argv[1]
    folder = tempfile.mkdtemp(prefix="gossamer_stall_")
    fleet = processes.Fleet(folder, peers=5, rounds=10_000_000, mixing=MIXING,
                            dimension=20000)
    try:
        fleet.start()
        processes.wait_for(lambda: fleet.round_of(5) > 200)
        begin = time.time()
        fleet.start_peer(6)
        processes.wait_for(lambda: fleet.round_of(6) > 50)
        report("a sixth joins", fleet, range(1, 6), begin)
        begin = time.time()
        fleet.processes[6].kill()
        processes.wait_for(lambda: standing(fleet, 6) == "removed")
        print(f"out of the view after {time.time() - begin:.1f} s")
        time.sleep(2)
        report("kill -9", fleet, range(1, 6), begin)
        begin = time.time()
        fleet.processes[3].send_signal(signal.SIGSTOP)
        processes.wait_for(lambda: standing(fleet, 3) == "removed")
        fleet.processes[3].send_signal(signal.SIGCONT)
        processes.wait_for(lambda: standing(fleet, 3) == "member")
        time.sleep(2)
        report("freeze and return", fleet, (1, 2, 4, 5), begin)
    finally:
        fleet.kill()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
