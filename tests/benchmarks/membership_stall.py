#!/usr/bin/env python3
"""Measures how much the others notice when a peer dies, freezes, joins or leaves,
and how long leaving takes.

Eight peers with deadline "auto" train on this machine, once with steps that fill
its cores and once with steps that sleep for 40 ms.  The program prints the longest
stall of a survivor in some seconds in which nothing happens, when a ninth peer
joins, three times with leaves between, after kill -9 of a peer, and after a freeze
until it is back in the view; beside each, the median round before it, the deadlines
missed and the rounds that a peer jumped over.  It also prints how long the service
took to evict the dead peer and, for two lengths of a round, the time from SIGTERM
until the process has ended in good order.

Exit code 1 if a figure is not what the fleet promises: a stall above two median
rounds and above a second, a dead peer in the view for more than 5 s, a leave of
more than 10 s, or a round that a join has cost a peer.
"""

import argparse
import datetime
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "integration"))
import processes_test as processes  # noqa: E402

MIXING = 'deadline: "auto"'
PEERS = 8
CALM = 8  # seconds
JOINS = 3
AFTER = 5  # seconds in which a join or a leave may still show
PERIOD = 0.005  # seconds
LEAVES = 3  # of each length of a round
broken = []  # promises
watch = None


class Watch(threading.Thread):
    """Measures how long this idle process was kept from running: the machine's
    own share of a stall."""

    def __init__(self):
        super().__init__(daemon=True)
        self.pauses = []
        self.start()

    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(PERIOD)
            now = time.monotonic()
            if now - last > 10 * PERIOD:
                self.pauses.append((time.time(), now - last))
            last = now

    def longest(self, begin, end):
        return max((p for t, p in self.pauses if begin <= t <= end + p),
                   default=0.0)


def promise(holds, what):
    if not holds:
        broken.append(what)


def rounds(fleet, k):
    """Returns (time of its end, deadlines missed by then, round) for each round
    of a peer."""
    path = os.path.join(fleet.run_dir, f"peer-{k}", "metrics.jsonl")
    with open(path) as f:
        lines = [json.loads(line) for line in f.read().splitlines()[:-1]]
    return [(datetime.datetime.fromisoformat(
        line["finished"].replace("Z", "+00:00")).timestamp(), line["late"],
             line["round"]) for line in lines]


def longest_gap(times, begin, end):
    """Returns the longest gap between two rounds that overlaps the given time;
    if no round has ended since, the gap lasts until now."""
    before = max((t for t in times if t < begin), default=begin)
    after = min((t for t in times if t > end), default=time.time())
    times = [before, *(t for t in times if begin <= t <= end), after]
    return max(b - a for a, b in zip(times, times[1:]))


def standing(fleet, k):
    done = processes.run(processes.program("gossamer"), "status", "--topology",
                         f"127.0.0.1:{fleet.port}", "--json")
    peers = json.loads(done.stdout)["peers"] if done.returncode == 0 else []
    return {p["peer"]: p["standing"] for p in peers}.get(k)


def report(name, fleet, others, begin):
    """Prints a row, and returns how many rounds were jumped over."""
    end = time.time()
    # Lines come once a second, and after the round that is under way.
    time.sleep(2.5)
    gaps, medians, late, passed = [], [], 0, 0
    for k in others:
        lines = rounds(fleet, k)
        times = [t for t, _, _ in lines]
        late += lines[-1][1] - max(n for t, n, _ in lines if t < begin)
        since = [r for t, _, r in lines if t >= begin]
        passed += since[-1] - since[0] + 1 - len(since)
        before = [t for t in times if t < begin]
        medians.append(statistics.median(
            b - a for a, b in zip(before, before[1:])))
        gaps.append(longest_gap(times, begin, end))
    print(f"{name}: longest stall {1e3 * max(gaps):.0f} ms, median round "
          f"{1e3 * statistics.median(medians):.1f} ms, in {end - begin:.1f} s "
          f"{late} deadlines missed, {passed} rounds passed over", flush=True)
    machine = watch.longest(begin, end)
    if machine > 0.1:
        print(f"the machine itself stood still for {1e3 * machine:.0f} ms")
    longest = max(2 * statistics.median(medians), 1.0)
    promise(max(gaps) - machine <= longest,
            f"{name}: a stall of {max(gaps):.2f} s, above {longest:.2f} s")
    return passed


def joins(fleet, extra, everybody):
    """Three joins, with leaves between them; each is measured with the time
    after it."""
    for k in range(JOINS):
        if k > 0:
            begin = time.time()
            fleet.processes[extra].send_signal(signal.SIGTERM)
            fleet.processes[extra].wait(processes.LIMIT)
            time.sleep(AFTER)
            report("it leaves", fleet, everybody, begin)
            shutil.rmtree(os.path.join(fleet.run_dir, f"peer-{extra}"))
        begin = time.time()
        fleet.start_peer(extra)
        processes.wait_for(lambda: fleet.round_of(extra) > 0)
        time.sleep(AFTER)
        passed = report("one more joins", fleet, everybody, begin)
        promise(passed == 0, f"a join has cost {passed} rounds")


def stalls(fleet):
    extra = PEERS + 1
    everybody = range(1, PEERS + 1)
    begin = time.time()
    time.sleep(CALM)
    report("nothing happens", fleet, everybody, begin)
    joins(fleet, extra, everybody)
    begin = time.time()
    fleet.processes[extra].kill()
    processes.wait_for(lambda: standing(fleet, extra) == "removed")
    took = time.time() - begin
    print(f"out of the view after {took:.1f} s")
    promise(took <= 5, f"a dead peer was in the view for {took:.1f} s")
    time.sleep(2)
    report("kill -9", fleet, everybody, begin)
    begin = time.time()
    fleet.processes[3].send_signal(signal.SIGSTOP)
    processes.wait_for(lambda: standing(fleet, 3) == "removed")
    fleet.processes[3].send_signal(signal.SIGCONT)
    processes.wait_for(lambda: standing(fleet, 3) == "member")
    time.sleep(2)
    report("freeze and return", fleet, [k for k in everybody if k != 3], begin)


def leaves(fleet, heartbeat):
    """Peers leave one after the other, the last ones first."""
    took, events = [], []
    for k in range(PEERS, PEERS - LEAVES, -1):
        begin = time.time()
        fleet.processes[k].send_signal(signal.SIGTERM)
        code = fleet.processes[k].wait(processes.LIMIT)
        took.append(time.time() - begin)
        promise(took[-1] <= 10, f"peer {k} took {took[-1]:.1f} s to leave")
        if code != 0:
            raise AssertionError(f"peer {k} ended with {code}")
        events += [e for e in fleet.events(k) if e.startswith("left")]
    length = statistics.median(
        b[0] - a[0] for a, b in zip(rounds(fleet, 1), rounds(fleet, 1)[1:]))
    print(f"SIGTERM to exit, rounds of {1e3 * length:.0f} ms, a heartbeat per "
          f"{heartbeat} s: " + ", ".join(f"{t:.1f} s" for t in took) +
          f" ({', '.join(events)})", flush=True)


def with_fleet(measure, enough, **options):
    folder = tempfile.mkdtemp(prefix="gossamer_stall_")
    fleet = processes.Fleet(folder, peers=PEERS, rounds=10_000_000,
                            mixing=MIXING, **options)
    try:
        fleet.start()
        processes.wait_for(lambda: fleet.round_of(PEERS) > enough)
        measure(fleet)
    finally:
        fleet.kill()
        shutil.rmtree(folder)


def asleep(step):
    return (f'synthetic {{ parameters: 20000 step_time: "{step}" '
            'pace: "sleep" }')


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bin", help="folder of the programs, build/release/bin")
    processes.BIN = parser.parse_args().bin
    global watch
    watch = Watch()
    print("steps as fast as the cores allow")
    with_fleet(stalls, 200, dimension=20000)
    print("steps of 40 ms, asleep")
    with_fleet(stalls, 200, game=asleep("40ms"))
    for step in ("8ms", "500ms"):
        with_fleet(lambda fleet: leaves(fleet, 1), 8, heartbeat=1,
                   game=asleep(step))
    for what in broken:
        print(f"not as promised: {what}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
