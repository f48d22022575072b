#!/usr/bin/env python3
"""A conditional GAN from data to samples: real peers train SAGAN on emoji, are
stopped and resumed with the same bits, and pictures of a class are drawn.

usage: conditional_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import processes_test as processes
from processes_test import wait_for

# A fleet agrees on a stop three seconds ahead: the runs last longer.
ROUNDS = 600

CONFIG = """
seed: 5
peers: 2
rounds: {rounds}
algorithm: "dp-oadam"
step {{ beta1: 0 }}
game {{
  gan {{
    model: "sagan"
    width: 4
    latent: 8
    loss: "hinge"
    batch: 2
    data {{ name: "emoji-32" classes: "hand" classes: "flag" classes: "face" }}
  }}
}}
evaluation {{ every: 0 samples: 30 }}
"""


class ConditionalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="gossamer_conditional_")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.data = os.path.join(cls.folder, "emoji-32")
        made = processes.run(processes.program("gossamer-models"),
                             "render-emoji", "--out", cls.data, "--images",
                             "50")
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        cls.config = os.path.join(cls.folder, "config.textproto")
        with open(cls.config, "w") as f:
            f.write(CONFIG.format(rounds=ROUNDS))
        cls.runs = os.path.join(cls.folder, "runs")
        cls.ended(cls.start("whole"))

    @classmethod
    def start(cls, name, *extra):
        return subprocess.Popen(
            [processes.program("gossamer"), "train", "--config", cls.config,
             "--data", cls.data, "--name", name, "--runs", cls.runs, *extra],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @staticmethod
    def ended(train):
        out, _ = train.communicate(timeout=processes.LIMIT)
        if train.returncode != 0:
            raise AssertionError(out)

    def state_of(self, name, peer):
        """Returns the peer's newest round and hashes of the tensors that make
        its model: weights, moving average, optimizer, statistics."""
        folder = os.path.join(self.runs, name, f"peer-{peer}", "checkpoints")
        newest = max(os.listdir(folder), key=lambda n: int(n.split("-")[1]))
        with open(os.path.join(folder, newest, "state.safetensors"),
                  "rb") as f:
            data = f.read()
        size = int.from_bytes(data[:8], "little")
        body = data[8 + size:]
        hashes = {}
        for tensor, entry in json.loads(data[8:8 + size]).items():
            if tensor.startswith(("parameters", "ema", "optimizer", "game.")):
                begin, end = entry["data_offsets"]
                hashes[tensor] = hashlib.sha256(body[begin:end]).hexdigest()
        return newest, hashes

    def round_of(self, name):
        path = os.path.join(self.runs, name, "peer-1", "metrics.jsonl")
        try:
            with open(path) as f:
                return len(f.readlines())
        except OSError:
            return 0

    def test_a_run_that_was_stopped_ends_with_the_same_bits(self):
        parts = self.start("parts")
        wait_for(lambda: self.round_of("parts") > 5)
        parts.send_signal(signal.SIGINT)
        out, _ = parts.communicate(timeout=processes.LIMIT)
        self.assertLess(self.round_of("parts"), ROUNDS, out)
        self.ended(self.start("parts", "--resume"))
        for peer in (1, 2):
            whole = self.state_of("whole", peer)
            self.assertEqual(self.state_of("parts", peer), whole)
            # Vectors of the power iterations are state of both players.
            self.assertIn("game.generator.g_block1.snconv1.u", whole[1])
            self.assertIn("game.discriminator.d_embedding.u", whole[1])

    def sample(self, *extra):
        out = os.path.join(self.folder, "grid.png")
        if os.path.exists(out):
            os.remove(out)
        result = processes.run(
            processes.program("gossamer"), "sample", "--run",
            os.path.join(self.runs, "whole"), "--out", out, *extra)
        if result.returncode != 0:
            return result.stderr
        with open(out, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def test_samples_are_of_the_class_that_is_asked_for(self):
        hands = self.sample("--class", "hand")
        self.assertEqual(len(hands), 64, hands)
        # The class's number in the files, not among those chosen.
        self.assertEqual(self.sample("--class", "2"), hands)
        self.assertNotEqual(self.sample("--class", "flag"), hands)
        self.assertNotEqual(self.sample(), hands)
        self.assertIn("0 face, 2 hand, 9 flag", self.sample("--class", "animal"))

    def test_scores_have_the_chosen_classes(self):
        result = processes.run(
            processes.program("gossamer"), "evaluate", "--run",
            os.path.join(self.runs, "whole"), "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        scores = json.loads(result.stdout)
        self.assertEqual(scores["n_real"], 30)
        self.assertEqual(scores["n_fake"], 30)
        self.assertGreater(scores["proxy-fid"], 0)


if __name__ == "__main__":
    processes.BIN = sys.argv.pop(1)
    unittest.main()
