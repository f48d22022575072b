#!/usr/bin/env python3
"""What a peer costs in fleets of different sizes: rehearsals of a random-regular
graph of degree 4, where each peer does the same.

    fleet_sizes.py --gossamer build/release/bin/gossamer
    fleet_sizes.py --gossamer build/release/bin/gossamer --sizes 100,10000 --rounds 100
    fleet_sizes.py --gossamer build/release/bin/gossamer --instructions

Prints a line of JSON for each size: CPU time and memory of the rehearsal and of
a peer in it, bytes that a peer sends in a round, and the virtual time of a round.

All peers of a rehearsal share the caches of one machine, which peers do not, so
the time of a round grows with the fleet.  --instructions counts what a peer
executes instead, in rounds 6 to 15 and before: by valgrind, half an hour.  Logs,
which the first 200 peers alone write, are not counted, nor is the folder of the run.
"""

import argparse
import json
import os
import pathlib
import re
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PARAMETERS = 1000


def rehearse(program, peers, rounds, folder, under=()):
    """Runs the program under the command `under`.  Returns what it used, and its
    folder."""
    out = folder / f"run-{rounds}"
    command = [
        *under, program, "lab", "--rehearse", "--scenario",
        SOURCE / "deploy/lab/wan_100ms.textproto", "--config",
        SOURCE / "deploy/configs/synthetic.textproto", "--out", out,
        "--step-time", "200ms"]
    for setting in [f"peers={peers}", f"rounds={rounds}",
                    f"game.synthetic.parameters={PARAMETERS}",
                    "mixing.graph=random-regular", "mixing.degree=4"]:
        command += ["--set", setting]
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise SystemExit((folder / "log").read_text())
    return usage, out


def costs(program, peers, rounds, folder):
    usage, out = rehearse(program, peers, rounds, folder)
    links = json.loads((out / "network.json").read_text())["links"]
    seconds = json.loads((out / "summary.json").read_text())["training_seconds"]
    return {
        "peers": peers, "rounds": rounds,
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "memory_mb": usage.ru_maxrss // 1024,
        "ms_of_a_peers_round":
            round(1e3 * (usage.ru_utime + usage.ru_stime) / peers / rounds, 4),
        "kb_of_a_peer": round(usage.ru_maxrss / peers),
        "bytes_a_round":
            round(sum(link["bytes"] for link in links) / peers / rounds),
        "virtual_seconds_a_round": round(seconds / (rounds - 1), 4)}


def instructions(program, peers, folder):
    counts = {}
    for rounds in [5, 15]:
        rehearse(program, peers, rounds, folder,
                 ["valgrind", "--tool=callgrind",
                  # The peers and the service, without the logs of peers.
                  "--toggle-collect=gossamer::Rehearsal::Run(*",
                  "--toggle-collect=gossamer::JsonlSink::On*",
                  "--callgrind-out-file=/dev/null"])
        counts[rounds] = int(re.search(r"Collected : (\d+)",
                                       (folder / "log").read_text()).group(1))
    a_round = (counts[15] - counts[5]) / 10
    return {"peers": peers,
            "instructions_of_a_peers_round": round(a_round / peers),
            "instructions_before": round((counts[5] - 5 * a_round) / peers)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gossamer", required=True)
    parser.add_argument("--sizes", default="100,300,1000,3000,10000")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    program = os.path.abspath(options.gossamer)
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            found = (instructions(program, size, folder)
                     if options.instructions
                     else costs(program, size, options.rounds, folder))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
