"""Fleets of Python programs that use the package as a user has it: the wheel is
built by scikit-build-core, installed into a clean virtual environment, and used
from there.

Tests run as FILE BUILD SOURCE PYTHON; PYTHON is an interpreter whose packages
include torch and scikit-build-core, and the clean environment takes torch from
there.
"""

import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import wheel

BUILD, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PYTHON = pathlib.Path(sys.argv[3]).absolute()

# Two small players on points, whose peers see different ones.
LOOP = """
import sys, time, torch, gossamer
torch.manual_seed(1)
G = torch.nn.Linear(4, 3)
D = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8),
                        torch.nn.Linear(8, 1))
opt = torch.optim.Adam([*G.parameters(), *D.parameters()], 1e-3)
def step(fleet):
    torch.manual_seed(1000 * fleet.id + fleet.round)
    loss = (D(G(torch.randn(16, 4)) + fleet.id) ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    return loss
def total():
    return float(sum(p.double().sum() for m in (G, D) for p in m.parameters()))
"""


class FleetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.python, cls.wheel = wheel.install(BUILD, SOURCE, PYTHON, cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def program(self, source, name):
        # No name of a module: the program's folder comes first for imports.
        program = self.folder / f"program_{name}.py"
        program.write_text(LOOP + textwrap.dedent(source))
        return program

    def command(self, source, name, *options):
        return [self.python, "-m", "gossamer.run", "--run-dir",
                self.folder / name, *options, self.program(source, name)]

    def fleet(self, source, name, *options, status=0):
        """What the programs of a fleet print, without the peers' own log."""
        with subprocess.Popen(
                self.command(source, name, *options), cwd=self.folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
            try:
                out = run.communicate(timeout=120)[0]
            except subprocess.TimeoutExpired:
                # A second signal ends the programs, which a kill would leave.
                for _ in range(2):
                    run.terminate()
                    time.sleep(1)
                self.fail(run.communicate()[0])
        self.assertEqual(run.returncode, status, out)
        return out

    @contextlib.contextmanager
    def service(self, name, config, *options):
        """A topology service of the wheel: (process, address, configuration)."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        file, port = folder / "run.textproto", folder / "port"
        file.write_text(config)
        service = subprocess.Popen(
            [self.python.parent / "gossamer-topology", "--config", file,
             "--listen", "127.0.0.1:0", "--port-file", port, "--state",
             folder / "topology", *options], stderr=subprocess.DEVNULL)
        try:
            limit = time.monotonic() + 20
            while not port.exists() or not port.read_text().strip():
                self.assertLess(time.monotonic(), limit, "no service")
                time.sleep(0.02)
            yield service, "127.0.0.1:" + port.read_text().strip(), file
        finally:
            service.kill()
            service.wait()

    @contextlib.contextmanager
    def started(self, program, *arguments):
        """A program by itself, without gossamer.run."""
        child = subprocess.Popen(
            [self.python, "-u", program, *arguments], text=True, cwd=self.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        try:
            yield child
        finally:
            child.kill()
            child.communicate()

    def ends(self, child, status=0):
        out = child.communicate(timeout=120)[0]
        self.assertEqual(child.returncode, status, out)
        return out

    def reads(self, child, pattern):
        """The next line of the program that has the pattern."""
        seen = ""
        for line in child.stdout:
            seen += line
            found = re.search(pattern, line)
            if found:
                return found
        self.fail(f"no line has {pattern}:\n{seen}")
