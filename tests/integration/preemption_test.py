#!/usr/bin/env python3
"""deploy/preemption.py turns a cloud's notice of preemption into SIGTERM, and nothing
else.

usage: preemption_test.py PREEMPTION_PY [unittest arguments]
"""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

SCRIPT = ""
LIMIT = 30  # seconds
CHILD = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
time.sleep(60)
"""
# A program that prints each signal that it gets.
TELLS = """
import signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(s, lambda n, _: print(signal.Signals(n).name, flush=True))
print("ready", flush=True)
time.sleep(60)
"""


class Cloud(http.server.BaseHTTPRequestHandler):
    """The metadata services of three clouds, each with its paths, headers and
    answers."""

    notice = broken = False
    asked = 0
    name = "Fleet_3"
    evictions = [{"EventType": "Preempt", "Resources": ["fleet_2", "fleet_3"]}]
    body = None  # body for every path, in place of Azure's

    def answer(self, code, text=""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        if self.headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
            return self.answer(200, "the token")
        return self.answer(400)

    def do_GET(self):
        Cloud.asked += 1
        if Cloud.broken:
            return self.answer(503)
        if self.path == "/latest/meta-data/spot/instance-action":
            if self.headers.get("X-aws-ec2-metadata-token") != "the token":
                return self.answer(401)
            return (self.answer(200, '{"action": "terminate"}')
                    if Cloud.notice else self.answer(404))
        if self.path == "/computeMetadata/v1/instance/preempted":
            if self.headers.get("Metadata-Flavor") != "Google":
                return self.answer(403)
            return self.answer(200, "TRUE\n" if Cloud.notice else "FALSE\n")
        if self.path.startswith("/metadata/scheduledevents?"):
            if self.headers.get("Metadata") != "true":
                return self.answer(400)
            events = [{"EventType": "Reboot", "Resources": ["fleet_3"]}]
            if Cloud.notice:
                events += Cloud.evictions
            return self.answer(200, Cloud.body or
                               json.dumps({"Events": events}))
        if self.path == ("/metadata/instance/compute/name"
                         "?api-version=2021-02-01&format=text"):
            if self.headers.get("Metadata") != "true":
                return self.answer(400)
            return (self.answer(404) if Cloud.name is None
                    else self.answer(200, Cloud.name))
        return self.answer(404)

    def log_message(self, *_):
        pass


class PreemptionTest(unittest.TestCase):
    EVICTIONS = Cloud.evictions

    def setUp(self):
        for attribute in ("notice", "broken", "asked", "name", "evictions",
                          "body"):
            self.addCleanup(setattr, Cloud, attribute,
                            getattr(Cloud, attribute))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def start(self, cloud, child=CHILD):
        process = subprocess.Popen(
            [sys.executable, SCRIPT, "--cloud", cloud, "--every", "0.05",
             "--metadata", f"http://127.0.0.1:{self.server.server_port}", "--",
             sys.executable, "-c", child],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def asked_more(self, times):
        end, until = time.monotonic() + LIMIT, Cloud.asked + times
        while Cloud.asked < until:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_every_clouds_notice(self):
        for cloud in ("aws", "azure", "gcp"):
            with self.subTest(cloud):
                Cloud.notice = False
                process = self.start(cloud)
                self.assertEqual(process.stdout.readline(), "ready\n")
                self.asked_more(3)
                self.assertIsNone(process.poll(), "no notice, no signal")
                Cloud.notice = True
                _, errors = process.communicate(timeout=LIMIT)
                self.assertEqual(process.returncode, 7)
                self.assertIn("will be taken away", errors)

    def stays_then_leaves(self, says):
        """Runs a command under a notice that says `says`, and checks that it
        stays; then evicts it, and checks that it leaves."""
        process = self.start("azure")
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.asked_more(6)
        self.assertIsNone(process.poll(), "no notice, no signal")
        Cloud.notice, Cloud.name, Cloud.body = True, "FLEET_3", None
        Cloud.evictions = [{"EventType": "Terminate", "Resources": ["x"]},
                           {"EventType": "Preempt", "Resources": ["fleet_3"]}]
        _, errors = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 7)
        self.assertIn("will be taken away", errors)
        self.assertEqual(errors.count("asking on"), 1 if says else 0, errors)
        self.assertIn(says, errors)

    def test_the_eviction_of_another_machine_is_no_notice(self):
        for name in ("fleet_1", "fleet_33", "fleet_"):
            with self.subTest(name):
                Cloud.notice, Cloud.name = True, name
                Cloud.evictions = PreemptionTest.EVICTIONS
                self.stays_then_leaves("")

    def test_an_eviction_of_nobody_is_no_notice(self):
        for more in ({}, {"Resources": None}, {"Resources": []}):
            with self.subTest(more):
                Cloud.notice = True
                Cloud.evictions = [{"EventType": "Preempt", **more}]
                self.stays_then_leaves("")

    def test_a_machine_that_does_not_know_its_name_goes_on_asking(self):
        for name in (None, " "):
            with self.subTest(name):
                Cloud.notice, Cloud.name = True, name
                self.stays_then_leaves("not told its name")

    def test_no_answer_ends_the_asking(self):
        for body in ("[]", "null", '{"Events": [3]}', '{"Events": 3}', "<p>",
                     '{"Events": [{"EventType": "Preempt", "Resources": 3}]}'):
            with self.subTest(body):
                Cloud.body = body
                self.stays_then_leaves("asking on")

    def test_a_service_that_fails_is_no_notice(self):
        Cloud.broken = True
        process = self.start("gcp")
        self.asked_more(3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 7, "signals are passed on")
        self.assertEqual(errors.count("asking on"), 1, errors)

    def told(self, process, *sent):
        """Returns what a command prints of signals that are sent to its group
        one by one."""
        heard = []
        for number in sent:
            os.killpg(process.pid, number)
            heard.append(process.stdout.readline().strip())
        return heard

    def end(self, process):
        """Ends the command, and returns what else it has printed."""
        pid = self.command_of(process)
        os.kill(pid, signal.SIGKILL)
        rest, _ = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 137)
        return rest.split()

    def command_of(self, process):
        path = f"/proc/{process.pid}/task/{process.pid}/children"
        with open(path) as f:
            return int(f.read())

    def test_a_signal_to_the_whole_group_comes_once(self):
        process = self.start("aws", TELLS)
        self.assertEqual(process.stdout.readline(), "ready\n")
        sent = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
        self.assertEqual(self.told(process, *sent), [s.name for s in sent])
        # The script would have passed a second signal on by then.
        time.sleep(0.3)
        self.assertEqual(self.end(process), [])

    def test_a_shutdown_that_follows_the_notice_is_the_same(self):
        process = self.start("gcp", TELLS)
        heard = [process.stdout.readline().strip()]
        Cloud.notice = True
        heard.append(process.stdout.readline().strip())
        os.killpg(process.pid, signal.SIGTERM)
        # Two pending signals of one number are delivered as one, so the next
        # ones wait until the script has taken this one.
        self.assertIn("will be taken away", process.stderr.readline())
        self.assertIn("follows the notice", process.stderr.readline())
        # The command gets every later signal.
        heard += self.told(process, signal.SIGINT, signal.SIGTERM)
        self.assertEqual(heard, ["ready", "SIGTERM", "SIGINT", "SIGTERM"])
        self.assertEqual(self.end(process), [])

    def test_a_notice_that_follows_the_shutdown_is_the_same(self):
        process = self.start("gcp", TELLS)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertEqual(self.told(process, signal.SIGTERM), ["SIGTERM"])
        Cloud.notice = True
        self.assertIn("will be taken away", process.stderr.readline())
        # The script would have passed a second signal on by then.
        time.sleep(0.3)
        self.assertEqual(self.end(process), [])

    def test_ends_as_its_command_ends(self):
        for child, code in (("raise SystemExit(3)", 3),
                            ("import os; os.kill(os.getpid(), 9)", 137)):
            process = self.start("aws", child)
            process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, code)

    def test_a_command_that_is_not_there(self):
        done = subprocess.run(
            [sys.executable, SCRIPT, "--cloud", "aws", "--", "/no/such/peer"],
            capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("/no/such/peer", done.stderr)


if __name__ == "__main__":
    SCRIPT = sys.argv.pop(1)
    unittest.main()
