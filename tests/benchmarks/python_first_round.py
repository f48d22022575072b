#!/usr/bin/env python3
"""The time from the start of a local fleet of four programs until the first mix()
has come back at the last of them: the service, imports, the join and a round.

    python python_first_round.py        # with a Python that has gossamer and torch

Prints seconds, of five fleets.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

BEGAN = "GOSSAMER_FIRST_ROUND_BEGAN"


def program():
    import torch

    import gossamer
    torch.manual_seed(1)
    with gossamer.join(players={"G": torch.nn.Linear(64, 64)}) as fleet:
        fleet.mix()
        print("mixed after", time.time() - float(os.environ[BEGAN]))
        while not fleet.over:
            fleet.mix()


def main():
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "gossamer.run", "--peers", "4", "--set",
                 "rounds=20", "--run-dir", folder, __file__], text=True,
                env={**os.environ, BEGAN: str(time.time())},
                capture_output=True)
        found = re.findall(r"mixed after (\S+)", done.stdout)
        if len(found) != 4:
            raise SystemExit(done.stdout + done.stderr)
        print(f"{max(map(float, found)):.2f}", flush=True)


if __name__ == "__main__":
    program() if BEGAN in os.environ else main()
