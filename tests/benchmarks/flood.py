#!/usr/bin/env python3
"""What a member that floods costs a fleet: rounds/s and memory before, while and
after one of its connections sends frames of HTTP/2 that bring nothing.

    flood.py build/release/bin
    flood.py build/release/bin --kind settings --at service --seconds 8

Three peers of the synthetic game behind certificates on loopback.  The flooder
has peer 3's certificate and connects again whenever it is ended.  Prints JSON.
Programs that are older than the guard take gigabytes, so a few seconds are
enough for them.
"""

import argparse
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

INTEGRATION = pathlib.Path(__file__).resolve().parents[1] / "integration"
sys.path.insert(0, str(INTEGRATION))

import processes_test as processes  # noqa: E402
from http2_flood import EDGE, KINDS, SERVICE  # noqa: E402

PARAMETERS = 1_000_000


def megabytes(process):
    for line in open(f"/proc/{process.pid}/status", encoding="ascii"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    raise SystemExit("a process has ended")


def measure(options, folder):
    fleet = processes.Fleet(folder, rounds=10**6, peers=3, locked=True,
                            game=processes.SYNTHETIC.format(PARAMETERS),
                            heartbeat=0.5)
    try:
        fleet.start()
        processes.wait_for(lambda: fleet.round_of(1) > 60)
        status = fleet.status(*fleet.door("operator"))
        port, path, program = fleet.port, SERVICE, fleet.service
        if options.at == "peer":
            address = json.loads(status.stdout)["peers"][0]["address"]
            port, path = int(address.rsplit(":", 1)[1]), EDGE
            program = fleet.processes[1]
        marks = [(time.time(), megabytes(program))]

        def mark(seconds):
            time.sleep(max(0.0, marks[-1][0] + seconds - time.time()))
            marks.append((time.time(), megabytes(program)))

        mark(options.seconds)
        subprocess.run(
            [sys.executable, INTEGRATION / "http2_flood.py",
             f"127.0.0.1:{port}", options.kind, str(options.seconds),
             "--path", path, "--certs", fleet.certs_of("peer-3"), "--from",
             "127.0.0.9", "--again"], stdout=subprocess.DEVNULL, check=True)
        mark(options.seconds)
        mark(options.seconds)
        fleet.processes[1].send_signal(signal.SIGINT)
        fleet.wait()
        ends = [end for _, end, _ in fleet.rounds(1)]
    finally:
        fleet.kill()
    result = {"kind": options.kind, "at": options.at}
    for name, (begin, _), (end, memory) in zip(("before", "flood", "after"),
                                               marks, marks[1:]):
        rounds = sum(begin <= e < end for e in ends)
        result[name] = {"rounds_per_s": round(rounds / (end - begin), 2),
                        "memory_mb": memory}
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("programs")
    parser.add_argument("--kind", default="reset", choices=KINDS)
    parser.add_argument("--at", default="peer", choices=["peer", "service"])
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    processes.BIN = options.programs
    folder = tempfile.mkdtemp(prefix="gossamer-flood-")
    try:
        print(json.dumps(measure(options, folder)))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
