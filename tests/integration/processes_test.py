#!/usr/bin/env python3
"""Real processes over loopback: train, stop, resume, kill, freeze, wrong input.

usage: processes_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import datetime
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BIN = ""
# Seconds, a bound on every wait; sanitizers make all programs slower.
LIMIT = 120 * int(os.environ.get("GOSSAMER_TIMES", "1"))
LEASE = 4  # seconds, as gossamer-topology has it
PREEMPTION = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir,
                          "deploy", "preemption.py")

CONFIG = """
name: "{name}"
seed: 5
algorithm: "{algorithm}"
peers: {peers}
rounds: {rounds}
mixing {{ codec: "innov-int4" {mixing} }}
step {{ generator_learning_rate: 0.01 discriminator_learning_rate: 0.01 }}
game {{ {game} }}
evaluation {{ every: 50 }}
"""
QUADRATIC = "quadratic {{ dimension: {} noise: 0.1 heterogeneity: 0.5 }}"
SYNTHETIC = 'synthetic {{ parameters: {} step_time: "50ms" pace: "sleep" }}'


def program(name):
    return os.path.join(BIN, name)


class Fleet:
    """One gossamer-topology and its peers, as users on several machines run
    them."""

    def __init__(self, folder, name="it", peers=3, rounds=2000, mixing="",
                 dimension=3000, game="", heartbeat=0.1, locked=False,
                 algorithm="dp-oadam"):
        self.folder, self.peers, self.locked = folder, peers, locked
        self.heartbeat = heartbeat
        self.run_dir = os.path.join(folder, name)
        self.config = os.path.join(folder, name + ".textproto")
        with open(self.config, "w") as f:
            f.write(CONFIG.format(name=name, peers=peers, rounds=rounds,
                                  algorithm=algorithm, mixing=mixing,
                                  game=game or QUADRATIC.format(dimension)))
        self.processes = {}
        self.service = None
        self.port = 0
        if locked:
            self.certs("init", "--run", name)
            self.certs("issue", "--fleet", str(peers), "--out",
                       self.certs_of(""))

    def certs(self, command, *extra):
        result = run(program("gossamer"), "certs", command, "--ca",
                     os.path.join(self.folder, "ca"), *extra)
        if result.returncode != 0:
            raise AssertionError(result.stderr)

    def certs_of(self, who):
        return os.path.join(self.folder, "certs", who)

    def door(self, who):
        """Returns the flags for a program's certificates."""
        return ["--certs", self.certs_of(who)] if self.locked else []

    def status(self, *extra):
        return run(program("gossamer"), "status", "--topology",
                   f"127.0.0.1:{self.port}", "--json", *extra)

    def start_service(self, port=0, of=None):
        """`of`: the options that say what the run is."""
        port_file = os.path.join(self.folder, "port")
        if os.path.exists(port_file):
            os.remove(port_file)
        self.service = subprocess.Popen(
            [program("gossamer-topology"), "--listen", f"127.0.0.1:{port}",
             "--port-file", port_file, *(of or ["--config", self.config]),
             "--state", os.path.join(self.folder, "state"), "--heartbeat",
             str(self.heartbeat), "--exit-when-finished", *self.door("topology")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(port_file) and
                 os.path.getsize(port_file) > 0)
        with open(port_file) as f:
            self.port = int(f.read())

    def start_peer(self, k, *extra, wrapper=(), run_dir=None):
        with open(os.path.join(self.folder, f"peer-{k}.log"), "a") as log:
            self.processes[k] = subprocess.Popen(
                [*wrapper, program("gossamer-peer"), "--topology",
                 f"127.0.0.1:{self.port}", "--config", self.config, "--id",
                 str(k), "--run-dir", run_dir or self.run_dir,
                 *self.door(f"peer-{k}"), *extra],
                stdout=log, stderr=log)

    def start(self, *extra):
        self.start_service()
        for k in range(1, self.peers + 1):
            self.start_peer(k, *extra)

    def round_of(self, k):
        path = os.path.join(self.run_dir, f"peer-{k}", "metrics.jsonl")
        try:
            with open(path) as f:
                lines = f.read().splitlines()
            return json.loads(lines[-1])["round"] if lines else 0
        except (OSError, ValueError):
            return 0

    def rounds(self, k):
        """Returns (round, time of its end, exchanges skipped so far) for each
        round of peers that have ended; before the end, lines may be missing.
        The last round has a second line if its score came after the first."""
        path = os.path.join(self.run_dir, f"peer-{k}", "metrics.jsonl")
        with open(path) as f:
            lines = [json.loads(line) for line in f]
        if len(lines) > 1 and lines[-2]["round"] == lines[-1]["round"]:
            del lines[-2]
        return [(m["round"], datetime.datetime.fromisoformat(
            m["finished"].replace("Z", "+00:00")).timestamp(), m["skipped"])
                for m in lines]

    def events(self, k):
        path = os.path.join(self.run_dir, f"peer-{k}", "events.jsonl")
        with open(path) as f:
            return [json.loads(line)["kind"] for line in f]

    def told(self, k, kind):
        """Returns how often a peer has reported an event of this kind."""
        path = os.path.join(self.run_dir, f"peer-{k}", "events.jsonl")
        with open(path) as f:
            events = [json.loads(line) for line in f]
        return sum(e.get("times", 1) for e in events if e["kind"] == kind)

    def wait(self, *peers):
        try:
            return [self.processes[k].wait(LIMIT)
                    for k in peers or sorted(self.processes)]
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}\n{self.report()}") from None

    def report(self):
        """Returns what a person would look at first."""
        lines = []
        for k in sorted(self.processes):
            state = self.processes[k].poll()
            lines.append(f"peer {k}: round {self.round_of(k)}, "
                         f"{'runs' if state is None else f'ended: {state}'}")
            lines += self.log(k).splitlines()[-5:]
        return "\n".join(lines)

    def log(self, k):
        with open(os.path.join(self.folder, f"peer-{k}.log")) as f:
            return f.read()

    def state_hashes(self):
        """Returns the hashes of the states that the peers saved last."""
        hashes = {}
        for k in range(1, self.peers + 1):
            folder = os.path.join(self.run_dir, f"peer-{k}", "checkpoints")
            newest = max(os.listdir(folder),
                         key=lambda name: int(name.split("-")[1]))
            with open(os.path.join(folder, newest, "state.safetensors"),
                      "rb") as f:
                data = f.read()
            size = int.from_bytes(data[:8], "little")
            header = json.loads(data[8:8 + size])
            begin, end = header["parameters"]["data_offsets"]
            body = data[8 + size:]
            hashes[k] = (newest, hashlib.sha256(body[begin:end]).hexdigest())
        return hashes

    def kill(self):
        for p in list(self.processes.values()) + [self.service]:
            if p and p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
                p.wait()


def wait_for(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited too long")
        time.sleep(0.02)


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT)


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gossamer_it_")
        self.fleets = []

    def tearDown(self):
        for fleet in self.fleets:
            fleet.kill()
        shutil.rmtree(self.folder)

    def fleet(self, sub="a", **options):
        folder = os.path.join(self.folder, sub)
        os.makedirs(folder)
        fleet = Fleet(folder, **options)
        self.fleets.append(fleet)
        return fleet

    def test_trains_to_the_end(self):
        fleet = self.fleet(rounds=300)
        fleet.start()
        self.assertEqual(fleet.wait(), [0, 0, 0])
        self.assertEqual(fleet.service.wait(LIMIT), 0)
        for k in (1, 2, 3):
            self.assertEqual(fleet.round_of(k), 300)
            self.assertNotIn("not_settled", fleet.events(k))

    def test_stopped_and_resumed_fleet_is_bit_exact(self):
        # A fleet agrees on a stop within seconds, so the run has to last longer
        # on a fast machine, too.
        rounds = 12000
        whole = self.fleet("whole", rounds=rounds)
        whole.start()
        self.assertEqual(whole.wait(), [0, 0, 0])
        parts = self.fleet("parts", rounds=rounds)
        parts.start()
        # Ctrl-C at one peer, and later the shutdown of all machines.
        for sent, to in ((signal.SIGINT, [2]), (signal.SIGTERM, [1, 2, 3])):
            before = parts.round_of(1)
            wait_for(lambda: parts.round_of(1) > before + 50)
            for k in to:
                parts.processes[k].send_signal(sent)
            self.assertEqual(parts.wait(), [0, 0, 0])
            self.assertLess(parts.round_of(1), rounds)
            stops = {newest for newest, _ in parts.state_hashes().values()}
            self.assertEqual(len(stops), 1, "all stop at one round")
            self.assertEqual(parts.service.wait(LIMIT), 0)
            parts.start("--resume")
        self.assertEqual(parts.wait(), [0, 0, 0])
        self.assertEqual(parts.round_of(1), rounds)
        self.assertEqual(parts.state_hashes(), whole.state_hashes())

    def test_a_peer_without_a_whole_checkpoint_does_not_resume(self):
        fleet = self.fleet(rounds=100000, peers=2, game=QUADRATIC.format(100) +
                           " } checkpoint { every: 100 keep: 3")
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 350)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0])
        self.assertEqual(fleet.service.wait(LIMIT), 0)
        kept = os.path.join(fleet.run_dir, "peer-1", "checkpoints")
        before = sorted(os.listdir(kept))
        for name in before:
            with open(os.path.join(kept, name, "state.safetensors"),
                      "r+b") as f:
                f.seek(-1, os.SEEK_END)
                last = f.read(1)
                f.seek(-1, os.SEEK_END)
                f.write(bytes([last[0] ^ 1]))
        fleet.start_service()
        fleet.start_peer(1, "--resume")
        self.assertNotEqual(fleet.wait(1), [0])
        self.assertIn(f"none of the {len(before)} checkpoints in",
                      fleet.log(1))
        for name in before:
            self.assertIn(os.path.join(kept, name), fleet.log(1))
        self.assertEqual(sorted(os.listdir(kept)), before)

    def test_more_checkpoints_than_a_registration_takes_resume(self):
        fleet = self.fleet(rounds=100000, game=QUADRATIC.format(100) +
                           " } checkpoint { every: 1 keep: 100")
        fleet.start()
        kept = os.path.join(fleet.run_dir, "peer-1", "checkpoints")
        # A slow disk skips checkpoints, so they are counted and not the rounds.
        wait_for(lambda: os.path.isdir(kept) and len(os.listdir(kept)) > 80)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0])
        stopped = fleet.round_of(1)
        self.assertGreater(len(os.listdir(kept)), 64)
        self.assertEqual(fleet.service.wait(LIMIT), 0)
        fleet.start("--resume")
        wait_for(lambda: fleet.round_of(1) > stopped + 20)
        self.assertIn("resumed", fleet.events(1))
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0])

    def test_a_fleet_trains_on_while_its_service_is_down(self):
        fleet = self.fleet(rounds=20000)
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 50)
        fleet.service.kill()
        fleet.service.wait()
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 200)
        fleet.start_service(fleet.port)
        wait_for(lambda: "topology service: connected" in
                 fleet.log(1).split("trying again")[-1])
        wait_for(lambda: fleet.told(1, "service_found") == 1)
        self.assertEqual(fleet.told(1, "service_lost"), 1)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in (1, 2, 3)}), 1)

    def test_a_peer_resumes_from_its_last_view_without_the_service(self):
        fleet = self.fleet(rounds=1000000, locked=True,
                           mixing='deadline: "none" } checkpoint { every: 50')
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 100)
        fleet.service.kill()
        fleet.service.wait()
        # The smaller id dials, so peer 1 is found at another port, too.
        fleet.processes[1].kill()
        fleet.processes[1].wait()
        fleet.start_peer(1, "--resume")
        wait_for(lambda: fleet.told(1, "resumed_without_service") == 1)
        before = fleet.round_of(2)
        wait_for(lambda: min(fleet.round_of(k) for k in (1, 2, 3)) >
                 before + 100)
        fleet.start_service(fleet.port)
        wait_for(lambda: self.standing(fleet, 1) == "member")
        before = fleet.round_of(2)
        wait_for(lambda: min(fleet.round_of(k) for k in (1, 2, 3)) >
                 before + 100)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in (1, 2, 3)}), 1)

    def test_killed_peer_does_not_stop_the_others(self):
        fleet = self.fleet(rounds=3000, peers=4, mixing='deadline: "100ms"')
        fleet.start()
        wait_for(lambda: fleet.round_of(3) > 50)
        fleet.processes[3].kill()
        self.assertEqual(fleet.wait(1, 2, 4), [0, 0, 0])
        for k in (1, 2, 4):
            self.assertEqual(fleet.round_of(k), 3000)

    def freeze(self, fleet, peer):
        """Freezes a peer until its neighbours have gone on without it.  A
        number of rounds is no condition, since many are written out at once."""
        fleet.processes[peer].send_signal(signal.SIGSTOP)
        before = fleet.round_of(peer - 1)
        wait_for(lambda: "overdue" in fleet.events(peer - 1) and
                 fleet.round_of(peer - 1) > before + 100)
        fleet.processes[peer].send_signal(signal.SIGCONT)

    def test_frozen_peer_catches_up(self):
        fleet = self.fleet(rounds=4000, peers=4, mixing='deadline: "50ms"')
        fleet.start()
        wait_for(lambda: fleet.round_of(2) > 50)
        self.freeze(fleet, 2)
        self.assertEqual(fleet.wait(), [0, 0, 0, 0])
        self.assertIn("overdue", fleet.events(1) + fleet.events(3))

    def test_a_run_with_deadlines_replays_bit_for_bit(self):
        mixing = 'deadline: "20ms" overlap_steps: auto'
        first = self.fleet("first", rounds=1500, peers=4, mixing=mixing)
        first.start()
        wait_for(lambda: first.round_of(2) > 50)
        self.freeze(first, 2)
        self.assertEqual(first.wait(), [0, 0, 0, 0])
        logs = [os.path.join(first.run_dir, f"peer-{k}", "decisions.log")
                for k in range(1, 5)]
        decided = ""
        for path in logs:
            with open(path) as f:
                decided += f.read()
        self.assertIn("skip", decided)
        again = self.fleet("again", rounds=1500, peers=4, mixing=mixing)
        again.start_service()
        for k in range(1, 5):
            again.start_peer(k, "--replay", logs[k - 1])
        self.assertEqual(again.wait(), [0, 0, 0, 0])
        self.assertEqual(again.state_hashes(), first.state_hashes())

    def test_a_fleet_with_certificates_trains_and_answers_only_its_own(self):
        fleet = self.fleet(rounds=300, locked=True)
        fleet.start()
        seen = fleet.status("--certs", fleet.certs_of("operator"))
        self.assertEqual(seen.returncode, 0, seen.stderr)
        self.assertEqual(json.loads(seen.stdout)["run"], "it")
        self.assertNotEqual(fleet.status().returncode, 0)
        thief = self.fleet("thief", rounds=300, locked=True)
        stolen = fleet.status("--certs", thief.certs_of("operator"))
        self.assertNotEqual(stolen.returncode, 0)
        self.assertEqual(fleet.wait(), [0, 0, 0])
        for k in (1, 2, 3):
            self.assertEqual(fleet.round_of(k), 300)

    def test_games_without_networks_need_no_torch(self):
        fleet = self.fleet(rounds=100000)
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 5)
        with open(f"/proc/{fleet.processes[1].pid}/maps") as maps:
            libraries = maps.read()
        self.assertIn("libgrpc", libraries)
        self.assertNotIn("libtorch", libraries)

    def test_a_second_process_with_a_peers_id_takes_over(self):
        fleet = self.fleet(rounds=100000, locked=True)
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 50)
        old = fleet.processes[2]
        twin = os.path.join(fleet.folder, "twin")
        fleet.start_peer(2, run_dir=twin)
        # The old process waits for neighbours that have turned to the new one,
        # and ends all the same.
        self.assertEqual(old.wait(LIMIT), 1)
        self.assertIn("another process has registered as peer 2", fleet.log(2))
        self.assertEqual(fleet.told(2, "service_refused"), 1)
        metrics = os.path.join(twin, "peer-2", "metrics.jsonl")
        wait_for(lambda: os.path.exists(metrics) and os.path.getsize(metrics))
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 50)
        self.assertIsNone(fleet.processes[2].poll())

    def test_certificates_are_renewed_and_revoked_in_mid_run(self):
        fleet = self.fleet(rounds=100000, locked=True,
                           mixing='deadline: "100ms" liveness_limit: "5s"')
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 50)
        for who in ("topology", "operator"):
            fleet.certs("issue", "--role", who, "--out", fleet.certs_of(who))
        for k in (1, 2, 3):
            fleet.certs("issue", "--id", str(k), "--out",
                        fleet.certs_of(f"peer-{k}"))
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 100)
        fleet.certs("revoke", "--id", "3", "--publish", ",".join(
            fleet.certs_of(w) for w in ("topology", "peer-1", "peer-2")))
        self.assertEqual(fleet.wait(3), [1])
        self.assertIn("revoked", fleet.log(3))
        self.assertEqual(fleet.told(3, "service_refused"), 1)
        revoked = os.path.join(fleet.certs_of("peer-1"), "crl.pem")
        os.rename(revoked, revoked + ".kept")
        wait_for(lambda: fleet.told(1, "trust_unread") == 1)
        os.rename(revoked + ".kept", revoked)
        wait_for(lambda: "member_removed" in fleet.events(1))
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 50)
        stop = run(program("gossamer"), "stop", "--topology",
                   f"127.0.0.1:{fleet.port}", "--certs",
                   fleet.certs_of("operator"))
        self.assertEqual(stop.returncode, 0, stop.stderr)
        self.assertEqual(fleet.wait(1, 2), [0, 0])

    def test_a_peer_reports_connections_and_views_of_revoked_certificates(self):
        fleet = self.fleet(rounds=1000000, locked=True,
                           mixing='deadline: "100ms"')
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 50)
        # Their keys count as stolen, and only peer 1 has the list.
        for holder in (["--id", "2"], ["--role", "topology"]):
            fleet.certs("revoke", *holder, "--publish",
                        fleet.certs_of("peer-1"))
        wait_for(lambda: "connection_refused" in fleet.events(1))
        fleet.processes[3].kill()
        # The refused view comes again with every heartbeat, its line does not.
        wait_for(lambda: fleet.told(1, "view_refused") >= 10)
        lines = fleet.events(1).count("view_refused")
        self.assertLessEqual(lines, len(str(fleet.told(1, "view_refused"))))
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 5)

    def test_connections_beyond_a_hosts_limit_are_reported_and_counted(self):
        fleet = self.fleet(rounds=1000000, peers=2)
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 20)
        address = self.status(fleet)["peers"][0]["address"].split(":")
        # 64 connections of one host may wait.  The first refusal is reported at
        # once; the next report is due at ten refusals, however many come at
        # once.
        def dial(times):
            return [socket.create_connection((address[0], int(address[1])))
                    for _ in range(times)]
        dialled = dial(64 + 1)
        wait_for(lambda: fleet.told(1, "strangers_refused") == 1)
        dialled += dial(15)
        wait_for(lambda: fleet.told(1, "strangers_refused") >= 10)
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 20)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0])
        for connection in dialled:
            connection.close()
        # All 16 are counted, in three lines at most.
        self.assertEqual(fleet.told(1, "strangers_refused"), 16)
        self.assertLessEqual(fleet.events(1).count("strangers_refused"), 3)

    def test_hellos_of_another_run_are_reported_and_counted(self):
        fleet = self.fleet("one", rounds=1000000, peers=2)
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 20)
        address = self.status(fleet)["peers"][1]["address"]
        # Peer 1 of the other run takes the first fleet's peer 2 for its own,
        # and dials.
        other = self.fleet("two", name="other", rounds=1000000, peers=2)
        other.start_service()
        other.start_peer(1)
        other.start_peer(2, "--advertise", address)
        wait_for(lambda: fleet.told(2, "connection_refused") >= 10)
        self.assertEqual(fleet.events(2).count("connection_refused"), 2)
        # The service has the count, too.
        wait_for(lambda: self.status(fleet)["peers"][1]["events"].get(
            "connection_refused", 0) >= 10)
        # One line in ten seconds on stderr, though there were ten refusals
        # within half a minute.
        lines = fleet.log(2).count('belongs to run "other"')
        self.assertTrue(1 <= lines <= 5, lines)
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 20)

    def test_an_unusable_folder_of_certificates_is_refused(self):
        fleet = self.fleet(peers=2, locked=True)
        base = [program("gossamer-peer"), "--topology", "127.0.0.1:1",
                "--config", fleet.config]
        for folder, extra, says in (
                (fleet.certs_of("operator"), [], "operator"),
                (fleet.certs_of("peer-1"), ["--id", "2"], "--id 2"),
                (os.path.join(self.folder, "none"), [], "ca.pem")):
            result = run(*base, "--certs", folder, *extra)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(says, result.stderr)
        os.chmod(os.path.join(fleet.certs_of("peer-1"), "key.pem"), 0o644)
        result = run(*base, "--certs", fleet.certs_of("peer-1"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("chmod 600", result.stderr)

    def status(self, fleet):
        done = run(program("gossamer"), "status", "--topology",
                   f"127.0.0.1:{fleet.port}", "--json",
                   *fleet.door("operator"))
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def standing(self, fleet, k):
        for peer in self.status(fleet).get("peers", []):
            if peer["peer"] == k:
                return peer["standing"]
        return None

    def check_survivors_go_on_without_the_dead(self, mixing):
        fleet = self.fleet(rounds=1000000, peers=5, mixing=mixing)
        fleet.start()
        wait_for(lambda: fleet.round_of(3) > 50)
        fleet.processes[3].kill()
        wait_for(lambda: self.standing(fleet, 3) == "removed")
        rounds = {k: fleet.round_of(k) for k in (1, 2, 4, 5)}
        wait_for(lambda: all(fleet.round_of(k) > rounds[k] + 300
                             for k in rounds))
        self.assertEqual(self.status(fleet)["removals"], 1)
        for k in (2, 4):
            self.assertIn("member_suspected", fleet.events(k))
            self.assertIn("member_removed", fleet.events(k))
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(1, 2, 4, 5), [0, 0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in (1, 2, 4, 5)}), 1)

    def test_killed_peer_is_removed_with_deadlines(self):
        self.check_survivors_go_on_without_the_dead('deadline: "auto"')

    def test_killed_peer_is_removed_without_deadlines(self):
        self.check_survivors_go_on_without_the_dead('deadline: "none"')

    def check_the_killed_comes_back(self, with_its_disk):
        fleet = self.fleet(
            rounds=1000000, peers=4,
            mixing='deadline: "auto" } checkpoint { every: 100')
        fleet.start()
        wait_for(lambda: fleet.round_of(3) > 0 and
                 "checkpoint" in fleet.events(3))
        fleet.processes[3].kill()
        fleet.processes[3].wait()
        if not with_its_disk:
            shutil.rmtree(os.path.join(fleet.run_dir, "peer-3"))
        fleet.start_peer(3, "--resume")
        wait_for(lambda: self.standing(fleet, 3) == "member" and
                 fleet.round_of(3) > 0)
        before = fleet.round_of(1)
        wait_for(lambda: min(fleet.round_of(k) for k in (1, 2, 3, 4)) >
                 before + 100)
        self.assertEqual("resumed" in fleet.events(3), with_its_disk)
        self.assertEqual("state_received" in fleet.events(3),
                         not with_its_disk)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in range(1, 5)}), 1)

    def test_killed_peer_goes_on_from_its_checkpoint(self):
        self.check_the_killed_comes_back(with_its_disk=True)

    def test_killed_peer_without_its_disk_goes_on_from_its_neighbours(self):
        self.check_the_killed_comes_back(with_its_disk=False)

    def test_peer_that_was_frozen_for_long_returns(self):
        fleet = self.fleet(rounds=1000000, peers=4, mixing='deadline: "auto"')
        fleet.start()
        wait_for(lambda: fleet.round_of(2) > 50)
        fleet.processes[2].send_signal(signal.SIGSTOP)
        wait_for(lambda: self.standing(fleet, 2) == "removed")
        fleet.processes[2].send_signal(signal.SIGCONT)
        wait_for(lambda: self.standing(fleet, 2) == "member")
        wait_for(lambda: "rejoined" in fleet.events(2))
        self.assertIn("outside", fleet.events(2))
        before = fleet.round_of(2)
        wait_for(lambda: fleet.round_of(2) > before + 100)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in range(1, 5)}), 1)

    def check_every_round_in_time(self, fleet, k, since):
        """Checks that no round is jumped over, that no exchange is skipped, and
        that no round is as long as one in which a peer is silent and there are
        no deadlines.  Such a round ends with the silent peer's lease.  Half a
        lease is far less than that, and far more than the usual milliseconds.
        """
        rounds = fleet.rounds(k)
        numbers = [number for number, _, _ in rounds]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        self.assertEqual(rounds[-1][2], 0)
        times = [when for _, when, _ in rounds]
        longest = max(b - a for a, b in zip(times, times[1:]) if b > since)
        self.assertLess(longest, LEASE / 2)

    def test_one_more_peer_joins_with_the_parameters_of_members(self):
        fleet = self.fleet(rounds=1000000, peers=3)
        fleet.start()
        wait_for(lambda: fleet.round_of(2) > 50)
        came = time.time()
        fleet.start_peer(4)
        wait_for(lambda: fleet.round_of(4) > 100)
        self.assertIn("state_received", fleet.events(4))
        self.assertEqual(self.status(fleet)["joins"], 1)
        for k in (1, 2, 3):
            self.assertEqual(fleet.told(k, "member_joined"), 1)
        fleet.processes[4].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in range(1, 5)}), 1)
        for k in (1, 2, 3):
            self.check_every_round_in_time(fleet, k, came)
        again = self.fleet("again", rounds=1000, peers=3)
        again.start_service()
        log = os.path.join(fleet.run_dir, "peer-1", "decisions.log")
        again.start_peer(1, "--replay", log)
        self.assertEqual(again.wait(1), [2])
        self.assertIn("members came or went", again.log(1))

    def test_a_large_state_comes_although_a_donor_dies(self):
        """A state of some 200 chunks from each of three members; the first to
        offer it dies."""
        fleet = self.fleet(rounds=1000000, peers=4, mixing='deadline: "auto"',
                           game=SYNTHETIC.format(4_000_000))
        fleet.start()
        wait_for(lambda: fleet.round_of(2) > 20)

        def donors():
            return [k for k in range(1, 5)
                    if "state_offered" in fleet.events(k)]
        fleet.start_peer(5)
        wait_for(donors)
        dead = donors()[0]
        fleet.processes.pop(dead).kill()
        wait_for(lambda: fleet.round_of(5) > 20)
        self.assertEqual(fleet.told(5, "state_failed"), 1)
        self.assertEqual(fleet.told(5, "state_received"), 1)
        self.assertNotIn("outside", fleet.events(5))
        self.assertGreaterEqual(len(donors()), 3)
        wait_for(lambda: self.status(fleet)["removals"] == 1)
        fleet.processes[5].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0, 0])

    def test_a_peer_leaves_and_the_others_go_on(self):
        fleet = self.fleet(rounds=1000000, peers=4)
        fleet.start()
        wait_for(lambda: fleet.round_of(2) > 50)
        fleet.processes[2].send_signal(signal.SIGTERM)
        self.assertEqual(fleet.wait(2), [0])
        self.assertIn("left", fleet.events(2))
        self.assertNotIn("left_late", fleet.events(2))
        self.assertEqual(fleet.told(1, "member_leaves"), 1)
        rounds = {k: fleet.round_of(k) for k in (1, 3, 4)}
        wait_for(lambda: all(fleet.round_of(k) > rounds[k] + 200
                             for k in rounds))
        self.assertEqual(self.status(fleet)["leaves"], 1)
        for k in (1, 3, 4):
            fleet.processes[k].send_signal(signal.SIGTERM)
        self.assertEqual(fleet.wait(1, 3, 4), [0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in (1, 3, 4)}), 1)

    def test_a_connection_that_pauses_for_long_gets_bbr(self):
        def allowed(name):
            with socket.socket() as s:
                try:
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
                    return True
                except OSError:
                    return False
        with open("/proc/sys/net/ipv4/tcp_slow_start_after_idle") as f:
            pauses = f.read().strip() == "1"
        may = pauses and allowed(b"bbr") and allowed(b"cubic")
        fleet = self.fleet(
            rounds=1000 if may else 8, peers=2, heartbeat=1,
            game='synthetic { parameters: 1000 step_time: "1s" pace: "sleep" }')
        fleet.start()

        def given():
            return any("congestion_control" in fleet.events(k) for k in (1, 2))
        if may:
            wait_for(lambda: fleet.round_of(1) > 1 and fleet.round_of(2) > 1)
            # A peer asks after a neighbour that is silent for half a second, so
            # not every pause is a long one: a number of rounds would not do.
            wait_for(given)
            for process in fleet.processes.values():
                process.send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0])
        self.assertEqual(given(), may)

    def test_a_signal_that_comes_twice_at_once_counts_once(self):
        fleet = self.fleet(rounds=1000000, peers=4)
        fleet.start_service()
        fleet.start_peer(1, wrapper=[sys.executable, PREEMPTION, "--cloud",
                                     "aws", "--metadata",
                                     "http://127.0.0.1:9", "--"])
        for k in (2, 3, 4):
            fleet.start_peer(k)
        wait_for(lambda: fleet.round_of(1) > 50)
        # The signal goes to the whole group, as with systemd's
        # KillMode=control-group.
        wrapper = fleet.processes[1].pid
        with open(f"/proc/{wrapper}/task/{wrapper}/children") as f:
            both = [wrapper, int(f.read())]
        for pid in both:
            os.kill(pid, signal.SIGTERM)
        self.assertEqual(fleet.wait(1), [0])
        self.assertIn("left", fleet.events(1))
        # Two signals to a bare peer, so far apart that both are delivered.
        for _ in range(2):
            fleet.processes[2].send_signal(signal.SIGINT)
            time.sleep(0.01)
        self.assertEqual(fleet.wait(2, 3, 4), [0, 0, 0])

    def test_a_second_signal_later_ends_a_peer_at_once(self):
        fleet = self.fleet(rounds=1000000)
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 50)
        fleet.processes[2].send_signal(signal.SIGSTOP)  # so that no round ends
        # The same signal within two seconds counts as the first one.
        for sent, passes in ((signal.SIGINT, 2.1), (signal.SIGINT, 0)):
            self.assertIsNone(fleet.processes[1].poll())
            fleet.processes[1].send_signal(sent)
            time.sleep(passes)
        self.assertEqual(fleet.wait(1), [130])
        fleet.processes[3].send_signal(signal.SIGTERM)
        time.sleep(0.05)
        fleet.processes[3].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(3), [130], "another one is no echo")

    def test_a_second_sigterm_hastens_a_leave(self):
        fleet = self.fleet(rounds=1000000)
        fleet.start("--leave-within", "600")
        wait_for(lambda: fleet.round_of(1) > 50)
        fleet.processes[2].send_signal(signal.SIGSTOP)  # so that no round ends
        for passes in (2.1, 0):
            self.assertIsNone(fleet.processes[1].poll())
            fleet.processes[1].send_signal(signal.SIGTERM)
            time.sleep(passes)
        self.assertEqual(fleet.wait(1), [0])
        self.assertEqual(fleet.told(1, "left_late"), 1)
        self.assertEqual(fleet.told(1, "checkpoint"), 1)

    def test_a_peer_leaves_though_the_service_is_gone(self):
        for algorithm in ("dp-oadam", "cp-oadam"):
            fleet = self.fleet(algorithm, algorithm=algorithm, rounds=1000000)
            fleet.start()
            wait_for(lambda: fleet.round_of(2) > 50)
            fleet.service.kill()
            fleet.service.wait()
            asked = time.monotonic()
            fleet.processes[2].send_signal(signal.SIGTERM)
            self.assertEqual(fleet.wait(2), [0])
            self.assertLess(time.monotonic() - asked, 10, "--leave-within")
            self.assertEqual(fleet.told(2, "left_late"), 1)
            self.assertEqual(fleet.told(2, "checkpoint"), 1)
            fleet.kill()

    def test_a_peer_of_long_rounds_leaves_with_more_time(self):
        fleet = self.fleet(
            rounds=1000000, peers=4, heartbeat=1,
            game='synthetic { parameters: 1000 step_time: "2s" pace: "sleep" }')
        fleet.start("--leave-within", "100")
        wait_for(lambda: fleet.round_of(2) > 2)
        fleet.processes[2].send_signal(signal.SIGTERM)
        self.assertEqual(fleet.wait(2), [0])
        self.assertIn("left", fleet.events(2))
        self.assertNotIn("left_late", fleet.events(2))
        for process in fleet.processes.values():
            process.kill()
        bad = run(program("gossamer-peer"), "--topology", "127.0.0.1:1",
                  "--config", fleet.config, "--leave-within", "5")
        self.assertEqual(bad.returncode, 2)
        self.assertIn("--leave-within", bad.stderr)

    def test_members_measure_the_links_between_them(self):
        fleet = self.fleet(rounds=1000000, peers=4)  # two pairs have no edge
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > 20)
        path = os.path.join(self.folder, "measured.textproto")
        done = run(program("gossamer"), "measure", "--topology",
                   f"127.0.0.1:{fleet.port}", "--out", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        before = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > before + 50)
        with open(path) as f:
            self.assertIn("# host-3 is peer-4\n", f.read())
        plan = run(program("gossamer"), "plan", "--scenario", path,
                   "--config", fleet.config, "--step-time", "10ms",
                   "--rounds", "20", "--candidate", "mixing.overlap_steps=0",
                   "--json")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertEqual(json.loads(plan.stdout)["hosts"],
                         [f"host-{k}" for k in range(4)])
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0, 0])
        self.assertNotEqual(run(program("gossamer"), "measure", "--topology",
                                "127.0.0.1:1").returncode, 0)

    def test_other_model_is_refused_with_both_fingerprints(self):
        fleet = self.fleet(peers=2)
        fleet.start_service()
        fleet.start_peer(1)
        other = self.fleet("other", peers=2, dimension=2999)
        other.port = fleet.port
        other.start_peer(2)
        self.assertEqual(other.wait(2), [1])
        self.assertRegex(other.log(2), r"layout|configuration")
        self.assertRegex(other.log(2), r"[0-9a-f]{8}.*[0-9a-f]{8}")

    def test_unknown_key_is_refused_with_line_and_suggestion(self):
        path = os.path.join(self.folder, "bad.textproto")
        with open(path, "w") as f:
            f.write('peers: 4\nmixing {\n  codek: "innov-int4"\n}\n')
        for tool in (["gossamer", "train"], ["gossamer-peer", "--topology",
                                             "127.0.0.1:1"]):
            result = run(program(tool[0]), *tool[1:], "--config", path)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("bad.textproto:3", result.stderr)
            self.assertIn("codec", result.stderr)

    def test_a_service_that_does_not_decide_what_a_peer_asks_for_refuses_it(self):
        fleet = self.fleet(peers=2, rounds=30, mixing="overlap_steps: auto")
        options = ["--set", "name=it", "--set", "peers=2", "--set", "seed=5"]
        for end, said in (
                ([], "start the service with the run's --config, or with "
                     "--set 'mixing.overlap_steps=auto'"),
                (["--set", "name=other"], "or check its address")):
            fleet.start_service(of=options + end)
            fleet.start_peer(1)
            self.assertEqual(fleet.wait(1), [1])
            self.assertIn(said, fleet.log(1))
            fleet.kill()
            shutil.rmtree(os.path.join(fleet.folder, "state"))
        fleet.start_service(of=options + ["--set", "mixing.overlap_steps=auto"])
        for k in (1, 2):
            fleet.start_peer(k)
        self.assertEqual(fleet.wait(), [0, 0], fleet.report())

    def test_a_gpu_that_is_not_there_is_refused_in_a_line(self):
        fleet = self.fleet(game='gan { model: "mlp" width: 8 latent: 4 '
                                'data { name: "gaussian-mixture" } }')
        runs = os.path.join(self.folder, "runs")
        for tool in (["gossamer", "train", "--runs", runs],
                     ["gossamer-peer", "--topology", "127.0.0.1:1"]):
            # No machine has so many.
            result = run(program(tool[0]), *tool[1:], "--config", fleet.config,
                         "--set", "resources.device=cuda:1023")
            self.assertEqual(result.returncode, 2, result.stderr)
            last = result.stderr.splitlines()[-1]
            if not os.path.exists(program("gossamer-peer-networks")):
                # No device matters to a build that has no networks.
                self.assertIn("a build without libtorch has none", last)
                continue
            self.assertIn("resources.device is cuda:1023, but ", last)
            self.assertIn("or set resources.device=cpu", last)
        self.assertFalse(os.path.exists(os.path.join(runs, "it")))

    def test_device_auto_keeps_a_cpu_game_on_the_cpu(self):
        fleet = self.fleet(peers=2, rounds=20)
        fleet.start("--set", "resources.device=auto")
        self.assertEqual(fleet.wait(), [0, 0])
        for k in (1, 2):
            self.assertEqual(fleet.log(k).count(
                "device: the CPU, since game quadratic is computed on the CPU"), 1)

    def test_a_service_names_a_port_that_is_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = run(program("gossamer-topology"), "--listen",
                         f"127.0.0.1:{port}", "--state",
                         os.path.join(self.folder, "s"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(str(port), result.stderr)

    def test_an_address_that_is_none_is_named(self):
        fleet = self.fleet()
        for addresses in (["--topology", "127.0.0.1:22x"],
                          ["--topology", "127.0.0.1:1", "--listen", "10.0.0.1"]):
            result = run(program("gossamer-peer"), "--config", fleet.config,
                         *addresses)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{addresses[-2]} {addresses[-1]} is not of the form "
                          "HOST:PORT", result.stderr)

    def test_a_service_address_beyond_loopback_needs_insecure(self):
        fleet = self.fleet()
        result = run(program("gossamer-peer"), "--topology", "10.1.2.3:7700",
                     "--config", fleet.config)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--insecure", result.stderr)

    def test_a_signal_before_there_is_a_fleet_ends_a_peer(self):
        fleet = self.fleet()
        fleet.port = 1
        for k, sent in ((1, signal.SIGTERM), (2, signal.SIGINT)):
            fleet.start_peer(k)
            wait_for(lambda: "trying again" in fleet.log(k))
            # The signals come at different times between two tries.
            time.sleep(0.7 * k)
            began = time.monotonic()
            fleet.processes[k].send_signal(sent)
            self.assertEqual(fleet.wait(k), [0], fleet.report())
            self.assertLess(time.monotonic() - began, 10)

    def test_a_peer_without_a_service_ends_and_names_its_address(self):
        fleet = self.fleet(mixing='liveness_limit: "2s"')
        fleet.port = 1
        fleet.start_peer(1)
        self.assertEqual(fleet.wait(1), [1])
        self.assertIn("trying again", fleet.log(1))
        self.assertIn("127.0.0.1:1", fleet.log(1))


if __name__ == "__main__":
    BIN = sys.argv.pop(1)
    unittest.main()
