#!/usr/bin/env python3
"""A C++ program outside the tree, built against an installed gossamer by
find_package and by pkg-config, plays a game of three players as four peers.

    installed_test.py BUILD SOURCE
"""

import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cpp_game
from cpp_game import PEERS, Fleet, run, state

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(sys.argv[2]).resolve()

class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.prefix = cls.folder / "prefix"
        cls.game = cpp_game.build(BUILD, SOURCE, cls.folder)
        cls.example = cls.folder / "example"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_nothing_but_the_interface_is_visible(self):
        names = run("nm", "-D", "--defined-only", self.prefix /
                    "lib/libgossamer.so").split("\n")
        names = {line.split()[-1] for line in names if line}
        self.assertTrue(names)
        self.assertTrue(all(n.startswith("gossamer_") for n in names), names)

    def test_headers_stand_alone(self):
        for name, compiler in [("gossamer.h", ["cc", "-std=c99", "-xc"]),
                               ("gossamer.hpp", ["c++", "-std=c++17", "-xc++"])]:
            run(*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                self.prefix / "include",
                self.prefix / "include/gossamer" / name)

    def compile(self, program, *command):
        """By pkg-config's flags."""
        flags = run("pkg-config", "--cflags", "--libs", "gossamer", env={
            "PATH": "/usr/bin:/bin",
            "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}).split()
        run(*command, *flags, "-pthread", f"-Wl,-rpath,{self.prefix}/lib", "-o",
            program)
        return program

    def test_pkg_config(self):
        program = self.compile(self.folder / "by-hand", "c++", "-std=c++17",
                               self.example / "game.cc")
        self.assertIn("--topology", run(program, "--help"))

    def test_a_release_that_is_not_there(self):
        tree = self.folder / "later"
        tree.mkdir()
        (tree / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(later CXX)\n"
            "find_package(gossamer 9 REQUIRED)\n")
        done = subprocess.run(
            ["cmake", "-S", tree, "-B", tree / "build",
             f"-DCMAKE_PREFIX_PATH={self.prefix}"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"(?s)compatible with requested\s+version")

    def test_a_program_in_c(self):
        program = self.compile(
            self.folder / "in-c", "cc", "-std=c99", "-Wall", "-Wextra",
            "-Werror", "-D_POSIX_C_SOURCE=200809L",
            SOURCE / "tests/runtime/library/c_program.c")
        fleet = Fleet(
            BUILD, self.folder / "c", program,
            "game { caller {} } peers: 2 rounds: 64 checkpoint { every: 20 } "
            "mixing { codec: 'dense-f32' }", peers=0)
        # The second peer begins when a thread of the first has been refused.
        busy = fleet.start().stdout.readline()
        fleet.start()
        ends = fleet.end()
        self.assertRegex(busy, "^busy: gossamer_wait: another thread")
        values = []
        for (out, error), code in ends:
            self.assertEqual(code, 0, error)
            self.assertIn("state: the program's state was not saved", out)
            values.append(float(out.split("steps 64 value ")[1]))
        # Every round adds the mean of the ids, 1.5.
        self.assertAlmostEqual(sum(values) / 2, 64 * 1.5 / 64, delta=1e-5)

    def test_four_peers_play_and_resume(self):
        config = ("game { caller {} } peers: 4 rounds: 3000 seed: 3 "
                  "checkpoint { every: 100 } mixing { codec: 'dense-f32' }")
        ends = Fleet(BUILD, self.folder / "run", self.game, config).end()
        means = []
        for (out, error), code in ends:
            self.assertEqual(code, 0, error)
            means.append(float(out.split("mean ")[1]))
        # The targets average to 1 and every player's solution is t/1.5, though
        # no peer's own is near it.
        self.assertAlmostEqual(sum(means) / PEERS, 2 / 3, places=3)
        # A run that was stopped in the middle ends with the bits of one that
        # was not, its momentum with it.
        cut = Fleet(BUILD, self.folder / "cut", self.game, config)
        first = self.folder / "cut/peer-1/checkpoints/round-101"
        limit = time.monotonic() + 60
        while not first.exists():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.005)
        cut.peers[0].send_signal(signal.SIGINT)
        for (out, error), code in cut.end():
            self.assertEqual(code, 0, error)
            self.assertNotIn("mean", out)
        again = Fleet(BUILD, self.folder / "cut", self.game, config, "--resume").end()
        for (out, error), code in again:
            self.assertEqual(code, 0, error)
        for i in range(1, PEERS + 1):
            whole, cut = [
                state(self.folder / name / f"peer-{i}/checkpoints/round-3001")
                for name in ("run", "cut")]
            for name in ("parameters", "game.caller"):
                self.assertTrue(whole[name] == cut[name], f"{name} of peer {i}")

    def test_a_signal_leaves_in_the_middle_of_a_step(self):
        config = ("game { caller {} } peers: 4 rounds: 20000 "
                  "checkpoint { every: 100 }")
        fleet = Fleet(BUILD, self.folder / "leave", self.game, config)
        first = self.folder / "leave/peer-2/checkpoints/round-101"
        limit = time.monotonic() + 60
        while not first.exists():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.005)
        fleet.peers[1].terminate()
        out, error = fleet.peers[1].communicate(timeout=60)
        self.assertEqual(fleet.peers[1].returncode, 0, error)
        self.assertIn("left before round", error)
        fleet.peers[0].send_signal(signal.SIGINT)
        for (_, error), code in fleet.end(without=1):
            self.assertEqual(code, 0, error)

    def test_wrong_options(self):
        wrong = subprocess.run([self.game, "--topology", "127.0.0.1:1",
                                "--config", "/nowhere"], capture_output=True,
                               text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("/nowhere", wrong.stderr)
        config = self.folder / "gan.textproto"
        config.write_text("game { gan {} }")
        wrong = subprocess.run([self.game, "--topology", "127.0.0.1:1",
                                "--config", config], capture_output=True,
                               text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("gossamer-peer plays it", wrong.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
