#!/usr/bin/env python3
"""Each bug that is planted on purpose must be found by the simulation within so
many seeds, be found again by the line that is printed for it, and without it
nothing may be: neither in that seed nor in the first so many.

usage: seeded_bugs_test.py FLEET_SWARM [BUG ...]
"""

import json
import os
import re
import subprocess
import sys

# Name (SeededBug in the sources) -> the rule that it breaks.
BUGS = {
    "apply-twice": "a correction is added twice",
    "apply-nothing": "corrections are complete and change nothing",
    "skip-at-one-end": "one end leaves out a correction that the other applies",
    "own-coefficient": "each end uses its own coefficient, not the smaller",
    "keep-difference": "D survives the end of an incarnation",
    "no-window": "payloads pile up without a limit",
    "accept-twice": "a repeated frame counts again",
    "accept-over-a-gap": "a frame counts though one before it is missing",
    "acknowledge-receipt": "what was heard counts as complete",
    "release-when-acknowledged": "a payload goes before it is complete here",
    "no-resend": "nothing is sent again after a hello",
    "never-rise": "an end stays below the epoch it is remembered by",
    "seal-early": "a record is sealed before all is heard",
    "record-without-mine": "a record forgets this end's payloads",
    "leave-early": "a peer leaves while others need it",
    "no-deadline": "waits have no timer",
    "run-past-stop": "a peer begins the round it has agreed to stop at",
    "commit-unacknowledged": "a stop is final before all have agreed",
    "uncommon-checkpoint": "a fleet resumes from a round that some lack",
    "answer-unsaved": "the service answers before it has saved",
    "no-sync-before-rename": "a checkpoint's files are not synced",
    "no-sync-after-rename": "a checkpoint's name is not synced",
    "unverified": "a damaged checkpoint counts as whole",
    "keep-duals": "what a lost edge had brought duals is kept",
    "drop-leavers": "a peer that is leaving is given up at once",
    "leave-unanswered": "a leaver does not answer a peer that hears of it late",
    "greet-nobody": "a new incarnation says nothing to peers that wait for the one before",
    "same-life": "an evicted peer registers as the incarnation that was evicted",
    "same-epochs": "an evicted peer's edges go on with their epochs",
    "sum-of-states": "a joiner adds up what members gave it",
    "remove-with-lease": "a suspected peer is evicted though it has a lease",
    "remove-unsuspected": "a missed lease alone evicts a peer",
    "one-suspecter": "one of several live neighbours is enough to evict a peer",
    "lease-from-start": "leases count before the service is up for one",
    "join-without-parameters": "a joiner does not wait for parameters",
    "stay-apart": "a peer that missed a deadline gets nothing any more",
    "keep-turns": "payloads of two ends that take turns never meet",
    "replicas-everywhere": "memory for replicas has no limit",
    "meet-late": "partners of a view's first rounds have no edge before its rounds",
    "forget-late-meetings": "members that wait in rounds that are past get no edge",
    "expect-by-any-view": "a member is waited for that may not know the view",
    "meet-by-old-view": "an edge is made to where its peer was by the view in use",
    "nccl-unordered": "pairs are launched as they are agreed on",
    "nccl-no-watchdog": "an operation of NCCL may take for ever",
    "nccl-alone": "a peer without a mean takes another way though others may have it",
    "nccl-any-name": "a body counts as that of whichever exchange waits for one",
    "nccl-any-body": "a body counts though it does not fit its checksum",
}
# Rules of the edge that only its search breaks (edge_search_test): no schedule
# of the simulation is as adverse.
BY_SEARCH = {"basis-twice", "reset-any-time", "no-nonce"}
SOURCES = ("algorithms", "runtime", "topology", "tests/simulation")
# The seed at which the search begins, for bugs that few seeds show.
FIRST = {"commit-unacknowledged": 2361, "leave-unanswered": 601,
         "greet-nobody": 4001, "keep-turns": 781, "meet-late": 141,
         "meet-by-old-view": 4221, "forget-late-meetings": 6021,
         "expect-by-any-view": 4961}
SEEDS = 300
AT_ONCE = 20
JOBS = 2


def of_nccl(bug):
    """Few fleets use NCCL unless they are told to."""
    return bug.startswith("nccl-")


def violations(fleet_swarm, bug, start, seeds, nccl=False):
    command = [fleet_swarm, "--from", str(start), "--seeds",
               str(seeds), "--jobs", str(JOBS), "--json", *["--nccl"] * nccl]
    if bug:
        command += ["--bug", bug]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    died = re.search(r"^(SIG\w+ in seed (\d+))\n  replay: (.*)$", done.stderr,
                     re.MULTILINE)
    if bug and done.returncode < 0 and died:
        # An assertion of the code under test finds a bug, too.
        what, seed, replay = died.groups()
        return [{"seed": int(seed), "what": what, "replay": replay,
                 "code": done.returncode}]
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: "
                 f"{done.stderr.strip()[-200:]}")
    return json.loads(done.stdout)["violations"]


def planted():
    """Names of all switches, from the sources."""
    top = os.path.join(os.path.dirname(__file__), "..", "..")
    names = set()
    for part in SOURCES:
        for folder, _, files in os.walk(os.path.join(top, part)):
            for f in files:
                if not f.endswith((".cc", ".h")):
                    continue
                with open(os.path.join(folder, f), encoding="utf-8") as source:
                    text = source.read()
                names.update(re.findall(r'SeededBug\("([\w-]+)"\)', text))
                for rules in re.findall(r"kNames\[\] = {(.*?)}", text, re.S):
                    names.update(re.findall(r'"([\w-]+)"', rules))
    return names


def replays(fleet_swarm, first):
    """The printed line shows the same again, be it an assertion."""
    again = subprocess.run([fleet_swarm, *first["replay"].split()[1:]],
                           capture_output=True, text=True, check=False)
    return (again.returncode == first.get("code", 1)
            and first["what"] in again.stdout + again.stderr)


def find(fleet_swarm, bug):
    first = FIRST.get(bug, 1)
    for start in range(first, first + SEEDS, AT_ONCE):
        found = violations(fleet_swarm, bug, start, AT_ONCE, of_nccl(bug))
        if found:
            return found[0]
    return None


def main():
    fleet_swarm = sys.argv[1]
    only = sys.argv[2:]
    unlisted = planted() - set(BUGS) - BY_SEARCH
    if unlisted or not planted() > set(BUGS):
        sys.exit(f"in the sources and not in this list: {sorted(unlisted)}; "
                 f"in the list only: {sorted(set(BUGS) - planted())}")
    unknown = [bug for bug in only if bug not in BUGS]
    if unknown:
        sys.exit(f"no bug is called {', '.join(unknown)}; known: "
                 f"{', '.join(BUGS)}")
    looked_for = only or list(BUGS)
    missed = []
    for bug in looked_for:
        breaks = BUGS[bug]
        first = find(fleet_swarm, bug)
        if first and not replays(fleet_swarm, first):
            missed.append(bug)
            print(f"{bug}: seed {first['seed']} does not show it again: "
                  f"{first}", flush=True)
        elif first and violations(fleet_swarm, None, first["seed"], 1,
                                  of_nccl(bug)):
            missed.append(bug)
            print(f"{bug}: seed {first['seed']} shows something without it, "
                  "too", flush=True)
        elif first:
            print(f"{bug} ({breaks}): seed {first['seed']}: {first['what']}",
                  flush=True)
        else:
            missed.append(bug)
            print(f"{bug} ({breaks}): NOT FOUND in {SEEDS} seeds", flush=True)
    false_alarms = [] if only else violations(fleet_swarm, None, 1, SEEDS)
    for alarm in false_alarms:
        print(f"without a bug: seed {alarm['seed']}: {alarm['what']}")
    print(f"{len(looked_for) - len(missed)} of {len(looked_for)} bugs found")
    return 1 if missed or false_alarms else 0


if __name__ == "__main__":
    sys.exit(main())
