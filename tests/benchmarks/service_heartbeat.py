#!/usr/bin/env python3
"""CPU time of a real gossamer-topology for a heartbeat, with gRPC and TLS: of a few
peers that beat often, less that of the same with one a second.

    service_heartbeat.py build/release/bin
    service_heartbeat.py build/release/bin --peers 8 --heartbeat 0.05 --seconds 20

Peers of the synthetic game behind certificates on loopback.  Prints JSON.  What a
heartbeat costs in a large fleet, without gRPC, is heartbeat_benchmark's.
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


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def load(peers, heartbeat, seconds):
    """CPU seconds of the service in a second."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = processes.Fleet(folder, rounds=10**6, peers=peers, locked=True,
                                heartbeat=heartbeat,
                                game=processes.SYNTHETIC.format(10000))
        try:
            fleet.start()
            processes.wait_for(lambda: fleet.round_of(1) > 20)
            began, used = time.monotonic(), cpu_seconds(fleet.service)
            time.sleep(seconds)
            return ((cpu_seconds(fleet.service) - used) /
                    (time.monotonic() - began))
        finally:
            fleet.kill()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--peers", type=int, default=8)
    parser.add_argument("--heartbeat", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    processes.BIN = os.path.abspath(options.bin)
    often = load(options.peers, options.heartbeat, options.seconds)
    seldom = load(options.peers, 1, options.seconds)
    more = options.peers * (1 / options.heartbeat - 1)
    print(json.dumps({
        "peers": options.peers, "heartbeat_s": options.heartbeat,
        "cpu_s_per_s": round(often, 4),
        "cpu_s_per_s_at_one_a_second": round(seldom, 4),
        "us_of_a_heartbeat": round(1e6 * (often - seldom) / more, 1)}))


if __name__ == "__main__":
    main()
