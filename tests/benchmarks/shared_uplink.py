#!/usr/bin/env python3
"""What `auto` makes of hosts with one limit for all that they send, 100 Mbit/s, and a
round trip of 200 ms: real peers on a ring in network namespaces.

    sudo shared_uplink.py --gossamer build/release/bin/gossamer
    sudo shared_uplink.py --gossamer ... --step 40ms --fixed innov-lm2,4 --fixed innov-sign,4

Prints JSON: rounds/s of the slowest peer from round 20 on, without delay and
limit and in that network; their ratio; and the same of fixed choices of codec
and overlap.  Needs root, as gossamer lab does, and the machine for itself.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import run_log

CONFIG = """
name: "uplink"
algorithm: "dp-oadam"
peers: 4
rounds: {rounds}
mixing {{ graph: "ring" codec: "{codec}" overlap_steps: {overlap} }}
game {{ synthetic {{ parameters: 2258308 step_time: "{step}" pace: "sleep" }} }}
evaluation {{ every: 0 }}
resources {{ congestion_control: "{congestion}" }}
"""
LAB = pathlib.Path(__file__).resolve().parents[2] / "deploy/lab"


def rate(options, network, codec="auto", overlap="auto"):
    """Rounds/s of the slowest peer from round 20 on."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        config = pathlib.Path(folder) / "config"
        config.write_text(CONFIG.format(
            rounds=options.rounds, step=options.step, codec=codec,
            congestion=options.congestion,
            overlap=overlap if overlap == "auto" else f"steps_{overlap}"))
        done = subprocess.run(
            [os.path.abspath(options.gossamer), "lab", "--scenario",
             LAB / f"{network}.textproto",
             "--config", config, "--runs", folder, "--name", "uplink"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise SystemExit(done.stdout)
        return run_log.slowest_rate(pathlib.Path(folder) / "uplink", first=20)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gossamer", required=True)
    parser.add_argument("--step", default="200ms")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--congestion", default="auto",
                        help="cubic: as on a kernel without BBR")
    parser.add_argument("--fixed", action="append", default=[],
                        metavar="CODEC,OVERLAP")
    options = parser.parse_args()
    result = {"step": options.step, "rounds": options.rounds}
    result["without"] = round(rate(options, "no_network"), 3)
    result["auto"] = round(rate(options, "shared_uplink"), 3)
    result["ratio"] = round(result["auto"] / result["without"], 3)
    for choice in options.fixed:
        result[choice] = round(rate(options, "shared_uplink", *choice.split(",")), 3)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
