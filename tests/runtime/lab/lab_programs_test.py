#!/usr/bin/env python3
"""gossamer lab as people run it: fleets, commands, wrong input, and every way to end
it, after which no part of a lab may be left.

The test makes network namespaces, so it runs as root.

usage: lab_programs_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import collections
import contextlib
import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = ""
# Seconds that no wait of these tests may exceed.
LIMIT = 120 * int(os.environ.get("GOSSAMER_TIMES", "1"))

SCENARIO = 'name: "test" link { rtt: "20ms" rate: "200mbit" }'
CONFIG = """
name: "fleet" seed: 3 peers: 3 rounds: %d
game { quadratic { dimension: 3000 noise: 0.1 heterogeneity: 0.5 } }
evaluation { every: 50 }
"""


def wait_for(condition):
    end = time.time() + LIMIT
    while time.time() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def namespace(pid, kind):
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None


def processes():
    return [int(os.path.basename(p)) for p in glob.glob("/proc/[0-9]*")]


def children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as f:
                found += [int(p) for p in f.read().split()]
        except OSError:
            pass
    return found


class Remains:
    """The parts of a running lab, to look for when it has ended."""

    def __init__(self, pid):
        own = namespace("self", "net")
        inside = {namespace(child, "pid") for child in children(pid)}
        inside -= {None, namespace("self", "pid")}
        self.pid_namespaces = inside
        self.networks = {namespace(p, "net") for p in processes()
                         if namespace(p, "pid") in inside}
        self.networks -= {None, own}

    def left(self):
        return [p for p in processes()
                if namespace(p, "pid") in self.pid_namespaces or
                namespace(p, "net") in self.networks]


def without_privileges():
    """Runs as root in name only, as in a container."""
    libc = ctypes.CDLL(None, use_errno=True)
    cap_sys_admin, pr_capbset_drop = 21, 24
    if libc.prctl(pr_capbset_drop, cap_sys_admin, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_CAPBSET_DROP")


class Lab(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gossamer-lab-")
        self.scenario = self.write("s.textproto", SCENARIO)
        self.devices = os.listdir("/sys/class/net")

    def tearDown(self):
        # Devices and names of networks outside are as before.
        self.assertEqual(self.devices, os.listdir("/sys/class/net"))
        shutil.rmtree(self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def command(self, *arguments, scenario=None):
        return [os.path.join(BIN, "gossamer"), "lab", "--scenario",
                scenario or self.scenario, *arguments]

    def run_lab(self, *arguments, scenario=None, **options):
        return subprocess.run(self.command(*arguments, scenario=scenario),
                              capture_output=True, text=True, timeout=LIMIT,
                              cwd=self.folder, stdin=subprocess.DEVNULL,
                              **options)

    def start_lab(self, *arguments, scenario=None):
        lab = subprocess.Popen(self.command(*arguments, scenario=scenario),
                               cwd=self.folder,
                               stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
        # A test that fails leaves nothing either.
        self.addCleanup(lambda: (lab.kill(), lab.wait(), lab.stderr.close()))
        return lab

    def start_sleepers(self):
        """Starts a lab whose commands leave orphans, also in other sessions."""
        ready = os.path.join(self.folder, "ready-")
        lab = self.start_lab(
            "--hosts", "3", "--exec",
            f"setsid sleep 1000 & touch {ready}$LAB_RANK; sleep 1000")
        wait_for(lambda: len(glob.glob(ready + "*")) == 3)
        remains = Remains(lab.pid)
        self.assertEqual(len(remains.networks), 3)
        self.assertGreaterEqual(len(remains.left()), 7)  # its keeper, 3 x 2
        return lab, remains

    def test_a_fleet_trains_in_a_lab(self):
        config = self.write("c.textproto", CONFIG % 100)
        result = self.run_lab("--config", config, "--out", "here")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("trained 100 of 100 rounds", result.stdout)
        self.assertIn("network ", result.stdout)
        with open(os.path.join(self.folder, "here", "summary.json")) as f:
            summary = json.load(f)
        self.assertEqual(summary["rounds"], 100)
        with open(os.path.join(self.folder, "here", "network.json")) as f:
            network = json.load(f)
        self.assertEqual(network["scenario"]["links"][0]["delay_ms"], 10)
        # Every peer has sent what it says to have sent, and more than that.
        self.assertEqual(len(network["links"]), 6)
        for rank in range(3):
            path = os.path.join(self.folder, "here", f"peer-{rank + 1}",
                                "metrics.jsonl")
            with open(path) as f:
                said = json.loads(f.read().splitlines()[-1])["bytes_sent"]
            carried = sum(link["bytes"] for link in network["links"]
                          if link["from"] == rank)
            self.assertGreater(said, 0)
            self.assertGreater(carried, said)

    def test_a_fleet_stops_and_goes_on(self):
        config = self.write("c.textproto", CONFIG % 100000)
        arguments = ["--config", config, "--set", "checkpoint.every=1000000"]
        lab = self.start_lab(*arguments)
        log = os.path.join(self.folder, "runs/fleet/peer-1/metrics.jsonl")
        wait_for(lambda: os.path.exists(log) and os.path.getsize(log) > 0)
        remains = Remains(lab.pid)
        self.assertEqual(len(remains.networks), 3)
        lab.send_signal(signal.SIGINT)
        self.assertEqual(lab.wait(LIMIT), 0, lab.stderr.read())

        self.assertEqual(remains.left(), [])
        self.assertEqual(
            len(glob.glob(f"{self.folder}/runs/fleet/peer-*/checkpoints/*")), 3)
        lab = self.start_lab(*arguments, "--resume")
        self.assertIn("going on from round", lab.stderr.readline())
        lab.send_signal(signal.SIGTERM)
        _, errors = lab.communicate(timeout=LIMIT)
        self.assertIn(lab.returncode, (0, 1), errors)  # 1: before it began

    def test_a_lossy_link_has_several_connections_where_bbr_may_not_be(self):
        scenario = self.write("lossy.textproto",
                              'link { rtt: "40ms" loss: 0.05 }')
        config = self.write("c.textproto", """
            name: "fleet" peers: 2 rounds: 1000000
            game { synthetic { parameters: 1000000 step_time: "20ms"
                               pace: "sleep" } }
            resources { congestion_control: "cubic" }""")
        lab = self.start_lab("--config", config, scenario=scenario)

        def events(rank):
            path = os.path.join(self.folder,
                                f"runs/fleet/peer-{rank}/events.jsonl")
            if not os.path.exists(path):
                return {}
            with open(path) as f:
                whole = [line for line in f if line.endswith("\n")]
            return {e["kind"]: e["detail"] for e in map(json.loads, whole)}

        def lanes():
            """The most connections from peer 1 to one port of peer 2's host."""
            most = 0
            for p in Remains(lab.pid).left():
                with contextlib.suppress(OSError), open(
                        f"/proc/{p}/net/tcp") as f:
                    open_to = [line.split()[2] for line in f
                               if line.split()[3] == "01"]
                    of_peer_2 = collections.Counter(
                        end for end in open_to if end.startswith("02004D0A:"))
                    most = max([most, *of_peer_2.values()])
            return most
        # The smaller id dials, so the choice is its.
        wait_for(lambda: "connections_added" in events(1))
        self.assertIn("1 times so far", events(1)["connections_added"])
        self.assertNotIn("connections_added", events(2))
        wait_for(lambda: lanes() == 4)
        lab.send_signal(signal.SIGINT)
        self.assertEqual(lab.wait(LIMIT), 0, lab.stderr.read())

    def test_a_peer_that_dies_ends_the_lab(self):
        config = self.write("c.textproto", CONFIG % 100000)
        lab = self.start_lab("--config", config)
        log = os.path.join(self.folder, "runs/fleet/peer-2/metrics.jsonl")
        wait_for(lambda: os.path.exists(log) and os.path.getsize(log) > 0)
        remains = Remains(lab.pid)
        peers = [p for p in remains.left()
                 if os.readlink(f"/proc/{p}/exe").endswith("gossamer-peer")]
        self.assertEqual(len(peers), 3)
        os.kill(peers[1], signal.SIGKILL)
        _, errors = lab.communicate(timeout=LIMIT)
        self.assertEqual(lab.returncode, 1)
        self.assertIn("was killed by signal 9", errors)
        self.assertEqual(remains.left(), [])

    def test_commands_know_where_they_are(self):
        result = self.run_lab(
            "--hosts", "3", "--json", "--out", "logs", "--exec",
            "echo $LAB_RANK $LAB_SIZE $LAB_ADDRESS $LAB_HOSTS; exit $LAB_RANK")
        self.assertEqual(result.returncode, 1)
        answer = json.loads(result.stdout)
        self.assertEqual([h["code"] for h in answer["hosts"]], [0, 1, 2])
        for rank in range(3):
            with open(os.path.join(self.folder, "logs",
                                   f"rank-{rank}.log")) as f:
                self.assertEqual(
                    f.read(), f"{rank} 3 10.77.0.{rank + 1} "
                    "10.77.0.1,10.77.0.2,10.77.0.3\n")
        self.assertEqual(self.run_lab("--exec", "true").returncode, 0)

    def test_a_killed_lab_leaves_nothing(self):
        lab, remains = self.start_sleepers()
        lab.kill()
        lab.communicate()
        wait_for(lambda: not remains.left())

    def start_comparison(self, config):
        """Starts a comparison, and returns it in the middle of its first run,
        with that run's parts."""
        compare = subprocess.Popen(
            [os.path.join(BIN, "gossamer"), "compare", "--config", config,
             "--algorithms", "dp-oadam", "--rtt", "2ms"],
            cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (compare.kill(), compare.wait(),
                                 compare.stderr.close()))
        logs = os.path.join(self.folder, "runs/*/2ms/*/peer-*/metrics.jsonl")
        wait_for(lambda: len([p for p in glob.glob(logs)
                              if os.path.getsize(p) > 0]) == 2)
        lab, = children(compare.pid)
        remains = Remains(lab)
        self.assertEqual(len(remains.networks), 2)
        # The keeper, the service and the peers.
        self.assertGreaterEqual(len(remains.left()), 4)
        return compare, remains

    def test_a_comparison_leaves_nothing_however_it_ends(self):
        config = self.write("c.textproto", """
            name: "it" peers: 2 rounds: 100000
            game { synthetic { parameters: 1000 step_time: "5ms"
                               pace: "sleep" } }""")
        compare, remains = self.start_comparison(config)
        compare.kill()
        compare.communicate()
        wait_for(lambda: not remains.left())

        shutil.rmtree(os.path.join(self.folder, "runs"))
        compare, remains = self.start_comparison(config)
        compare.send_signal(signal.SIGINT)
        _, errors = compare.communicate(timeout=LIMIT)
        self.assertEqual(compare.returncode, 1)
        self.assertIn("stopped; the same command goes on", errors)
        self.assertEqual(remains.left(), [])

    def test_a_command_that_does_not_end_is_named(self):
        ready = os.path.join(self.folder, "ready-")
        lab = self.start_lab(
            "--hosts", "3", "--exec", "[ $LAB_RANK != 1 ] || trap '' TERM; "
            f"touch {ready}$LAB_RANK; sleep 1000")
        wait_for(lambda: len(glob.glob(ready + "*")) == 3)
        lab.send_signal(signal.SIGTERM)
        self.assertIn("a second signal", lab.stderr.readline())
        time.sleep(2.2)  # within two seconds it counts as the first
        lab.send_signal(signal.SIGTERM)
        _, errors = lab.communicate(timeout=LIMIT)
        self.assertEqual(lab.returncode, 1)
        self.assertRegex(errors,
                         "rank 1 was killed, .* after being asked to end")

    def test_a_signal_ends_a_lab_and_leaves_nothing(self):
        for sent in (signal.SIGTERM, signal.SIGINT):
            lab, remains = self.start_sleepers()
            lab.send_signal(sent)
            _, errors = lab.communicate(timeout=LIMIT)
            self.assertEqual(lab.returncode, 1)
            self.assertIn("stopped by a signal", errors)
            self.assertEqual(remains.left(), [])
            for path in glob.glob(os.path.join(self.folder, "ready-*")):
                os.remove(path)

    def test_a_lab_measures_itself(self):
        result = self.run_lab("--check", "--hosts", "2", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        pair = json.loads(result.stdout)["pairs"][0]
        self.assertEqual(pair["answered"], pair["sent"])
        self.assertGreaterEqual(pair["least_ms"], 20)
        self.assertGreater(pair["measured_bits_per_second"], 0)
        text = self.run_lab("--check", "--hosts", "2").stdout
        self.assertIn("worst error of a median round trip", text)

    def test_a_lab_is_shown_without_privileges(self):
        shown = self.run_lab("--show", "--json",
                             preexec_fn=without_privileges)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(len(json.loads(shown.stdout)["hosts"]), 4)

    def test_a_lab_without_privileges_says_what_to_do(self):
        result = self.run_lab("--exec", "true", preexec_fn=without_privileges)
        self.assertEqual(result.returncode, 1)
        for part in ("not permitted", "root", "sudo", "unshare --user"):
            self.assertIn(part, result.stderr)
        config = self.write("c.textproto", CONFIG % 10)
        compare = [os.path.join(BIN, "gossamer"), "compare", "--config", config,
                   "--rtt", "2ms"]
        for command in (self.command("--config", config), compare):
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT,
                cwd=self.folder, stdin=subprocess.DEVNULL,
                preexec_fn=without_privileges)
            self.assertEqual(result.returncode, 1)
            self.assertIn("without root and without a lab, --rehearse",
                          result.stderr)

    def test_wrong_input_is_refused(self):
        wrong = self.write("wrong.textproto", 'link {\n  rate: "fast" }')
        config = self.write("c.textproto", CONFIG % 10)
        cases = [
            ([], None, "exactly one of"),
            (["--show", "--check"], None, "exactly one of"),
            (["--exec", "true", "--config", config], None, "exactly one of"),
            (["--show"], wrong, "wrong.textproto:2:3: link[0].rate"),
            (["--show"], "/no/such/file", "deploy/lab/"),
            (["--show", "--hosts", "1"], None, "--hosts"),
            (["--config", "/no/such/file"], None, "cannot be read"),
            (["--config", config, "--hosts", "2"], None, "has 3 peers"),
            (["--config", config],
             self.write("two.textproto", "hosts: 2"), "has 2 hosts, but 3"),
        ]
        for arguments, scenario, message in cases:
            result = self.run_lab(*arguments, scenario=scenario)
            self.assertEqual(result.returncode, 2, (arguments, result))
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
