#!/usr/bin/env python3
"""A cloud's notice becomes SIGTERM, and nothing else does.

usage: preemption_test.py PREEMPTION_PY [unittest arguments]
"""

import http.server
import json
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


class Cloud(http.server.BaseHTTPRequestHandler):
    """All three at once, each with its paths, headers and answers."""

    notice = broken = False
    asked = 0

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
            events = [{"EventType": "Reboot"}]
            if Cloud.notice:
                events.append({"EventType": "Preempt"})
            return self.answer(200, json.dumps({"Events": events}))
        return self.answer(404)

    def log_message(self, *_):
        pass


class PreemptionTest(unittest.TestCase):
    def setUp(self):
        Cloud.notice = Cloud.broken = False
        Cloud.asked = 0
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
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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

    def test_a_service_that_fails_is_no_notice(self):
        Cloud.broken = True
        process = self.start("gcp")
        self.asked_more(3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 7, "signals are passed on")
        self.assertEqual(errors.count("asking on"), 1, errors)

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
