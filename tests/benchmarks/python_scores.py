#!/usr/bin/env python3
"""The scores of deploy/examples/python/stylegan_loop.py with gossamer, of the same
loop with an all-reduce by gloo, and of peers that never mix, over several seeds.

    python_scores.py --seeds 1,2,3      # with a Python that has gossamer and torch
    python_scores.py --lacking          # each peer's data lack two of eight modes

Prints JSON: the scores of all peers, their mean, and the standard deviation of
the seeds' means.
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
ROUNDS = 1500
COMMANDS = {
    "gossamer": [["-m", "gossamer.run", "--peers", "4", "--set",
                  f"rounds={ROUNDS}", "stylegan_loop.py"]],
    "ddp": [["-m", "torch.distributed.run", "--nproc-per-node", "4",
             "stylegan_loop_ddp.py"]],
    "alone": 4 * [["stylegan_loop.py"]]}


def scores(method, seed, lacking, folder):
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text()
        if lacking:
            text = text.replace("points.Shard(", "points.Own(")
        text = text.replace("torch.manual_seed(1)",
                            f"torch.manual_seed({seed})")
        text = text.replace("torch.manual_seed(rank)",
                            f"torch.manual_seed(rank + {100 * seed})")
        text = text.replace("torch.manual_seed(fleet.id - 1)",
                            f"torch.manual_seed(fleet.id - 1 + {100 * seed})")
        text = text.replace("1000 * peer", f"1000 * peer + {10 ** 6 * seed}")
        (folder / path.name).write_text(text)
    found = []
    for i, command in enumerate(COMMANDS[method]):
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        if method == "alone":
            # A stand-in for the package, whose peer has no neighbours.
            environment.update(
                PYTHONPATH=str(SOURCE / "tests/runtime/library/alone"),
                ROUNDS=str(ROUNDS), NUMBER=str(i + 1))
        done = subprocess.run([sys.executable, *command], cwd=folder,
                              env=environment, capture_output=True, text=True)
        found += [float(s) for s in re.findall(r"score (-?[0-9.]+)",
                                               done.stdout)]
    if len(found) != 4:
        raise SystemExit(f"{method}, seed {seed}: {done.stdout}{done.stderr}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--lacking", action="store_true")
    options = parser.parse_args()
    seeds = [int(s) for s in options.seeds.split(",")]
    for method in COMMANDS:
        means, every = [], []
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                every.append(scores(method, seed, options.lacking,
                                    pathlib.Path(folder)))
            means.append(statistics.mean(every[-1]))
        print(json.dumps({
            "method": method, "scores": every, "mean": statistics.mean(means),
            "spread": statistics.stdev(means) if len(means) > 1 else None}),
            flush=True)


if __name__ == "__main__":
    main()
