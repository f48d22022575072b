#!/usr/bin/env python3
"""A comparison of real fleets that is killed or stopped continues with the runs that
are missing.

usage: compare_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from processes_test import LIMIT, wait_for

BIN = ""
ROUNDS = 1500

CONFIG = f"""
name: "it" peers: 2 rounds: {ROUNDS}
game {{ synthetic {{ parameters: 2000 step_time: "5ms" pace: "sleep" }} }}
evaluation {{ every: 50 }}
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gossamer_compare_")
        with open(os.path.join(self.folder, "it.textproto"), "w") as f:
            f.write(CONFIG)
        self.log = os.path.join(self.folder, "runs", "compare-it",
                                "dp-oadam-seed-1", "peer-1", "metrics.jsonl")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def start(self):
        compare = subprocess.Popen(
            [os.path.join(BIN, "gossamer"), "compare", "--config",
             "it.textproto", "--algorithms", "dp-oadam", "--json"],
            cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (compare.kill(), compare.wait(),
                                 compare.stdout.close(),
                                 compare.stderr.close()))
        return compare

    def rounds(self):
        try:
            with open(self.log) as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def test_goes_on_where_it_was_ended(self):
        killed = self.start()
        wait_for(self.rounds)
        killed.kill()
        killed.communicate(timeout=LIMIT)
        before = self.rounds()[0]

        # It is stopped before any peer has a checkpoint.
        stopped = self.start()
        wait_for(lambda: (rounds := self.rounds()) and rounds[0] != before)
        stopped.send_signal(signal.SIGINT)
        _, errors = stopped.communicate(timeout=LIMIT)
        self.assertEqual(stopped.returncode, 1, errors)
        self.assertIn("local: begins anew (no checkpoint", errors)
        # A checkpoint has the name of the round that comes next.
        following = self.rounds()[-1]["round"] + 1
        self.assertLess(following, ROUNDS)
        self.assertIn(f"goes on with this run from round {following}", errors)
        before = self.rounds()[0]

        output, errors = self.start().communicate(timeout=LIMIT)
        self.assertIn(f"local: goes on from round {following}", errors)
        rounds = self.rounds()
        self.assertEqual(rounds[0], before)
        # A peer writes the round it ended at once more if a score came after it.
        lines = collections.Counter(m["round"] for m in rounds)
        self.assertEqual(list(lines), list(range(1, ROUNDS + 1)))
        repeated = {k: n for k, n in lines.items() if n > 1}
        self.assertLessEqual(repeated.items(),
                             {following - 1: 2, ROUNDS: 2}.items())
        run = json.loads(output)["games"][0]["runs"][0]
        self.assertTrue(run["summary"]["finished"])

        _, errors = self.start().communicate(timeout=LIMIT)
        self.assertIn("kept, it has finished", errors)


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
