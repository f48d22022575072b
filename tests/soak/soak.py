#!/usr/bin/env python3
"""Real daemons under a punisher: whether they keep training, and how fast.

Each gossamer-peer of a fleet runs on a host of its own in gossamer lab, and is
restarted when it dies, as systemd would do.  A punisher kills, freezes, cuts off,
splits, slows down, fills disks, replaces them, damages checkpoints, lets
certificates expire and kills the topology service, one fault at a time, drawn from
a seed.  All programs are behind certificates.  Nobody helps the fleet.  At the end
the faults stop.  Then all peers must be back and agree about as well as without
faults, no daemon may have grown, the fleet must stop in good order, and its files
must be whole (health.py).  The peer of the last rank is never killed, and the
service not in every second hour of --hours: slow growth shows only in a process
that lives long.  Runs as root.

  tests/soak/soak.py --bin build/release/bin --faults 500 --every 2
  tests/soak/soak.py --bin build/release/bin --peers 16 --calm 60 --faults 20 --every 29
  tests/soak/soak.py --bin build/release/bin --hours 72          # for days
  tests/soak/soak.py --bin build/release/bin --every 29 --keep 0.977 --stall 1

Kinds of faults come from a shuffled deck, so that 12 cover all of them.  The logs
of peers are read while they run, since a peer keeps only --log-mb of its log.

Leaves report.json and report.md in --out, beside the fleet's own folder.
SIGTERM ends the faults early, so that the checks and the report follow; ^C, or
a second SIGTERM, ends all at once.
Exit code: 0 if nothing was violated, else 1.
"""

import argparse
import collections
import contextlib
import datetime
import glob
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import faults  # noqa: E402  (beside this file)
import health  # noqa: E402

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
LIMIT = 120  # seconds, a bound on every wait
ISSUED_KEPT = 100  # certificates
# The size of a host's log, and of its list of starts; twice that stays.
LOG_BYTES = 4 << 20


# On a host: what systemd would do.


def shorten(path):
    """Begins a log anew that is too long; a program that appends to it goes on.
    """
    if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:
        shutil.copyfile(path, path + ".1")
        os.truncate(path, 0)


def keep_short(path):
    while True:
        time.sleep(60)
        shorten(path)


def supervise(bin_, folder, name, argv):
    """Runs argv again and again until it ends well, or the host's stop file is
    there."""
    log, lives = (f"{folder}/hosts/{name}.{end}" for end in ("log", "jsonl"))
    threading.Thread(target=keep_short, args=(log,), daemon=True).start()
    while True:
        began = time.time()
        with open(log, "ab") as out:
            code = subprocess.call([os.path.join(bin_, argv[0]), *argv[1:]],
                                   stdout=out, stderr=out)
        shorten(log)
        if os.path.exists(lives) and os.path.getsize(lives) > LOG_BYTES:
            os.replace(lives, lives + ".1")  # the name that Tail expects
        with open(lives, "a") as f:
            f.write(json.dumps({"began": began, "ended": time.time(),
                                "code": code}) + "\n")
        if code == 0 or os.path.exists(f"{folder}/hosts/stop"):
            return code
        time.sleep(RESTART_AFTER)


def host(arguments):
    bin_, folder = arguments.bin, arguments.out
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
        f"{folder}/run", "--resume", "--log-limit", str(arguments.log_mb),
        "--certs", f"{folder}/certs/peer-{rank + 1}"])


# The fleet as the punisher outside of it sees it.


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
        self.not_undone = []  # what a fault has left behind, in words
        self.mounts = []
        for rank in range(self.peers):
            disk = f"{folder}/run/peer-{rank + 1}"
            os.makedirs(disk)
            subprocess.run(["mount", "-t", "tmpfs", "-o",
                            f"size={arguments.disk_mb}m", "soak", disk],
                           check=True)
            self.mounts.append(disk)
        # A run's folder has it, and checkpoint verify asks for one.
        shutil.copy(f"{folder}/config.textproto", f"{folder}/run")
        self.lab = subprocess.Popen(
            [os.path.join(self.bin, "gossamer"), "lab", "--scenario",
             f"{folder}/scenario.textproto", "--exec",
             f"exec {sys.executable} {os.path.abspath(__file__)} --host "
             f"--bin {self.bin} --out {folder} --log-mb {arguments.log_mb}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(f"{folder}/lab.log", "wb"))

    def certs(self, command, *argv):
        subprocess.run([os.path.join(self.bin, "gossamer"), "certs", command,
                        "--ca", f"{self.folder}/ca", *argv], check=True,
                       stdout=subprocess.DEVNULL, timeout=LIMIT)
        issued = glob.glob(f"{self.folder}/ca/issued/*")
        # The authority needs them to revoke by number, which this program does
        # not do.
        for path in sorted(issued, key=os.path.getmtime)[:-ISSUED_KEPT]:
            os.unlink(path)

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
        """Returns the process id on this machine; None while the program is
        down."""
        config = f"{self.folder}/config.textproto"
        for daemon, pid, words in health.daemons(config):
            if daemon == program and \
                    (rank is None or
                     words[words.index("--id") + 1] == str(rank + 1)):
                return pid
        return None

    def victim(self, rank=None, program="gossamer-peer"):
        pid = self.pid(program, rank)
        if pid is None:
            raise faults.Gone(program)
        return pid

    def send(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError as no:
            raise faults.Gone(str(no)) from None

    def said(self, rank, since=None):
        """Returns the length of a host's log or, if an earlier length is given,
        what has come since."""
        with open(f"{self.folder}/hosts/peer-{rank}.log", "rb") as f:
            length = f.seek(0, os.SEEK_END)
            if since is None:
                return length
            f.seek(since if since <= length else 0)
            return f.read().decode(errors="replace")

    def address(self, rank):
        return f"10.77.0.{rank + 1}"

    def inside(self, rank, *argv):
        """Runs a command in the network of a host."""
        pid = self.victim(rank)
        try:
            return subprocess.run(["nsenter", "-t", str(pid), "-n", *argv],
                                  capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired as late:
            raise faults.Gone(str(late)) from None

    @contextlib.contextmanager
    def changed(self, rank, change, undo):
        """While this lasts, a host's network is changed; two shell commands
        begin and end it."""
        self.victim(rank)
        try:
            done = self.inside(rank, "sh", "-c", change)
            if done.returncode != 0:
                raise faults.Gone(done.stderr)
            yield
        finally:
            self.undo(rank, undo)

    def undo(self, rank, command):
        """Undoes a fault, though the peer may be down for the moment."""
        end = time.time() + LIMIT
        while True:
            why = f"rank {rank} has been down"
            with contextlib.suppress(faults.Gone):
                done = self.inside(rank, "sh", "-c", command)
                if done.returncode == 0:
                    return
                why = done.stderr.strip()
            if time.time() > end:
                self.not_undone.append(f"on the host of rank {rank}, for "
                                       f"{LIMIT} s: {command}: {why}")
                return
            time.sleep(0.2)

    def ask(self, question, *argv):
        """Returns the service's answer to an operator; None if there is none.
        """
        for rank in range(self.peers):
            with contextlib.suppress(faults.Gone):
                done = self.inside(rank, os.path.join(self.bin, "gossamer"),
                                   question, "--topology",
                                   f"{self.address(0)}:{SERVICE_PORT}",
                                   "--certs", f"{self.folder}/certs/operator",
                                   *argv)
                if done.returncode == 0:
                    return done.stdout
        return None

    def status(self):
        answer = self.ask("status", "--json")
        return None if answer is None else json.loads(answer)

    def stop(self):
        self.write("hosts/stop", "")
        return self.ask("stop") is not None


class Tail:
    """The lines that are added to a file.  At its limit a file becomes FILE.1
    and begins anew.  The next process removes a line that a crash has cut, so
    nothing counts before its end of line.  None: a whole FILE came and went
    unread."""

    def __init__(self, path):
        self.path, self.file, self.at = path, None, 0

    def lines(self):
        while True:
            if self.file is None:
                try:
                    self.file, self.at = open(self.path, "rb"), 0
                except OSError:
                    return
            self.at = min(self.at, os.fstat(self.file.fileno()).st_size)
            self.file.seek(self.at)
            for line in self.file:
                if not line.endswith(b"\n"):
                    break
                self.at += len(line)
                yield line
            try:
                if os.path.samestat(os.stat(self.path),
                                    os.fstat(self.file.fileno())):
                    return
                unread = not os.path.samestat(os.stat(self.path + ".1"),
                                              os.fstat(self.file.fileno()))
            except OSError:
                # Between the renaming and the new file: the next look finds it.
                return
            self.close()
            if unread:
                yield None

    def close(self):
        if self.file is not None:
            self.file.close()
        self.file = None


class Pace:
    """A peer's rounds per second and its longest round, in each stretch of the
    run, while no fault concerns it.  It keeps sums, so that a run may last for
    days."""

    def __init__(self, path):
        self.tail = Tail(path)
        self.last = 0  # when the last round ended
        self.unread = 0  # times that a whole file was missed
        # Stretches (from, to) under a fault, in order.
        self.hurt = collections.deque()
        self.back = 0.0  # longest time from a `to` to the end of a round
        self.sums = collections.defaultdict(lambda: [0.0, 0, 0.0])

    def harm(self, fault):
        self.hurt.append((fault["began"], fault["ended"] +
                          (10 if fault.get("gone") else 5)))

    def read(self, stretches):
        """Reads new rounds.  `stretches` is [(name, begin, end)]. Returns the
        longest round that counted, (from, to)."""
        longest = (0, 0)
        for line in self.tail.lines():
            if line is None:
                self.last, self.unread = 0, self.unread + 1
                continue
            try:
                at = datetime.datetime.fromisoformat(
                    json.loads(line)["finished"].replace("Z", "+00:00"))
            except (ValueError, KeyError, TypeError):
                continue  # a full disk has cut the line
            a, b = self.last, at.timestamp()
            self.last = b
            while self.hurt and self.hurt[0][1] <= a:
                self.hurt.popleft()
            hurt = [end for begin, end in self.hurt if a < end and b > begin]
            if hurt:
                self.back = max(self.back, b - max(hurt))
                continue
            for name, begin, end in stretches:
                if begin <= a and b < end:
                    sums = self.sums[name]
                    sums[0] += b - a
                    sums[1] += 1
                    sums[2] = max(sums[2], b - a)
                    longest = max(longest, (a, b), key=lambda r: r[1] - r[0])
        return longest


class Soak:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.fleet = Fleet(arguments, folder)
        self.draw = random.Random(arguments.seed)
        self.deck = faults.Deck(
            [f for f in faults.FAULTS if not arguments.kinds or
             f.__name__ in arguments.kinds.split(",")], self.draw)
        self.spared = arguments.peers - 1  # rank
        self.paces = [Pace(f"{folder}/run/peer-{rank}/metrics.jsonl")
                      for rank in range(arguments.peers)]
        self.stretches = []  # (name, begin, end)
        self.kinds = collections.Counter()
        self.recent = collections.deque(maxlen=100)  # (kind, began)
        # Longest round after each kind.
        self.longest = collections.defaultdict(float)
        # Expiry times of certificates.
        self.expiries = collections.deque(maxlen=100)
        self.shut_out = 0  # expiries that a peer has noticed
        self.damaged = set()  # (rank, round) of checkpoints
        self.lives = {name: Tail(f"{folder}/hosts/{name}.jsonl") for name in (
            "topology", *(f"peer-{r}" for r in range(arguments.peers)))}
        self.deaths = collections.Counter()  # without a fault
        self.still = set()  # ranks that do not move
        self.sizes = health.Sizes(f"{folder}/config.textproto", self.spared)
        self.distance = self.undisturbed = None
        self.violations = []
        self.asked_to_end = False
        signal.signal(signal.SIGTERM, self.on_signal)

    def on_signal(self, number, _):
        if self.asked_to_end:
            sys.exit(128 + number)
        self.asked_to_end = True
        self.say("no more faults; the checks follow (once more: end at once)")

    def say(self, text):
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)

    def violation(self, text):
        self.violations.append(text)
        self.say(f"VIOLATION: {text}")

    def gathered(self, limit):
        """Waits until all peers are there and moving, for so many seconds at
        most; returns how long it took."""
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

    def progress(self, end):
        done = self.kinds.total()
        left = end - time.time() if end else \
            (self.arguments.faults - done) * (self.arguments.every + 1.5)
        self.say(f"{done} faults, about {left / 60:.0f} min left: " +
                 ", ".join(f"{k} {n}" for k, n in sorted(self.kinds.items())))

    def note(self, fault):
        self.kinds[fault["kind"]] += 1
        self.recent.append((fault["kind"], fault["began"]))
        if "shut_out" in fault:
            self.expiries.append(fault)
            self.shut_out += fault["shut_out"]
        if "damaged" in fault:
            self.damaged.add((fault["ranks"][0] + 1, fault["damaged"]))
        for rank in fault["ranks"]:
            self.paces[rank].harm(fault)
        with open(f"{self.fleet.folder}/faults.jsonl", "a") as f:
            f.write(json.dumps(fault) + "\n")

    def begin(self, name):
        """Begins a stretch of the run, which lasts until the next one begins.
        """
        now = time.time()
        self.end()
        self.stretches.append((name, now, float("inf")))

    def end(self):
        if self.stretches:
            name, begin, _ = self.stretches[-1]
            self.stretches[-1] = (name, begin, time.time())

    def read(self):
        for pace in self.paces:
            a, b = pace.read(self.stretches)
            before = [kind for kind, began in self.recent if began < b]
            if before and b > self.stretches[-1][1]:
                self.longest[before[-1]] = max(self.longest[before[-1]], b - a)

    def rest(self, until):
        """Waits until a time, and reads the logs meanwhile, since peers keep
        them for a while only."""
        while time.time() < until:
            self.read()
            time.sleep(max(0, min(5, until - time.time())))

    def quiet(self, end):
        """Returns whether the service is spared in this hour, as in the last
        one."""
        return self.arguments.hours and self.arguments.hours >= 2 and \
            (end - time.time()) // 3600 % 2 == 0

    def punish(self):
        end = time.time() + 3600 * self.arguments.hours \
            if self.arguments.hours else None
        looked = time.time()
        while not self.asked_to_end and (
                time.time() < end if end else
                self.kinds.total() < self.arguments.faults):
            kind = self.deck.take(but=faults.kill_service if self.quiet(end)
                                  else None)
            rank = self.draw.randrange(self.arguments.peers -
                                       (kind in faults.ENDS_A_PEER))
            began = time.time()
            self.strike(kind, rank)
            if time.time() - looked > 20:
                looked = time.time()
                self.progress(end)
                self.look()
            self.rest(began + self.arguments.every)

    def strike(self, kind, rank):
        began = time.time()
        what = faults.happen(kind, self.fleet, self.draw, rank)
        if what:
            self.note({"kind": kind.__name__, "began": began,
                       "ended": time.time(), **what})
        elif time.time() - began > 1:  # its victim left on the way
            self.paces[rank].harm({"began": began, "ended": time.time()})
        if not what or "kind" in what:
            self.deck.put_back(kind)
        for left in self.fleet.not_undone:
            self.violation(f"{kind.__name__} could not be undone: {left}")
        self.fleet.not_undone.clear()

    def look(self):
        """Reports peers that stand still for long, whatever happens to others.
        """
        self.read()
        self.bury()
        self.sizes.look("punished")
        now = time.time()
        for rank, pace in enumerate(self.paces):
            since = max(pace.last, self.began,
                        *(end for _, end in pace.hurt))
            if now - since <= LIMIT:
                self.still.discard(rank)
            elif rank not in self.still:
                self.still.add(rank)
                self.violation(f"the peer of rank {rank} has stood still for "
                               f"{now - since:.0f} s")

    def know(self):
        """Learns the usual rates and sizes, in the calm stretch."""
        until = time.time() + self.arguments.calm
        while time.time() < until:
            self.rest(min(until, time.time() + 5))
            self.sizes.look("calm")
        self.read()

    def check_agreement(self):
        """Checks that peers agree in the end: one that came back with other
        parameters is drawn to the others."""
        end = time.time() + LIMIT
        bound = None
        while bound is None or self.distance is None or self.distance > bound:
            status = self.fleet.status()
            if status is not None:
                if bound is None:
                    self.undisturbed = health.undisturbed_distance(
                        self.fleet.bin, self.fleet.folder,
                        max(p["round"] for p in status["peers"]))
                    bound = self.arguments.consensus * self.undisturbed
                    end = time.time() + LIMIT
                self.distance = status["consensus_distance"]
            if time.time() > end:
                self.violation(f"peers are {self.distance} apart, more than "
                               f"{bound}, for {LIMIT} s after the faults")
                return
            time.sleep(2)

    def check_sizes(self):
        self.sizes.look("end")
        for what in self.sizes.grown(self.arguments.memory):
            self.violation(what)

    def check_checkpoints(self):
        for damage in health.damaged_checkpoints(
                self.fleet.bin, f"{self.fleet.folder}/run", self.damaged):
            self.violation(f"checkpoint: {damage}")

    def check(self, what):
        """Makes a check.  One that cannot be made must not keep the report of
        days from being written."""
        try:
            what()
        except (OSError, ValueError, subprocess.SubprocessError) as no:
            self.violation(f"{what.__name__}: {no}")

    def run(self):
        try:
            self.began = time.time()
            if self.gathered(LIMIT) is None:
                raise RuntimeError("the fleet did not begin; see " +
                                   self.fleet.folder)
            self.say(f"{self.arguments.peers} peers train; calm for "
                     f"{self.arguments.calm} s")
            self.begin("calm")
            self.know()
            self.began = time.time()
            self.begin("punished")
            self.punish()
            self.end()
            self.read()
            took = self.gathered(LIMIT)
            if took is None:
                self.violation("not everybody came back after the faults")
            else:
                self.say(f"everybody is there again after {took:.0f} s")
            self.check(self.check_agreement)
            self.check(self.check_sizes)
            if not self.fleet.stop():
                self.violation("the fleet cannot be asked to stop")
            try:
                code = self.fleet.lab.wait(timeout=LIMIT)
                if code != 0:
                    self.violation(f"the fleet ended with {code}, not in good "
                                   "order; see lab.log")
            except subprocess.TimeoutExpired:
                self.violation("the fleet did not stop")
            self.check(self.check_checkpoints)
            self.read()
            self.bury()
            return self.report(took)
        finally:
            for pace in self.paces:
                pace.tail.close()  # before their disks go
            self.fleet.close()

    def rate(self, name):
        """Returns the rounds per second and the longest round of peers without
        a fault: mean and largest over peers."""
        sums = [pace.sums[name] for pace in self.paces if pace.sums[name][1]]
        if not sums:
            self.violation(f"no round of the {name} stretch could be counted")
            return math.nan, math.nan
        return (statistics.mean(n / seconds for seconds, n, _ in sums),
                max(longest for _, _, longest in sums))

    def locked_out(self, name, ended):
        """Returns whether a process ended because it had no valid certificate
        when it started."""
        return any(name == f"peer-{f['ranks'][0]}" and
                   f["began"] < ended < f["ended"] + 10 for f in self.expiries)

    def bury(self):
        """Counts processes that ended by themselves, neither killed nor locked
        out."""
        for name, tail in self.lives.items():
            for line in tail.lines():
                if line is None:
                    self.violation(f"lives of {name} came and went unread")
                    continue
                life = json.loads(line)
                if life["code"] not in (0, -signal.SIGKILL) and \
                        not self.locked_out(name, life["ended"]):
                    self.deaths[f"{name}: {life['code']}"] += 1

    def report(self, took):
        calm, calm_stall = self.rate("calm")
        kept, stall = self.rate("punished")
        for death, times in self.deaths.items():
            self.violation(f"{death} ended by itself, {times} times")
        expired = self.kinds[faults.expired_certificate.__name__]
        if expired and not self.shut_out:
            self.violation("no peer was shut out, though a certificate expired "
                           f"{expired} times")
        if kept < self.arguments.keep * calm:
            self.violation(f"survivors kept {kept / calm:.3f} of their speed, "
                           f"less than {self.arguments.keep}")
        if stall > self.arguments.stall:
            self.violation(f"a survivor's round took {stall:.2f} s, more than "
                           f"{self.arguments.stall} s")
        _, begin, end = self.stretches[-1]
        n = self.kinds.total()
        back = max(p.back for p in self.paces)
        report = {"peers": self.arguments.peers, "seed": self.arguments.seed,
                  "faults": dict(sorted(self.kinds.items())),
                  "faults_in_all": n,
                  "deck": [f.__name__ for f in self.deck.kinds],
                  "kinds_that_never_came": sorted(
                      {f.__name__ for f in self.deck.kinds} - set(self.kinds)),
                  "certificates_expired_and_peers_shut_out":
                      [expired, self.shut_out],
                  "minutes": (end - begin) / 60,
                  "rounds_counted": sum(p.sums["punished"][1]
                                        for p in self.paces),
                  "times_that_rounds_were_not_counted": sum(
                      p.unread for p in self.paces),
                  "seconds_between_faults": self.arguments.every,
                  "calm_rounds_per_second": calm,
                  "calm_longest_round_seconds": calm_stall,
                  "rounds_per_second": kept,
                  "throughput_kept": kept / calm,
                  "longest_round_seconds": stall,
                  "longest_round_seconds_after": dict(
                      sorted(self.longest.items())),
                  "longest_seconds_until_a_victim_was_back": back,
                  "seconds_until_gathered": took,
                  "consensus_distance_undisturbed": self.undisturbed,
                  "consensus_distance_at_the_end": self.distance,
                  "largest_daemons_kb_and_files": self.sizes.largest,
                  "rank_that_is_never_killed": self.spared,
                  "daemons_judged": self.sizes.judged,
                  "violations": self.violations}
        self.fleet.write("report.json", json.dumps(report, indent=2) + "\n")
        lines = ["# soak", "", "| what | |", "| --- | --- |"]
        lines += [f"| {key.replace('_', ' ')} | {value} |"
                  for key, value in report.items()]
        self.fleet.write("report.md", "\n".join(lines) + "\n")
        self.say(f"n = {n} faults of {len(self.kinds)} kinds; survivors kept "
                 f"{kept / calm:.3f} of {calm:.2f} rounds/s; their longest "
                 f"round {stall:.2f} s (calm {calm_stall:.2f} s); victims were "
                 f"back within {back:.1f} s of 5 s (10, killed) after; "
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
    parser.add_argument("--keep", type=float, default=0,
                        help="share of their calm speed that survivors must "
                        "keep, else it is a violation (0: told only)")
    parser.add_argument("--stall", type=float, default=LIMIT,
                        help="seconds that no round of theirs may exceed")
    parser.add_argument("--consensus", type=float, default=4,
                        help="how many times further apart than without faults "
                        "(of a rehearsal) peers may be at the end")
    parser.add_argument("--memory", type=float, default=health.RSS_FACTOR,
                        help="how many times larger than then a daemon may "
                        "be, beside 32 MiB")
    parser.add_argument("--hours", type=float, help="instead of --faults")
    parser.add_argument("--every", type=float, default=5,
                        help="seconds from one fault to the next, at least")
    parser.add_argument("--kinds", help="of faults, as in kill,freeze; "
                        "without: " + ", ".join(faults.NAMES))
    parser.add_argument("--log-mb", type=float, default=64,
                        help="of each peer's metrics and of its events")
    parser.add_argument("--disk-mb", type=int, default=256,
                        help="of a peer's disk")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--host", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set((arguments.kinds or "kill").split(",")) - \
        set(faults.NAMES)
    if unknown:
        parser.error(f"--kinds: there is no fault {', '.join(unknown)}")
    arguments.bin = os.path.abspath(arguments.bin)
    if arguments.host:
        return host(arguments)
    if os.geteuid() != 0:
        parser.error("makes networks and mounts disks: run it as root")
    folder = arguments.out or tempfile.mkdtemp(prefix="gossamer-soak-")
    if os.path.exists(f"{folder}/hosts"):
        parser.error(f"--out {folder} holds another soak")
    return Soak(arguments, os.path.abspath(folder)).run()


if __name__ == "__main__":
    sys.exit(main())
