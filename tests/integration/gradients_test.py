#!/usr/bin/env python3
"""Real peers that train networks on compressed gradients: stopped and resumed,
they end with the bits of an undisturbed run.

usage: gradients_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import unittest

import processes_test as processes
from processes_test import wait_for

# Gradients travel whole until this round.
START = 5
ROUNDS = 600

CONFIG = """
name: "it"
seed: 5
peers: 2
rounds: {rounds}
algorithm: "cp-oadam"
mixing {{ gradient_codec: "{method}" }}
resources {{ threads: 1 }}
game {{
  gan {{
    model: "mlp"
    width: 64
    latent: 8
    gradient_penalty: 1
    batch: 8
    data {{ name: "gaussian-mixture" }}
  }}
}}
evaluation {{ every: 1000 }}
"""


class CompressedFleet(processes.Fleet):
    def __init__(self, folder, method):
        super().__init__(folder, peers=2)
        with open(self.config, "w") as f:
            f.write(CONFIG.format(method=method, rounds=ROUNDS))

    def bytes_of(self, first, last):
        """Returns the bytes that peer 1 sent in a round, the mean over these
        rounds."""
        path = os.path.join(self.run_dir, "peer-1", "metrics.jsonl")
        with open(path) as f:
            sent = [0] + [json.loads(line)["bytes_sent"] for line in f]
        return (sent[last] - sent[first - 1]) / (last - first + 1)

    def state_names(self):
        folder = os.path.join(self.run_dir, "peer-1", "checkpoints")
        newest = max(os.listdir(folder), key=lambda n: int(n.split("-")[1]))
        with open(os.path.join(folder, newest, "state.safetensors"),
                  "rb") as f:
            size = int.from_bytes(f.read(8), "little")
            return list(json.loads(f.read(size)))


class GradientsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gossamer_gradients_")
        self.addCleanup(shutil.rmtree, self.folder)

    def fleet(self, sub, method):
        folder = os.path.join(self.folder, sub)
        os.makedirs(folder)
        fleet = CompressedFleet(folder, method)
        self.addCleanup(fleet.kill)
        return fleet

    def resumes(self, method, kept):
        whole = self.fleet("whole", method)
        whole.start()
        self.assertEqual(whole.wait(), [0, 0], whole.report())
        parts = self.fleet("parts", method)
        parts.start()
        wait_for(lambda: parts.round_of(1) > 30)
        parts.processes[2].send_signal(signal.SIGINT)
        self.assertEqual(parts.wait(), [0, 0], parts.report())
        self.assertLess(parts.round_of(1), ROUNDS)
        self.assertEqual(parts.service.wait(processes.LIMIT), 0)
        for name in kept:
            self.assertTrue(any(name in n for n in parts.state_names()),
                            parts.state_names())
        parts.start("--resume")
        self.assertEqual(parts.wait(), [0, 0], parts.report())
        self.assertEqual(parts.round_of(1), ROUNDS)
        hashes = whole.state_hashes()
        self.assertEqual(parts.state_hashes(), hashes)
        self.assertEqual(hashes[1], hashes[2], "one model at all")
        self.assertLess(whole.bytes_of(START + 3, ROUNDS),
                        0.25 * whole.bytes_of(1, START))
        return whole

    def test_lgc_learns_and_codes(self):
        whole = self.resumes(f"lgc:rate=20,full={START},learn=10,worst=0.95",
                             ["coder", "adam.m", "phases", "residual"])
        # The bytes shrink: first values and the coder's gradient, then codes.
        self.assertLess(whole.bytes_of(ROUNDS - 100, ROUNDS),
                        0.6 * whole.bytes_of(START + 3, START + 10))

    def test_scalecom_ahead(self):
        self.resumes(f"scalecom:rate=20,ahead=1,full={START}", ["residual"])

    def test_adacomp(self):
        self.resumes(f"adacomp:bin=100,full={START}", ["residual"])


if __name__ == "__main__":
    processes.BIN = sys.argv.pop(1)
    unittest.main()
