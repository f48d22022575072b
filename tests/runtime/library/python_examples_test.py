#!/usr/bin/env python3
"""The examples, on four local peers from the installed wheel: each peer ends with
a better score than one that never mixes.

    examples_test.py BUILD SOURCE PYTHON

Peers see different examples, and 0 is the best score.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import wheel

BUILD, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PYTHON = pathlib.Path(sys.argv[3]).absolute()
EXAMPLES = SOURCE / "deploy/examples/python"
STAND_IN = SOURCE / "tests/runtime/library/stand_in"
PEERS = 4


def scores(text):
    return [float(score) for score in re.findall(r"score (-?[0-9.]+)", text)]


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.python, _ = wheel.install(BUILD, SOURCE, PYTHON, cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def mixed(self, name, rounds):
        done = subprocess.run(
            [self.python, "-m", "gossamer.run", "--run-dir", self.folder / name,
             "--peers", str(PEERS), "--set", f"rounds={rounds}",
             EXAMPLES / f"{name}.py"], cwd=self.folder, text=True, timeout=400,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        found = scores(done.stdout)
        self.assertEqual(len(found), PEERS, done.stdout)
        return found

    def alone(self, name, rounds):
        """Of one peer, since all are alike: each lacks as much as the others."""
        done = subprocess.run(
            [PYTHON, EXAMPLES / f"{name}.py"], text=True, cwd=self.folder,
            stdout=subprocess.PIPE, check=True, timeout=400, env=dict(
                os.environ, PYTHONPATH=str(STAND_IN), ROUNDS=str(rounds),
                NUMBER="1", OMP_NUM_THREADS="1"))
        (score,) = scores(done.stdout)
        return score

    def better(self, name, rounds):
        mixed, alone = self.mixed(name, rounds), self.alone(name, rounds)
        print(f"{name}: mixed {mixed}, alone {alone}", flush=True)
        self.assertLess(max(mixed), alone)

    def test_wgan_gp(self):
        self.better("wgan_gp", 1500)

    def test_dcgan(self):
        self.better("dcgan", 250)

    def test_stylegan_loop(self):
        self.better("stylegan_loop", 1000)

    def test_three_players(self):
        self.better("three_players", 800)

    def test_supervised(self):
        self.better("supervised", 300)

    def test_compiled(self):
        self.mixed("compiled", 20)

    def test_lines_that_change(self):
        """Those of the loop with gossamer that its all-reduce had not."""
        with_it, before = [
            (EXAMPLES / name).read_text().split('"""', 2)[2].splitlines()
            for name in ("stylegan_loop.py", "stylegan_loop_ddp.py")]
        changed = [line for line in difflib.ndiff(before, with_it)
                   if line.startswith("+ ")]
        self.assertLessEqual(len(changed), 8, changed)
        self.assertIn("+     if not fleet.mix():", changed)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
