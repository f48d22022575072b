#!/usr/bin/env python3
"""The examples, on four local peers from the installed wheel: each peer ends with
a better score than each of four that never mix.

    python_examples_test.py BUILD SOURCE PYTHON

Peers see different examples, and 0 is the best score.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

import wheel

BUILD, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PYTHON = pathlib.Path(sys.argv[3]).absolute()
EXAMPLES = SOURCE / "deploy/examples/python"
STAND_IN = SOURCE / "tests/runtime/library/stand_in"
PEERS = 4

# Forks: to import torch takes some of these programs longer than to train.
ALONE = """
import os, runpy, sys, torch
peers = []
for number in range(1, int(sys.argv[2]) + 1):
    peers.append(os.fork())
    if peers[-1] == 0:
        os.environ["NUMBER"] = str(number)
        runpy.run_path(sys.argv[1], run_name="__main__")
        sys.exit()
sys.exit(any([os.waitpid(peer, 0)[1] for peer in peers]))
"""


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

    def output(self, *command, **environment):
        done = subprocess.run(command, cwd=self.folder, text=True, timeout=400,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, **environment))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def mixed(self, name, rounds):
        out = self.output(
            self.python, "-m", "gossamer.run", "--run-dir", self.folder / name,
            "--peers", str(PEERS), "--set", f"rounds={rounds}",
            EXAMPLES / f"{name}.py")
        found = scores(out)
        self.assertEqual(len(found), PEERS, out)
        return found

    def alone(self, name, rounds):
        """Of the same peers, if they never mix."""
        found = scores(self.output(
            PYTHON, "-c", ALONE, EXAMPLES / f"{name}.py", str(PEERS),
            ROUNDS=str(rounds), PYTHONPATH=f"{STAND_IN}:{EXAMPLES}",
            OMP_NUM_THREADS="1"))
        self.assertEqual(len(found), PEERS, name)
        return found

    def better(self, name, rounds):
        mixed, alone = self.mixed(name, rounds), self.alone(name, rounds)
        print(f"{name}: mixed {mixed}, alone {alone}", flush=True)
        self.assertLess(max(mixed), min(alone))

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
        self.better("compiled", 300)

    def torchrun(self, processes, script, *arguments):
        return self.output(
            PYTHON, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(processes), script, *arguments, ROUNDS="20",
            PYTHONPATH=f"{STAND_IN}:{EXAMPLES}", OMP_NUM_THREADS="1")

    def test_stand_in_averages_as_ddp_does(self):
        """The all-reduce that python_scores.py compares with."""
        script = self.folder / "step.py"
        script.write_text(textwrap.dedent("""
            import os, sys, torch
            torch.manual_seed(1)
            net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(),
                                      torch.nn.Linear(8, 1))
            opt = torch.optim.Adam(net.parameters(), 1e-2)
            model = net
            if sys.argv[1] == "ddp":
                torch.distributed.init_process_group("gloo")
                model = torch.nn.parallel.DistributedDataParallel(net)
            else:
                import gossamer
                gossamer.join(players={"net": net})
            torch.manual_seed(int(os.environ["RANK"]))
            for _ in range(20):
                loss = (model(torch.randn(16, 4)) - 1).square().mean()
                opt.zero_grad(); loss.backward(); opt.step()
            if os.environ["RANK"] == "0":
                print("ends", torch.nn.utils.parameters_to_vector(
                    net.parameters()).tolist())
            if sys.argv[1] == "ddp":
                torch.distributed.destroy_process_group()
            """))
        ends = [[float(v) for v in re.search(
            r"ends \[(.*)\]", self.torchrun(2, script, how))[1].split(",")]
            for how in ("ddp", "stand-in")]
        self.assertEqual(len(ends[0]), 49)
        for ddp, own in zip(*ends):
            self.assertAlmostEqual(ddp, own, delta=1e-6)

    def test_loop_with_its_all_reduce(self):
        found = scores(self.torchrun(2, EXAMPLES / "stylegan_loop_ddp.py"))
        self.assertLess(max(found), 0.1)

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
