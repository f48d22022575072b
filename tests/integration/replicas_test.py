#!/usr/bin/env python3
"""Peers train while instances of the topology service, which share a real etcd, are
killed and frozen.

usage: replicas_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import processes_test as processes
from processes_test import program, run, wait_for

LEASE = 1  # seconds; etcd's shortest with elections as quick as below


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Etcd:
    def __init__(self, folder, certificates=None, port=None):
        self.port = port or free_port()
        scheme, locked = "http", []
        if certificates:
            scheme = "https"
            locked = ["--client-cert-auth", "--trusted-ca-file",
                      os.path.join(certificates, "ca.pem"), "--cert-file",
                      os.path.join(certificates, "cert.pem"), "--key-file",
                      os.path.join(certificates, "key.pem")]
        clients = f"{scheme}://127.0.0.1:{self.port}"
        peers = f"http://127.0.0.1:{free_port()}"
        try:
            self.process = subprocess.Popen(
                ["etcd", "--name", "one", "--data-dir", folder,
                 "--listen-client-urls", clients,
                 "--advertise-client-urls", clients,
                 "--listen-peer-urls", peers,
                 "--initial-advertise-peer-urls", peers,
                 "--initial-cluster", f"one={peers}",
                 "--heartbeat-interval", "10", "--election-timeout", "100",
                 *locked],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            raise AssertionError("there is no etcd: deploy/setup.sh --for "
                                 "tests installs it") from None
        self.door = None
        if certificates:
            self.door = ssl.create_default_context(
                cafile=os.path.join(certificates, "ca.pem"))
            self.door.load_cert_chain(
                os.path.join(certificates, "cert.pem"),
                os.path.join(certificates, "key.pem"))
        wait_for(lambda: self.serves(f"{clients}/health"))

    def serves(self, url):
        try:
            with urllib.request.urlopen(url, context=self.door,
                                        timeout=5) as answer:
                return json.load(answer)["health"] == "true"
        except OSError:
            return False

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


class ReplicatedFleet(processes.Fleet):
    """A fleet with as many instances of the service as are started."""

    def __init__(self, folder, etcd, **options):
        super().__init__(folder, **options)
        self.etcd, self.replicas, self.ports = etcd, [], []

    def start_replica(self):
        k = len(self.replicas)
        port_file = os.path.join(self.folder, f"port-{k}")
        with open(self.log_of(k), "w") as log:
            self.replicas.append(subprocess.Popen(
                [program("gossamer-topology"), "--listen", "127.0.0.1:0",
                 "--port-file", port_file, "--config", self.config,
                 "--store", f"etcd://127.0.0.1:{self.etcd.port}",
                 "--store-lease", str(LEASE), "--heartbeat", "0.1",
                 "--exit-when-finished"], stdout=log, stderr=log))
        wait_for(lambda: os.path.exists(port_file) or
                 self.replicas[k].poll() is not None)
        with open(port_file) as f:
            self.ports.append(int(f.read()))

    def log_of(self, k):
        return os.path.join(self.folder, f"topology-{k}.log")

    def says(self, k):
        with open(self.log_of(k)) as f:
            return f.read()

    def addresses(self, *which):
        return ",".join(f"127.0.0.1:{self.ports[k]}"
                        for k in which or range(len(self.ports)))

    def start_peers(self):
        # Fleet.start_peer writes one port; the others follow it.
        self.port = ",".join([str(self.ports[0])] +
                             [f"127.0.0.1:{p}" for p in self.ports[1:]])
        for k in range(1, self.peers + 1):
            self.start_peer(k)

    def ask(self, *which, question="status"):
        return run(program("gossamer"), question, "--topology",
                   self.addresses(*which), "--json")

    def active(self):
        """Returns the instance that serves, or None."""
        serving = [k for k in range(len(self.ports))
                   if self.ask(k).returncode == 0]
        return serving[0] if len(serving) == 1 else None

    def members(self):
        seen = json.loads(self.ask().stdout)
        return [(p["peer"], p["standing"]) for p in seen["peers"]]

    def kill(self):
        super().kill()
        for p in self.replicas:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
                p.wait()


class ReplicasTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gossamer_it_")
        self.addCleanup(shutil.rmtree, self.folder)

    def fleet(self, **options):
        self.etcd = Etcd(os.path.join(self.folder, "etcd"))
        self.addCleanup(self.etcd.kill)
        fleet = ReplicatedFleet(self.folder, self.etcd, **options)
        self.addCleanup(fleet.kill)
        for _ in range(2):
            fleet.start_replica()
        fleet.start_peers()
        wait_for(lambda: fleet.round_of(1) > 50)
        return fleet

    def check_nobody_waited_or_left(self, fleet, began, ended):
        """Checks a fleet that has ended and had no service for a time.  Peers
        that wait for a service end no round in that time, others as many as
        ever.  The check asks for a tenth of the usual rate, because the machine
        may be busy."""
        for k in (1, 2, 3):
            events = set(fleet.events(k))
            self.assertFalse(events & {"not_settled", "member_removed"}, events)
            times = [when for _, when, _ in fleet.rounds(k)]
            alone = sum(began < when < ended for when in times)
            seconds = ended - began
            usual = (len(times) - alone) / (times[-1] - times[0] - seconds)
            self.assertGreater(alone / seconds, usual / 10,
                               f"rounds/s of peer {k}, in {seconds:.1f} s")

    def test_the_active_one_dies_and_the_other_takes_over(self):
        fleet = self.fleet(rounds=1000000)
        self.assertEqual(fleet.active(), 0)
        before = fleet.members()
        refused = fleet.ask(1)
        self.assertIn(f"process {fleet.replicas[0].pid} of", refused.stderr)
        fleet.replicas[0].kill()
        fleet.replicas[0].wait()
        died = time.time()
        rounds = fleet.round_of(1)
        wait_for(lambda: fleet.active() == 1)
        taken = time.time()
        print(f"takes over {taken - died:.1f} s after a kill, lease {LEASE} s",
              file=sys.stderr)
        wait_for(lambda: fleet.round_of(1) > rounds + 200)
        self.assertIn("resumed from the stored state: view 1 of 3 peers",
                      fleet.says(1))
        self.assertEqual(fleet.members(), before)
        wait_for(lambda: all("connected" in
                             fleet.log(k).split("trying again")[-1]
                             for k in (1, 2, 3)))
        self.assertEqual(fleet.ask(question="stop").returncode, 0)
        self.assertEqual(fleet.wait(), [0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in (1, 2, 3)}), 1)
        self.check_nobody_waited_or_left(fleet, died, taken)
        self.assertEqual(fleet.replicas[1].wait(processes.LIMIT), 0)

    def test_a_frozen_one_decides_nothing_when_it_wakes(self):
        fleet = self.fleet(rounds=1000000)
        fleet.replicas[0].send_signal(signal.SIGSTOP)
        frozen = time.time()
        wait_for(lambda: fleet.ask(1).returncode == 0)
        taken = time.time()
        # The request waits for the frozen one, which reads it first when it
        # wakes.
        stop = subprocess.Popen(
            [program("gossamer"), "stop", "--topology", fleet.addresses(0)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)  # so that the request is there
        fleet.replicas[0].send_signal(signal.SIGCONT)
        decided, refused = stop.communicate(timeout=processes.LIMIT)
        self.assertNotEqual(stop.returncode, 0, decided)
        self.assertIn("stands by", refused)
        self.assertEqual(json.loads(fleet.ask(1).stdout)["stop_round"], 0)
        self.assertNotEqual(fleet.ask(0).returncode, 0)
        self.assertEqual(fleet.ask(question="stop").returncode, 0)
        self.assertEqual(fleet.wait(), [0, 0, 0])
        self.assertEqual(len({fleet.round_of(k) for k in (1, 2, 3)}), 1)
        self.check_nobody_waited_or_left(fleet, frozen, taken)
        for replica in fleet.replicas:
            self.assertEqual(replica.wait(processes.LIMIT), 0)

    def test_etcd_is_away_and_comes_back(self):
        fleet = self.fleet(rounds=1000000)
        self.etcd.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: fleet.active() is None)
        alone = time.time()
        rounds = fleet.round_of(1)
        wait_for(lambda: fleet.round_of(1) > rounds + 200)
        back = time.time()
        self.etcd.process.send_signal(signal.SIGCONT)
        wait_for(lambda: fleet.active() is not None)
        for k in (0, 1):
            self.assertLessEqual(fleet.says(k).count("stands_by: "), 3)
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0])
        self.check_nobody_waited_or_left(fleet, alone, back)
        for replica in fleet.replicas:
            self.assertEqual(replica.wait(processes.LIMIT), 0)

    def certificates(self):
        """Makes an authority, and one certificate for etcd and its callers."""
        folder = os.path.join(self.folder, "certs")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "extensions"), "w") as f:
            f.write("subjectAltName=IP:127.0.0.1\n")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes", "-days", "2"]
        for step in (
                ["req", "-x509", *key, "-subj", "/CN=authority", "-keyout",
                 "ca-key.pem", "-out", "ca.pem"],
                ["req", *key[:-2], "-subj", "/CN=etcd", "-keyout", "key.pem",
                 "-out", "request"],
                ["x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey",
                 "ca-key.pem", "-CAcreateserial", "-days", "2", "-extfile",
                 "extensions", "-out", "cert.pem"]):
            subprocess.run(["openssl", *step], cwd=folder, check=True,
                           capture_output=True)
        os.chmod(os.path.join(folder, "key.pem"), 0o600)
        return folder

    def test_an_etcd_behind_certificates(self):
        certificates = self.certificates()
        locked = Etcd(os.path.join(self.folder, "locked"), certificates)
        self.addCleanup(locked.kill)
        service = [program("gossamer-topology"), "--store",
                   f"etcd://127.0.0.1:{locked.port}", "--listen",
                   "127.0.0.1:0"]
        stranger = run(*service)
        self.assertEqual(stranger.returncode, 1)
        self.assertIn(f"no answer from etcd at 127.0.0.1:{locked.port}",
                      stranger.stderr)
        port_file = os.path.join(self.folder, "port")
        known = subprocess.Popen(
            [*service, "--store-certs", certificates, "--store-lease", "1",
             "--port-file", port_file], stderr=subprocess.DEVNULL)
        self.addCleanup(known.wait)
        self.addCleanup(known.kill)
        wait_for(lambda: os.path.exists(port_file) or known.poll() is not None)
        with open(port_file) as f:
            status = [program("gossamer"), "status", "--topology",
                      f"127.0.0.1:{f.read().strip()}", "--json"]
        wait_for(lambda: run(*status).returncode == 0)
        locked.kill()
        wait_for(lambda: run(*status).returncode != 0)
        # Another authority renews the certificates, so the old ones are not
        # valid.
        self.certificates()
        again = Etcd(os.path.join(self.folder, "locked"), certificates,
                     locked.port)
        self.addCleanup(again.kill)
        wait_for(lambda: run(*status).returncode == 0)
        known.send_signal(signal.SIGTERM)
        self.assertEqual(known.wait(processes.LIMIT), 0)

    def test_an_etcd_that_is_not_there_is_named(self):
        done = run(program("gossamer-topology"), "--store",
                   "etcd://127.0.0.1:1", "--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1:1", done.stderr)


if __name__ == "__main__":
    processes.BIN = sys.argv.pop(1)
    unittest.main()
