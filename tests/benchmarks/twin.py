#!/usr/bin/env python3
"""How long two processes are one peer: a second one with peer 2's certificate and
an empty folder takes its place while the first still trains.

    twin.py build/release/bin
    twin.py build/release/bin --graphs ring --tries 5

Four peers behind certificates on loopback, rounds of 50 ms.  Prints a line of JSON
for each graph: of every try the seconds from the start of the second process until
the first has ended, and until the second has had a round.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

INTEGRATION = pathlib.Path(__file__).resolve().parents[1] / "integration"
sys.path.insert(0, str(INTEGRATION))

import processes_test as processes  # noqa: E402

def take_over(graph, folder):
    old = None
    fleet = processes.Fleet(folder, rounds=10**6, peers=4, locked=True,
                            heartbeat=1,
                            game=processes.SYNTHETIC.format(100000),
                            mixing=f'graph: "{graph}"')
    try:
        fleet.start()
        processes.wait_for(lambda: fleet.round_of(1) > 50)
        old = fleet.processes[2]
        twin = os.path.join(folder, "twin")
        metrics = os.path.join(twin, "peer-2", "metrics.jsonl")
        began = time.monotonic()
        fleet.start_peer(2, run_dir=twin)
        seconds = {}

        def looked():
            now = round(time.monotonic() - began, 2)
            if old.poll() is not None:
                seconds.setdefault("old_ended_s", now)
            if os.path.exists(metrics) and os.path.getsize(metrics):
                seconds.setdefault("new_trains_s", now)
            return len(seconds) == 2

        processes.wait_for(looked)
        if "another process has registered as peer 2" not in fleet.log(2):
            raise SystemExit("the first process did not end by the refusal")
    finally:
        fleet.kill()
        if old is not None:
            old.kill()
            old.wait()
    return seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--graphs", default="ring,complete")
    parser.add_argument("--tries", type=int, default=3)
    options = parser.parse_args()
    processes.BIN = os.path.abspath(options.bin)
    for graph in options.graphs.split(","):
        tries = []
        for _ in range(options.tries):
            with tempfile.TemporaryDirectory() as folder:
                tries.append(take_over(graph, folder))
        print(json.dumps({"graph": graph,
                          **{key: [t[key] for t in tries]
                             for key in ("old_ended_s", "new_trains_s")}}),
              flush=True)


if __name__ == "__main__":
    main()
