"""What must hold of a fleet besides that it goes on: its peers agree as much
as if nothing had been done to them, its daemons have not grown, its checkpoints are whole.

soak.py asks and tells; this judges.
"""

import glob
import json
import os
import subprocess

DAEMONS = ("gossamer-peer", "gossamer-topology")
# A daemon may be so much larger at the end than any of its kind was in the
# calm stretch: pools and queues that faults have filled stay for a while.
RSS_FACTOR, RSS_MORE_KB = 1.5, 32 << 10
FILES_MORE = 24
MOST_REHEARSED = 20000  # rounds


def daemons(config):
    """(program, pid, command line) of all that run with this configuration."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().decode().split("\0")
        except OSError:
            continue
        program = os.path.basename(words[0])
        if program in DAEMONS and config in words:
            yield program, int(path.split("/")[2]), words


def size(pid):
    """(resident KB, open files); None if it has just ended."""
    try:
        with open(f"/proc/{pid}/status") as f:
            rss = next(int(line.split()[1]) for line in f
                       if line.startswith("VmRSS:"))
        return rss, len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, StopIteration):
        return None


class Sizes:
    """The largest daemon of each kind, in each stretch."""

    def __init__(self, config):
        self.config = config
        self.largest = {}  # stretch -> program -> [KB, files]

    def look(self, stretch):
        largest = self.largest.setdefault(stretch, {})
        for program, pid, _ in daemons(self.config):
            seen = size(pid)
            if seen is None:
                continue
            known = largest.setdefault(program, [0, 0])
            known[:] = map(max, known, seen)

    def grown(self, factor=RSS_FACTOR):
        """What is too large in the stretch "end", against "calm"."""
        for program in DAEMONS:
            before = self.largest.get("calm", {}).get(program)
            after = self.largest.get("end", {}).get(program)
            if before is None or after is None:
                yield f"nobody has seen a {program} before and after"
                continue
            if after[0] > factor * before[0] + RSS_MORE_KB:
                yield (f"a {program} has {after[0]} KB in memory, "
                       f"{before[0]} KB in the calm stretch")
            if after[1] > before[1] + FILES_MORE:
                yield (f"a {program} has {after[1]} files open, "
                       f"{before[1]} in the calm stretch")


def undisturbed_distance(bin_, folder, rounds):
    """How far apart a fleet that nothing is done to is after so many rounds, by
    a rehearsal: early on everybody goes the same way, so that a calm stretch at
    the beginning does not say it.  It changes little after MOST_REHEARSED."""
    out = f"{folder}/rehearsal"
    subprocess.run([os.path.join(bin_, "gossamer"), "lab", "--rehearse",
                    "--scenario", f"{folder}/scenario.textproto", "--config",
                    f"{folder}/config.textproto", "--set",
                    f"rounds={min(rounds, MOST_REHEARSED)}", "--out", out],
                   check=True, capture_output=True, timeout=3600)
    with open(f"{out}/consensus.jsonl") as f:
        return json.loads(f.readlines()[-1])["consensus_distance"]


def damaged_checkpoints(bin_, run, on_purpose):
    """Those that are not whole, but for what was damaged on purpose, and peers
    that have none at all.  `on_purpose`: {(rank, round)}."""
    done = subprocess.run([os.path.join(bin_, "gossamer"), "checkpoint",
                           "verify", "--run", run, "--json"],
                          capture_output=True, text=True, timeout=120)
    try:
        listed = json.loads(done.stdout)["checkpoints"]
    except (ValueError, KeyError):
        yield f"checkpoint verify: {done.stderr.strip() or done.returncode}"
        return
    for c in listed:
        if not c["whole"] and (c["rank"], c["round"]) not in on_purpose:
            yield f"rank {c['rank']}, round {c['round']}: {c['problem']}"
    whole = {c["rank"] for c in listed if c["whole"]}
    ranks = {int(p.rsplit("-", 1)[1]) for p in glob.glob(f"{run}/peer-*")
             if p.rsplit("-", 1)[1].isdigit()}
    for rank in sorted(ranks - whole):
        yield f"rank {rank} has no whole checkpoint"
