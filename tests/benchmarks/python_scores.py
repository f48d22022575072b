#!/usr/bin/env python3
"""The scores of an example of deploy/examples/python with gossamer, of the same loop
with an all-reduce of gradients by gloo in every step, and of peers that never mix,
over several seeds.

    python_scores.py                    # with a Python that has gossamer and torch
    python_scores.py --example dcgan --seeds 1,2,3,4,5
    python_scores.py --lacking          # each peer's data lack two of eight modes
    python_scores.py --example supervised --set mixing.graph=complete

Prints JSON: the scores of all peers, their mean, and the standard deviation of
the seeds' means.  0 is the best score.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "deploy/examples/python"
STAND_IN = SOURCE / "tests/runtime/library/stand_in"
PEERS = 4


def scores(method, seed, options, folder):
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text()
        if options.lacking:
            text = text.replace("points.Shard(", "points.Own(")
        text = re.sub(r"manual_seed\((.*?)\)",
                      rf"manual_seed(\1 + {1_000_003 * seed})", text)
        (folder / path.name).write_text(text)
    script = options.example + ".py"
    rounds = re.search(r"rounds=(\d+)", (folder / script).read_text())[1]
    environment = dict(os.environ, OMP_NUM_THREADS="1", ROUNDS=rounds)
    if method == "gossamer":
        settings = [s for setting in options.set for s in ("--set", setting)]
        commands = [["-m", "gossamer.run", "--peers", f"{PEERS}", "--set",
                     f"rounds={rounds}", *settings, script]]
    elif method == "allreduce":
        commands = [["-m", "torch.distributed.run", "--nproc-per-node",
                     f"{PEERS}", script]]
    else:
        commands = PEERS * [[script]]
    if method != "gossamer":
        environment["PYTHONPATH"] = str(STAND_IN)
    found = []
    for i, command in enumerate(commands):
        done = subprocess.run([sys.executable, *command], cwd=folder, text=True,
                              env=dict(environment, NUMBER=str(i + 1)),
                              capture_output=True)
        found += [float(s) for s in re.findall(r"score (-?[0-9.]+)",
                                               done.stdout)]
    if len(found) != PEERS:
        raise SystemExit(f"{method}, seed {seed}: {done.stdout}{done.stderr}")
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--example", default="stylegan_loop")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--methods", default="gossamer,allreduce,alone")
    parser.add_argument("--set", action="append", default=[],
                        help="a key of the configuration, with gossamer")
    parser.add_argument("--lacking", action="store_true")
    options = parser.parse_args()
    for method in options.methods.split(","):
        means, every = [], []
        for seed in options.seeds.split(","):
            with tempfile.TemporaryDirectory() as folder:
                every.append(scores(method, int(seed), options,
                                    pathlib.Path(folder)))
            means.append(statistics.mean(every[-1]))
        print(json.dumps({
            "example": options.example, "method": method, "scores": every,
            "mean": statistics.mean(means),
            "spread": statistics.stdev(means) if len(means) > 1 else None}),
            flush=True)


if __name__ == "__main__":
    main()
