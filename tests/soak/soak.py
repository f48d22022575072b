#!/usr/bin/env python3
"""Real daemons under a punisher: do they go on, and how fast?

A fleet of gossamer-peer processes, each on a host of its own in gossamer lab
and restarted when it dies, as systemd would; beside it a punisher that kills,
freezes, cuts off, slows down, fills disks, damages checkpoints, lets
certificates expire and kills the topology service, one fault at a time, drawn
from a seed.  Everybody is behind certificates.  Nobody helps the fleet.  At the end the faults stop, everybody must be there again, and the
fleet must stop in good order.  Runs as root.

  tests/soak/soak.py --bin build/release/bin --faults 500 --every 2
  tests/soak/soak.py --bin build/release/bin --peers 16 --calm 60 --faults 20 --every 29
  tests/soak/soak.py --bin build/release/bin --hours 72          # for days

Leaves report.json and report.md in --out, beside the fleet's own folder.
Exit code: 0 if nothing was violated, else 1.
"""

import argparse
import collections
import datetime
import glob
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """
name: "soak" peers: {peers} rounds: 1000000000 seed: {seed}
mixing {{ graph: "{graph}" codec: "innov-int8" overlap_steps: 1 deadline: "auto" }}
game {{ synthetic {{ parameters: {parameters} step_time: "{step}" pace: "sleep"
                    heterogeneity: 0.1 }} }}
checkpoint {{ every: 200 keep: 2 }}
evaluation {{ every: 1000000 }}
"""
SCENARIO = 'name: "soak" hosts: {peers} link {{ rtt: "{rtt}" rate: "200mbit" }}'
SERVICE_PORT, PEER_PORT = 7700, 7800
RESTART_AFTER = 1.0  # seconds, as a supervisor waits
LIMIT = 120  # seconds that no wait here may exceed


# On a host: what systemd would do.


def supervise(bin_, folder, name, argv):
    """Runs argv until it ends well, or the host's stop file is there."""
    with open(f"{folder}/hosts/{name}.jsonl", "a", buffering=1) as log, \
            open(f"{folder}/hosts/{name}.log", "ab") as out:
        while True:
            began = time.time()
            code = subprocess.call([os.path.join(bin_, argv[0]), *argv[1:]],
                                   stdout=out, stderr=out)
            log.write(json.dumps({"began": began, "ended": time.time(),
                                  "code": code}) + "\n")
            if code == 0 or os.path.exists(f"{folder}/hosts/stop"):
                return code
            time.sleep(RESTART_AFTER)


def host(bin_, folder):
    rank = int(os.environ["LAB_RANK"])
    address = os.environ["LAB_ADDRESS"]
    service = f"{os.environ['LAB_HOSTS'].split(',')[0]}:{SERVICE_PORT}"
    config = f"{folder}/config.textproto"
    if rank == 0 and os.fork() == 0:
        sys.exit(supervise(bin_, folder, "topology", [
            "gossamer-topology", "--config", config, "--listen", service,
            "--state", f"{folder}/topology", "--certs",
            f"{folder}/certs/topology", "--exit-when-finished"]))
    return supervise(bin_, folder, f"peer-{rank}", [
        "gossamer-peer", "--topology", service, "--config", config, "--id",
        str(rank + 1), "--listen", f"{address}:{PEER_PORT}", "--run-dir",
        f"{folder}/run", "--resume", "--certs",
        f"{folder}/certs/peer-{rank + 1}"])


# Outside: the fleet as the punisher sees it.


class Fleet:
    def __init__(self, arguments, folder):
        self.bin, self.folder = arguments.bin, folder
        self.peers = arguments.peers
        os.makedirs(f"{folder}/hosts")
        self.write("config.textproto", CONFIG.format(
            peers=arguments.peers, seed=arguments.seed, graph=arguments.graph,
            parameters=arguments.parameters, step=arguments.step))
        self.write("scenario.textproto", SCENARIO.format(
            peers=arguments.peers, rtt=arguments.rtt))
        self.certs("init", "--run", "soak")
        self.certs("issue", "--fleet", str(self.peers), "--out",
                   f"{folder}/certs")
        self.mounts = []
        for rank in range(self.peers):
            disk = f"{folder}/run/peer-{rank}"
            os.makedirs(disk)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "soak",
                            disk], check=True)
            self.mounts.append(disk)
        self.lab = subprocess.Popen(
            [os.path.join(self.bin, "gossamer"), "lab", "--scenario",
             f"{folder}/scenario.textproto", "--exec",
             f"exec {sys.executable} {os.path.abspath(__file__)} --host "
             f"--bin {self.bin} --out {folder}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(f"{folder}/lab.log", "wb"))

    def certs(self, command, *argv):
        subprocess.run([os.path.join(self.bin, "gossamer"), "certs", command,
                        "--ca", f"{self.folder}/ca", *argv], check=True,
                       stdout=subprocess.DEVNULL, timeout=LIMIT)

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as f:
            f.write(text)

    def close(self):
        self.lab.send_signal(signal.SIGTERM)
        try:
            self.lab.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.lab.kill()
            self.lab.wait()
        for disk in self.mounts:
            keep = disk + ".kept"
            shutil.copytree(disk, keep, ignore=shutil.ignore_patterns("full"))
            subprocess.run(["umount", disk], check=True)
            os.rmdir(disk)
            os.rename(keep, disk)

    def pid(self, program, rank=None):
        """Of the process on this machine; None while it is down."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as f:
                    words = f.read().decode().split("\0")
            except OSError:
                continue
            if os.path.basename(words[0]) != program or \
                    f"{self.folder}/config.textproto" not in words:
                continue
            if rank is None or words[words.index("--id") + 1] == str(rank + 1):
                return int(path.split("/")[2])
        return None

    def address(self, rank):
        return f"10.77.0.{rank + 1}"

    def inside(self, rank, *argv):
        """Runs a command in the network of a host."""
        pid = self.pid("gossamer-peer", rank)
        if pid is None:
            return None
        return subprocess.run(["nsenter", "-t", str(pid), "-n", *argv],
                              capture_output=True, text=True, timeout=LIMIT)

    def undo(self, rank, *argv):
        """The same, though the peer may be down for the moment."""
        end = time.time() + LIMIT
        while self.inside(rank, *argv) is None and time.time() < end:
            time.sleep(0.2)

    def ask(self, question, *argv):
        """What the service answers an operator; None if it does not."""
        for rank in range(self.peers):
            done = self.inside(rank, os.path.join(self.bin, "gossamer"),
                               question, "--topology",
                               f"{self.address(0)}:{SERVICE_PORT}", "--certs",
                               f"{self.folder}/certs/operator", *argv)
            if done is not None and done.returncode == 0:
                return done.stdout
        return None

    def status(self):
        answer = self.ask("status", "--json")
        return None if answer is None else json.loads(answer)

    def stop(self):
        self.write("hosts/stop", "")
        return self.ask("stop") is not None

    def rounds(self, rank, last=None):
        """[(time, round)] of a peer's life so far; of its last so many bytes."""
        result = []
        try:
            with open(f"{self.folder}/run/peer-{rank}/metrics.jsonl", "rb") as f:
                if last is not None:
                    f.seek(max(0, f.seek(0, os.SEEK_END) - last))
                for line in f:
                    try:
                        m = json.loads(line)
                        at = datetime.datetime.fromisoformat(
                            m["finished"].replace("Z", "+00:00"))
                        result.append((at.timestamp(), m["round"]))
                    except (ValueError, KeyError, TypeError):
                        pass  # a line that a crash cut
        except OSError:
            pass
        return result


# Faults: each begins, lasts, and ends by itself.  A function returns when it
# is over, and what it did; None: its victim was not there.


def kill(fleet, draw, rank):
    pid = fleet.pid("gossamer-peer", rank)
    if pid is None:
        return None
    os.kill(pid, signal.SIGKILL)
    return {"ranks": [rank], "gone": True}


def freeze(fleet, draw, rank):
    pid = fleet.pid("gossamer-peer", rank)
    if pid is None:
        return None
    os.kill(pid, signal.SIGSTOP)
    time.sleep(draw.uniform(0.5, 6))
    os.kill(pid, signal.SIGCONT)
    return {"ranks": [rank]}


def blackhole(fleet, draw, rank, others):
    """Nothing that a host sends to these arrives."""
    def routes(what):
        return "sh", "-c", "; ".join(
            f"ip route {what} blackhole {fleet.address(o)}" for o in others)
    done = fleet.inside(rank, *routes("add"))
    if done is None or done.returncode != 0:
        return False
    time.sleep(draw.uniform(1, 6))
    fleet.undo(rank, *routes("del"))
    return True


def one_way(fleet, draw, rank):
    other = (rank + 1) % fleet.peers
    return blackhole(fleet, draw, rank, [other]) and {"ranks": [rank, other]}


def cut_off(fleet, draw, rank):
    others = [r for r in range(fleet.peers) if r != rank]
    return blackhole(fleet, draw, rank, others) and {"ranks": [rank]}


def slow_link(fleet, draw, rank):
    shown = fleet.inside(rank, "ip", "-o", "route", "get",
                         fleet.address((rank + 1) % fleet.peers))
    if shown is None or " dev " not in shown.stdout:
        return None
    device = shown.stdout.split(" dev ")[1].split()[0]
    done = fleet.inside(rank, "tc", "qdisc", "add", "dev", device, "root",
                        "tbf", "rate", "300kbit", "burst", "16kbit",
                        "latency", "400ms")
    if done is None or done.returncode != 0:
        return None
    time.sleep(draw.uniform(1, 6))
    fleet.undo(rank, "tc", "qdisc", "del", "dev", device, "root")
    return {"ranks": [rank]}


def full_disk(fleet, draw, rank):
    path = f"{fleet.folder}/run/peer-{rank}/full"
    try:
        with open(path, "wb") as f:
            while True:
                f.write(bytes(1 << 20))
    except OSError:
        pass
    time.sleep(draw.uniform(1, 6))
    os.unlink(path)
    # It trains on, but its log has a hole that looks like a stall.
    return {"ranks": [rank]}


def damaged_checkpoint(fleet, draw, rank):
    """The newest one, found when its peer comes back."""
    states = glob.glob(f"{fleet.folder}/run/peer-{rank}/checkpoints/round-*/"
                       "state.safetensors")
    pid = fleet.pid("gossamer-peer", rank)
    if not states or pid is None:
        return None
    os.kill(pid, signal.SIGKILL)
    newest = max(states, key=os.path.getmtime)
    with open(newest, "r+b") as f:
        f.seek(draw.randrange(os.path.getsize(newest)))
        f.write(b"\xa5\x5a\xa5")
    return {"ranks": [rank], "gone": True}


def kill_service(fleet, draw, rank):
    pid = fleet.pid("gossamer-topology")
    if pid is None:
        return None
    os.kill(pid, signal.SIGKILL)
    return {"ranks": []}


def expired_certificate(fleet, draw, rank):
    """Somebody renews it too late.  An open connection goes by the certificate
    that it began with, so its peer begins another life with one that ends
    soon."""
    pid = fleet.pid("gossamer-peer", rank)
    if pid is None:
        return None
    whose = ["--id", str(rank + 1), "--out",
             f"{fleet.folder}/certs/peer-{rank + 1}"]
    life = 5
    fleet.certs("issue", *whose, "--for", f"{life}s")
    os.kill(pid, signal.SIGKILL)
    time.sleep(life + draw.uniform(2, 6))
    fleet.certs("issue", *whose)
    return {"ranks": [rank], "gone": True}


FAULTS = [kill, kill, freeze, one_way, cut_off, slow_link, full_disk,
          damaged_checkpoint, kill_service, expired_certificate]


class Soak:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.fleet = Fleet(arguments, folder)
        self.draw = random.Random(arguments.seed)
        self.kinds = [f for f in FAULTS if not arguments.kinds or
                      f.__name__ in arguments.kinds.split(",")]
        self.faults, self.violations = [], []

    def say(self, text):
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)

    def violation(self, text):
        self.violations.append(text)
        self.say(f"VIOLATION: {text}")

    def gathered(self, limit):
        """Everybody there, and moving, within so many seconds; how long it
        took."""
        began = time.time()
        last = None
        while time.time() - began < limit:
            status = self.fleet.status()
            if status is not None and \
                    len(status["peers"]) == self.arguments.peers:
                rounds = [p["round"] for p in status["peers"]]
                fresh = all(p["seconds_since_heartbeat"] < 3
                            for p in status["peers"])
                moving = last and all(a > b for a, b in zip(rounds, last))
                if fresh and moving and max(rounds) - min(rounds) < 100:
                    return time.time() - began
                last = rounds
            time.sleep(1)
        return None

    def progress(self, total):
        done = len(self.faults)
        left = (total - done) * (self.arguments.every + 1.5)
        kinds = collections.Counter(f["kind"] for f in self.faults)
        self.say(f"{done}/{total} faults, about {left / 60:.0f} min left: " +
                 ", ".join(f"{k} {n}" for k, n in sorted(kinds.items())))

    def punish(self):
        end = time.time() + 3600 * self.arguments.hours \
            if self.arguments.hours else None
        total = self.arguments.faults
        looked = time.time()
        while (time.time() < end) if end else len(self.faults) < total:
            fault = self.draw.choice(self.kinds)
            rank = self.draw.randrange(self.arguments.peers)
            began = time.time()
            what = fault(self.fleet, self.draw, rank)
            if what is not None:
                self.faults.append({"kind": fault.__name__, "began": began,
                                    "ended": time.time(), **what})
            if time.time() - looked > 20:
                looked = time.time()
                self.progress(total if not end else len(self.faults) + 1)
                self.look()
            time.sleep(max(0, began + self.arguments.every - time.time()))

    def look(self):
        """Nobody may stand still for long, whatever happens to others."""
        now = time.time()
        for rank in range(self.arguments.peers):
            hurt = [f["ended"] for f in self.faults if rank in f["ranks"]]
            rounds = self.fleet.rounds(rank, last=4096)
            since = max([rounds[-1][0] if rounds else 0, *hurt, self.began])
            if now - since > LIMIT:
                self.violation(f"the peer of rank {rank} has stood still for "
                               f"{now - since:.0f} s")

    def run(self):
        try:
            self.began = time.time()
            if self.gathered(LIMIT) is None:
                raise RuntimeError("the fleet did not begin; see " +
                                   self.fleet.folder)
            self.say(f"{self.arguments.peers} peers train; calm for "
                     f"{self.arguments.calm} s")
            calm_from = time.time()
            time.sleep(self.arguments.calm)
            self.began = time.time()
            self.punish()
            punished_to = time.time()
            took = self.gathered(LIMIT)
            if took is None:
                self.violation("not everybody came back after the faults")
            else:
                self.say(f"everybody is there again after {took:.0f} s")
            if not self.fleet.stop():
                self.violation("the fleet cannot be asked to stop")
            try:
                code = self.fleet.lab.wait(timeout=LIMIT)
                if code != 0:
                    self.violation(f"the fleet ended with {code}, not in good "
                                   "order; see lab.log")
            except subprocess.TimeoutExpired:
                self.violation("the fleet did not stop")
            return self.report(calm_from, self.began, punished_to, took)
        finally:
            self.fleet.close()

    def rate(self, begin, end):
        """Rounds per second of a peer that nothing is done to, and its longest
        stall: median and largest over peers."""
        rates, stalls = [], []
        for rank in range(self.arguments.peers):
            hurt = [(f["began"], f["ended"] + (10 if f.get("gone") else 5))
                    for f in self.faults if rank in f["ranks"]]
            times = [t for t, _ in self.fleet.rounds(rank) if begin <= t < end]
            seconds = rounds = 0
            longest = 0
            for a, b in zip(times, times[1:]):
                if any(a < h_end and b > h_begin for h_begin, h_end in hurt):
                    continue
                seconds += b - a
                rounds += 1
                longest = max(longest, b - a)
            if seconds > 0:
                rates.append(rounds / seconds)
                stalls.append(longest)
        return statistics.mean(rates), max(stalls)

    def locked_out(self, name, ended):
        """Who has no valid certificate when it starts says so and ends."""
        return any(f["kind"] == "expired_certificate" and
                   name == f"peer-{f['ranks'][0]}" and
                   f["began"] < ended < f["ended"] + 10 for f in self.faults)

    def deaths(self):
        """Of processes that nobody killed or locked out."""
        codes = collections.Counter()
        for path in glob.glob(f"{self.fleet.folder}/hosts/*.jsonl"):
            name = os.path.basename(path)[:-6]
            with open(path) as f:
                for line in f:
                    life = json.loads(line)
                    if life["code"] not in (0, -signal.SIGKILL) and \
                            not self.locked_out(name, life["ended"]):
                        codes[f"{name}: {life['code']}"] += 1
        return codes

    def report(self, calm_from, calm_to, punished_to, took):
        calm, calm_stall = self.rate(calm_from, calm_to)
        kept, stall = self.rate(calm_to, punished_to)
        for death, times in self.deaths().items():
            self.violation(f"{death} ended by itself, {times} times")
        kinds = collections.Counter(f["kind"] for f in self.faults)
        report = {"peers": self.arguments.peers, "seed": self.arguments.seed,
                  "faults": dict(sorted(kinds.items())),
                  "faults_in_all": len(self.faults),
                  "minutes": (punished_to - calm_to) / 60,
                  "seconds_between_faults": self.arguments.every,
                  "calm_rounds_per_second": calm,
                  "calm_longest_round_seconds": calm_stall,
                  "rounds_per_second": kept,
                  "throughput_kept": kept / calm,
                  "longest_round_seconds": stall,
                  "seconds_until_gathered": took,
                  "violations": self.violations}
        self.fleet.write("report.json", json.dumps(report, indent=2) + "\n")
        self.fleet.write("faults.jsonl", "".join(
            json.dumps(f) + "\n" for f in self.faults))
        lines = ["# soak", "", "| what | |", "| --- | --- |"]
        lines += [f"| {key.replace('_', ' ')} | {value} |"
                  for key, value in report.items()]
        self.fleet.write("report.md", "\n".join(lines) + "\n")
        self.say(f"{len(self.faults)} faults; survivors kept "
                 f"{kept / calm:.3f} of {calm:.2f} rounds/s; their longest "
                 f"round {stall:.2f} s (calm {calm_stall:.2f} s); "
                 f"{len(self.violations)} violations; {self.fleet.folder}")
        return 1 if self.violations else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--out", help="folder that is made for all files")
    parser.add_argument("--peers", type=int, default=16)
    parser.add_argument("--graph", default="torus")
    parser.add_argument("--parameters", type=int, default=20000)
    parser.add_argument("--step", default="40ms")
    parser.add_argument("--rtt", default="10ms")
    parser.add_argument("--calm", type=float, default=30,
                        help="seconds without faults, to compare with")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--hours", type=float, help="instead of --faults")
    parser.add_argument("--every", type=float, default=5,
                        help="seconds from one fault to the next, at least")
    parser.add_argument("--kinds", help="of faults, as in kill,freeze; "
                        "without: " + ", ".join(sorted({f.__name__ for f in
                                                        FAULTS})))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--host", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set((arguments.kinds or "kill").split(",")) - \
        {f.__name__ for f in FAULTS}
    if unknown:
        parser.error(f"--kinds: there is no fault {', '.join(unknown)}")
    arguments.bin = os.path.abspath(arguments.bin)
    if arguments.host:
        return host(arguments.bin, arguments.out)
    if os.geteuid() != 0:
        parser.error("makes networks and mounts disks: run it as root")
    folder = arguments.out or tempfile.mkdtemp(prefix="gossamer-soak-")
    if os.path.exists(f"{folder}/hosts"):
        parser.error(f"--out {folder} holds another soak")
    return Soak(arguments, os.path.abspath(folder)).run()


if __name__ == "__main__":
    sys.exit(main())
