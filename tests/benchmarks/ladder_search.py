#!/usr/bin/env python3
"""What `auto` chooses on a link, beside the best of all fixed choices there:
rehearsals of four peers on a ring with every codec that auto may choose and every
overlap, in virtual time.

    ladder_search.py --gossamer build/release/bin/gossamer
    ladder_search.py --gossamer build/release/bin/gossamer --rungs world --step 40ms

Prints a line of JSON for each link: rounds/s of the later half of each run, by
the slowest peer, the best fixed choice and what auto makes of it.  A rehearsal
predicts no losses, so the links that lose a part of what they carry are left to
deploy/lab/ladder.sh.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import tempfile

import run_log

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RUNGS = "lan,zone,region,ocean,world,home"
CODECS = ["innov-int8", "innov-int4", "innov-lm2", "innov-sign"]
OVERLAPS = ["0", "1", "2", "3", "4", "6", "8"]


def rate(program, options, rung, codec, overlap):
    """Rounds/s of the slowest peer in the later half of its rounds."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder) / "scenario.textproto"
        scenario.write_text(f'uplink: "{options.uplink}"\n'
                            f'link {{ like: "{rung}" }}\n')
        out = pathlib.Path(folder) / "run"
        command = [program, "lab", "--rehearse", "--scenario", scenario,
                   "--config", SOURCE / "deploy/configs/synthetic.textproto",
                   "--out", out, "--step-time", options.step]
        for setting in ["peers=4", f"rounds={options.rounds}",
                        f"mixing.codec={codec}",
                        f"mixing.overlap_steps={overlap}",
                        "evaluation.every=0"]:
            command += ["--set", setting]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise SystemExit(done.stdout)
        return run_log.slowest_rate(out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gossamer", required=True)
    parser.add_argument("--rungs", default=RUNGS)
    parser.add_argument("--step", default="200ms")
    parser.add_argument("--uplink", default="unlimited")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    program = os.path.abspath(options.gossamer)
    for rung in options.rungs.split(","):
        fixed = {f"{codec}, {overlap}": rate(program, options, rung, codec,
                                             overlap)
                 for codec, overlap in itertools.product(CODECS, OVERLAPS)}
        best = max(fixed, key=fixed.get)
        auto = rate(program, options, rung, "auto", "auto")
        print(json.dumps({
            "rung": rung, "step": options.step, "uplink": options.uplink,
            "best": best, "best_rounds_per_s": round(fixed[best], 3),
            "auto_rounds_per_s": round(auto, 3),
            "ratio": round(auto / fixed[best], 3),
            "fixed": {name: round(r, 3) for name, r in fixed.items()}}),
              flush=True)


if __name__ == "__main__":
    main()
