"""The faults that the punisher causes in a fleet, one at a time.

A fault begins, lasts, and ends by itself.  Its function returns the effect when it
is over, and raises Gone if its victim is not there.
"""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import time


class Gone(Exception):
    """The victim of a fault, or the answer of a service, is not there, or not
    any more."""


def happen(kind, fleet, draw, rank):
    """Runs a fault and returns its effect; None if its victim was not there."""
    try:
        return kind(fleet, draw, rank)
    except Gone:
        return None
    except subprocess.SubprocessError as no:
        fleet.not_undone.append(str(no))
        return None


def kill(fleet, draw, rank):
    fleet.send(fleet.victim(rank), signal.SIGKILL)
    return {"ranks": [rank], "gone": True}


def freeze(fleet, draw, rank):
    pid = fleet.victim(rank)
    fleet.send(pid, signal.SIGSTOP)
    time.sleep(draw.uniform(0.5, 6))
    fleet.send(pid, signal.SIGCONT)
    return {"ranks": [rank]}


def deaf_to(fleet, rank, others):
    """While this lasts, no packet of a host reaches these hosts."""
    return fleet.changed(
        rank, " && ".join(f"ip route add blackhole {fleet.address(o)}"
                          for o in others),
        "ip route flush type blackhole")


def one_way(fleet, draw, rank):
    other = (rank + 1) % fleet.peers
    with deaf_to(fleet, rank, [other]):
        time.sleep(draw.uniform(1, 6))
    return {"ranks": [rank, other]}


def cut_off(fleet, draw, rank):
    with deaf_to(fleet, rank, [r for r in range(fleet.peers) if r != rank]):
        time.sleep(draw.uniform(1, 6))
    return {"ranks": [rank]}


def split(fleet, draw, rank):
    """Splits the fleet into two groups that do not hear each other, for up to
    three leases.  One group is without the service, and its members may be
    evicted."""
    side = set(draw.sample(range(fleet.peers), fleet.peers // 2))
    seconds = draw.uniform(1, 12)
    with contextlib.ExitStack() as cuts:
        for r in range(fleet.peers):
            with contextlib.suppress(Gone):
                cuts.enter_context(deaf_to(
                    fleet, r, [o for o in range(fleet.peers)
                               if (o in side) != (r in side)]))
        time.sleep(seconds)
    return {"ranks": list(range(fleet.peers)), "gone": True}


def slow_link(fleet, draw, rank):
    shown = fleet.inside(rank, "ip", "-o", "route", "get",
                         fleet.address((rank + 1) % fleet.peers))
    if " dev " not in shown.stdout:
        raise Gone(shown.stderr)
    device = shown.stdout.split(" dev ")[1].split()[0]
    with fleet.changed(
            rank, f"tc qdisc add dev {device} root tbf rate 300kbit "
            "burst 16kbit latency 400ms",
            f"tc qdisc del dev {device} root; "
            f"! tc qdisc show dev {device} | grep -q tbf"):
        time.sleep(draw.uniform(1, 6))
    return {"ranks": [rank]}


def full_disk(fleet, draw, rank):
    path = f"{fleet.folder}/run/peer-{rank + 1}/full"
    try:
        with open(path, "wb") as f:
            while True:
                f.write(bytes(1 << 20))
    except OSError:
        pass
    time.sleep(draw.uniform(1, 6))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    # The peer trains on, but its log has a hole that looks like a stall.
    return {"ranks": [rank]}


def damaged_checkpoint(fleet, draw, rank):
    """Damages a peer's newest checkpoint, which it finds when it comes back.
    The fault counts as a kill if there is no checkpoint, or if the peer was
    back first and has removed it."""
    done = kill(fleet, draw, rank)
    saved = {}
    for path in glob.glob(f"{fleet.folder}/run/peer-{rank + 1}/checkpoints/"
                          "round-*"):
        number = os.path.basename(path).removeprefix("round-")
        if number.isdigit():  # others are incomplete or set aside
            saved[int(number)] = f"{path}/state.safetensors"
    try:
        newest = max(saved, default=None)
        with open(saved[newest], "r+b") as f:
            f.seek(draw.randrange(os.fstat(f.fileno()).st_size))
            f.write(b"\xa5\x5a\xa5")
    # No file, a vanished one, or an empty one.
    except (KeyError, FileNotFoundError, ValueError):
        return {**done, "kind": kill.__name__}
    return {**done, "damaged": newest}


def lost_disk(fleet, draw, rank):
    """Replaces a peer's machine: its checkpoints are gone."""
    fleet.send(fleet.victim(rank), signal.SIGKILL)
    shutil.rmtree(f"{fleet.folder}/run/peer-{rank + 1}/checkpoints",
                  ignore_errors=True)
    return {"ranks": [rank], "gone": True}


def kill_service(fleet, draw, rank):
    fleet.send(fleet.victim(program="gossamer-topology"), signal.SIGKILL)
    return {"ranks": []}


def expired_certificate(fleet, draw, rank):
    """Renews a certificate too late.  An open connection goes by the
    certificate with which it began, so the peer begins another process with one
    that expires soon.  `shut_out`: the peer has reported that it is refused."""
    pid = fleet.victim(rank)
    whose = ["--id", str(rank + 1), "--out",
             f"{fleet.folder}/certs/peer-{rank + 1}"]
    life = 5
    said = fleet.said(rank)
    try:
        fleet.certs("issue", *whose, "--for", f"{life}s")
        fleet.send(pid, signal.SIGKILL)
        time.sleep(life + draw.uniform(2, 6))
    finally:
        fleet.certs("issue", *whose)
    words = fleet.said(rank, since=said)
    return {"ranks": [rank], "gone": True, "shut_out": any(
        f"certificate of peer {rank + 1} " in line and " expired at " in line
        for line in words.splitlines())}


FAULTS = [kill, kill, freeze, one_way, cut_off, split, slow_link, full_disk,
          damaged_checkpoint, lost_disk, kill_service, expired_certificate]
NAMES = sorted({f.__name__ for f in FAULTS})
ENDS_A_PEER = {kill, damaged_checkpoint, lost_disk, expired_certificate}


class Deck:
    """A shuffled deck of the kinds of faults, shuffled anew when all have been
    drawn."""

    def __init__(self, kinds, draw):
        self.kinds, self.draw, self.left = kinds, draw, []

    def take(self, but=None):
        """Draws the next kind, without this one if there are others."""
        while True:
            if not self.left:
                self.left = self.draw.sample(self.kinds, len(self.kinds))
            kind = self.left.pop()
            if kind is not but or set(self.kinds) == {but}:
                return kind

    def put_back(self, kind):
        """Puts a fault back whose victim was not there: it comes again after
        the next one."""
        self.left.insert(max(0, len(self.left) - 1), kind)
