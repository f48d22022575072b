#!/usr/bin/env python3
"""The scores of deploy/examples/python/stylegan_loop.py with gossamer and of the
same loop with an all-reduce by gloo, over several seeds.

    python_scores.py --seeds 1,2,3      # with a Python that has gossamer and torch

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

EXAMPLES = (pathlib.Path(__file__).resolve().parents[2] /
            "deploy/examples/python")
COMMANDS = {
    "gossamer": ["-m", "gossamer.run", "--peers", "4", "--set", "rounds=1500",
                 "stylegan_loop.py"],
    "ddp": ["-m", "torch.distributed.run", "--nproc-per-node", "4",
            "stylegan_loop_ddp.py"]}


def scores(method, seed, folder):
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text().replace("torch.manual_seed(1)",
                                        f"torch.manual_seed({seed})")
        text = text.replace("torch.manual_seed(rank)",
                            f"torch.manual_seed(rank + {100 * seed})")
        text = text.replace("torch.manual_seed(fleet.id - 1)",
                            f"torch.manual_seed(fleet.id - 1 + {100 * seed})")
        text = text.replace("1000 * peer", f"1000 * peer + {10 ** 6 * seed}")
        (folder / path.name).write_text(text)
    done = subprocess.run([sys.executable, *COMMANDS[method]], cwd=folder,
                          env=dict(os.environ, OMP_NUM_THREADS="1"),
                          capture_output=True, text=True)
    found = [float(s) for s in re.findall(r"score (-?[0-9.]+)", done.stdout)]
    if len(found) != 4:
        raise SystemExit(f"{method}, seed {seed}: {done.stdout}{done.stderr}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", default="1,2,3")
    seeds = [int(s) for s in parser.parse_args().seeds.split(",")]
    for method in COMMANDS:
        means, every = [], []
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                every.append(scores(method, seed, pathlib.Path(folder)))
            means.append(statistics.mean(every[-1]))
        print(json.dumps({
            "method": method, "scores": every, "mean": statistics.mean(means),
            "spread": statistics.stdev(means) if len(means) > 1 else None}),
            flush=True)


if __name__ == "__main__":
    main()
