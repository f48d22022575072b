"""Checks of a fleet beside its speed: its peers agree as much as undisturbed ones,
its daemons have not grown, and its checkpoints are whole.

soak.py calls these checks and reports their results.
"""

import glob
import json
import os
import subprocess

DAEMONS = ("gossamer-peer", "gossamer-topology")
# The growth that is allowed to a daemon between the calm stretch and the end; a
# younger one is compared with the largest of its kind.  Pools and queues that
# faults have filled stay for a while, and a leak of 50 MB an hour exceeds this
# within hours.
RSS_FACTOR, RSS_MORE_KB = 1.5, 32 << 10
FILES_MORE = 24
MOST_REHEARSED = 20000  # rounds


def daemons(config):
    """Yields (program, pid, command line) of all daemons with this
    configuration."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        program = os.path.basename(words[0])
        if program in DAEMONS and config in words:
            yield program, int(path.split("/")[2]), words


def size(pid):
    """Returns (resident KB, open files), None if the process has just ended."""
    try:
        with open(f"/proc/{pid}/status") as f:
            rss = next(int(line.split()[1]) for line in f
                       if line.startswith("VmRSS:"))
        return rss, len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, StopIteration):
        return None


def began(pid):
    """Returns the start in seconds after the machine's, None if it has just
    ended."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    except OSError:
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def uptime():
    with open("/proc/uptime") as f:
        return float(f.read().split()[0])


class Sizes:
    """The largest daemon of each kind in each stretch, and the growth of those
    of the calm stretch.  `spared` is the rank whose daemon lives from then to
    the end."""

    def __init__(self, config, spared):
        self.config, self.spared = config, spared
        self.largest = {}  # stretch -> program -> [KB, files]
        self.calm = {}  # (pid, start) -> [KB, files]
        self.judged = []

    def look(self, stretch):
        largest = self.largest.setdefault(stretch, {})
        for program, pid, words in daemons(self.config):
            seen, since = size(pid), began(pid)
            if seen is None or since is None:
                continue
            known = largest.setdefault(program, [0, 0])
            known[:] = map(max, known, seen)
            if stretch == "calm":
                own = self.calm.setdefault((pid, since), [0, 0])
                own[:] = map(max, own, seen)
            elif stretch == "end":
                self.judged.append({
                    "program": program, "rank":
                    int(words[words.index("--id") + 1]) - 1
                    if "--id" in words else None,
                    "minutes_old": round((uptime() - since) / 60, 1),
                    "calm": self.calm.get((pid, since)), "end": list(seen)})

    def grown(self, factor=RSS_FACTOR):
        """Yields the daemons that are too large in the stretch "end", compared
        with "calm"."""
        self.judged.sort(key=lambda d: -d["minutes_old"])
        for program in DAEMONS:
            if program not in self.largest.get("calm", {}) or \
                    program not in self.largest.get("end", {}):
                yield f"nobody has seen a {program} before and after"
        if not any(d["rank"] == self.spared and d["calm"] for d in self.judged):
            yield (f"the peer of rank {self.spared}, which nobody killed, is "
                   "not the one of the calm stretch")
        for d in self.judged:
            program, after = d["program"], d["end"]
            before = d["calm"] or self.largest["calm"].get(program)
            if before is None:
                continue
            who = program if d["rank"] is None else \
                f"{program} of rank {d['rank']}"
            whose = "it had" if d["calm"] else "the largest of its kind had"
            who += f", {d['minutes_old']} minutes old,"
            if after[0] > factor * before[0] + RSS_MORE_KB:
                yield (f"a {who} has {after[0]} KB in memory, {whose} "
                       f"{before[0]} KB in the calm stretch")
            if after[1] > before[1] + FILES_MORE:
                yield (f"a {who} has {after[1]} files open, {whose} "
                       f"{before[1]} in the calm stretch")


def undisturbed_distance(bin_, folder, rounds):
    """Returns the distance between the peers of an undisturbed fleet after so
    many rounds, by a rehearsal.  A calm stretch at the beginning does not show
    it, since all peers move alike at first.  It changes little after
    MOST_REHEARSED."""
    out = f"{folder}/rehearsal"
    subprocess.run([os.path.join(bin_, "gossamer"), "lab", "--rehearse",
                    "--scenario", f"{folder}/scenario.textproto", "--config",
                    f"{folder}/config.textproto", "--set",
                    f"rounds={min(rounds, MOST_REHEARSED)}", "--out", out],
                   check=True, capture_output=True, timeout=3600)
    with open(f"{out}/consensus.jsonl") as f:
        return json.loads(f.readlines()[-1])["consensus_distance"]


def damaged_checkpoints(bin_, run, on_purpose):
    """Returns the checkpoints that are not whole, except those damaged on
    purpose, and the peers that have none.  `on_purpose`: {(peer id, round)}."""
    done = subprocess.run([os.path.join(bin_, "gossamer"), "checkpoint",
                           "verify", "--run", run, "--json"],
                          capture_output=True, text=True, timeout=120)
    try:
        listed = json.loads(done.stdout)["checkpoints"]
    except (ValueError, KeyError):
        yield f"checkpoint verify: {done.stderr.strip() or done.returncode}"
        return
    for c in listed:
        if not c["whole"] and (c["peer"], c["round"]) not in on_purpose:
            yield f"peer {c['peer']}, round {c['round']}: {c['problem']}"
    whole = {c["peer"] for c in listed if c["whole"]}
    peers = {int(p.rsplit("-", 1)[1]) for p in glob.glob(f"{run}/peer-*")
             if p.rsplit("-", 1)[1].isdigit()}
    for peer in sorted(peers - whole):
        yield f"peer {peer} has no whole checkpoint"
