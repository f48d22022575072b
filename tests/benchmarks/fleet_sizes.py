#!/usr/bin/env python3
"""What a peer costs in fleets of different sizes: rehearsals of a random-regular
graph of degree 4, where each peer does the same.

    fleet_sizes.py --gossamer build/release/bin/gossamer
    fleet_sizes.py --gossamer build/release/bin/gossamer --sizes 100,10000 --rounds 100

Prints a line of JSON for each size: CPU time and memory of the rehearsal and of
a peer in it, bytes that a peer sends in a round, and the virtual time of a round.
"""

import argparse
import json
import os
import pathlib
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PARAMETERS = 1000


def rehearse(program, peers, rounds, folder):
    out = folder / "run"
    command = [
        program, "lab", "--rehearse", "--scenario",
        SOURCE / "deploy/lab/wan_100ms.textproto", "--config",
        SOURCE / "deploy/configs/synthetic.textproto", "--out", out,
        "--step-time", "200ms"]
    for setting in [f"peers={peers}", f"rounds={rounds}",
                    f"game.synthetic.parameters={PARAMETERS}",
                    "mixing.graph=random-regular", "mixing.degree=4"]:
        command += ["--set", setting]
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    child = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise SystemExit((folder / "log").read_text())
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gossamer", required=True)
    parser.add_argument("--sizes", default="100,300,1000,3000,10000")
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    for size in options.sizes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found = rehearse(os.path.abspath(options.gossamer), int(size),
                             options.rounds, pathlib.Path(folder))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
