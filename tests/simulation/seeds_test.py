#!/usr/bin/env python3
"""Seeds of `gossamer simulate` without a violation, and without more work than
they are said to be: what takes time is counted, since time is not the same
twice.

usage: seeds_test.py GOSSAMER FROM SEEDS
"""

import json
import subprocess
import sys

# Half more than it takes: 1,288 and 23.9 where a seed is 0.067 core-seconds.
MOST_PEER_ROUNDS_A_SEED = 1930
MOST_EVENTS_A_PEER_ROUND = 36
LONGEST = 1100  # seconds, less than the test may take


def main():
    program, first, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with subprocess.Popen([program, "simulate", "--from", first, "--seeds",
                           str(seeds), "--jobs", "1", "--json"],
                          stdout=subprocess.PIPE, text=True) as run:
        try:
            out, _ = run.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            run.terminate()  # it says which seed it is at
            out, _ = run.communicate()
    print(out)
    if run.returncode != 0:
        return 1
    told = json.loads(out)
    rounds = told["peer_rounds"] / seeds
    events = told["events"] / told["peer_rounds"]
    print(f"{rounds:.0f} peer-rounds a seed, {events:.1f} events a peer-round")
    problems = [f"{name}: {value:.1f}, at most {most}" for name, value, most in (
        ("peer-rounds a seed", rounds, MOST_PEER_ROUNDS_A_SEED),
        ("events a peer-round", events, MOST_EVENTS_A_PEER_ROUND))
        if not 0 < value <= most]
    print("\n".join(problems), end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
