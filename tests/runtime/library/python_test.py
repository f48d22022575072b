#!/usr/bin/env python3
"""The Python package, as a user has it: the wheel is built by scikit-build-core,
installed into a clean virtual environment, and used from there.

    python_test.py BUILD SOURCE PYTHON

PYTHON is an interpreter whose packages include torch and scikit-build-core; the
clean environment takes torch from there.
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import cpp_game
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


class PythonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.python, cls.wheel = wheel.install(BUILD, SOURCE, PYTHON, cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def command(self, source, name, *options):
        # No name of a module: the program's folder comes first for imports.
        program = self.folder / f"program_{name}.py"
        program.write_text(LOOP + textwrap.dedent(source))
        return [self.python, "-m", "gossamer.run", "--run-dir",
                self.folder / name, *options, program]

    def fleet(self, source, name, *options, status=0):
        """What the programs of a fleet print, without the peers' own log."""
        done = subprocess.run(
            self.command(source, name, *options), cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_wheel_serves_every_python(self):
        self.assertIn("-py3-none-", self.wheel.name)

    def test_package_has_its_types_and_words(self):
        out = subprocess.run(
            [self.python, "-c", "import gossamer, pathlib; "
             "print((pathlib.Path(gossamer.__path__[0]) / 'py.typed').exists(), "
             "gossamer.__version__ == gossamer.join.__globals__["
             "'library'].gossamer_version().decode(), "
             "gossamer.join.__doc__.split()[0], "
             "gossamer.Fleet.mix.__doc__.split()[0])"],
            capture_output=True, text=True, check=True).stdout
        self.assertEqual(out.split(), ["True", "True", "Joins", "Ends"])

    def test_mixing_is_exactly_once_and_keeps_the_mean(self):
        out = self.fleet("""
            fleet = gossamer.join(players={"G": G, "D": D})
            with torch.no_grad():
                while True:
                    # Known increments, which floats add without rounding.
                    for m in (G, D):
                        for p in m.parameters():
                            p += fleet.id * 2.0 ** -6
                    if not fleet.mix():
                        break
            print("total", total())
            """, "mean", "--peers", "4", "--set", "rounds=64", "--set",
            "mixing.codec=innov-int4")
        totals = [float(t) for t in re.findall(r"total (\S+)", out)]
        self.assertEqual(len(totals), 4)
        begin = subprocess.run([self.python, "-c", LOOP + "print(total())"],
                               capture_output=True, text=True, check=True)
        count = 4 * 3 + 3 + 3 * 8 + 8 + 2 * 8 + 8 + 1
        # The mean of the ids is 2.5, and every round adds it once.
        expected = float(begin.stdout) + count * 64 * 2.5 * 2.0 ** -6
        self.assertAlmostEqual(sum(totals) / 4 / expected, 1, delta=1e-6)
        # Peers that never mixed would be this far apart.
        self.assertLess(max(totals) - min(totals), count * 64 * 2.0 ** -6)

    def test_players_have_codecs_and_rounds_of_their_own(self):
        out = self.fleet("""
            fleet = gossamer.join(players={"G": G, "D": D})
            mixed = {"G": 0, "D": 0}
            with torch.no_grad():
                while not fleet.over:
                    for m in (G, D):
                        for p in m.parameters():
                            p += fleet.id * 2.0 ** -6
                    before = [p.clone() for m in (G, D) for p in m.parameters()]
                    fleet.mix()
                    after = [p for m in (G, D) for p in m.parameters()]
                    moved = [not torch.equal(a, b) for a, b in zip(before, after)]
                    mixed["G"] += any(moved[:2])
                    mixed["D"] += any(moved[2:])
            print("total", total(), "mixed", mixed["G"], mixed["D"])
            """, "rounds", "--peers", "4", "--set", "rounds=64", "--set",
            "mixing.codec=innov-int8; G=dense-f32 every 4")
        lines = re.findall(r"total (\S+) mixed (\d+) (\d+)", out)
        self.assertEqual(len(lines), 4, out)
        begin = subprocess.run([self.python, "-c", LOOP + "print(total())"],
                               capture_output=True, text=True, check=True)
        count = 4 * 3 + 3 + 3 * 8 + 8 + 2 * 8 + 8 + 1
        expected = float(begin.stdout) + count * 64 * 2.5 * 2.0 ** -6
        mean = sum(float(total) for total, _, _ in lines) / 4
        self.assertAlmostEqual(mean / expected, 1, delta=1e-6)
        for _, generator, discriminator in lines:
            self.assertIn(int(generator), range(14, 18))
            self.assertGreater(int(discriminator), 60)

    def test_has_the_bits_of_a_cpp_program(self):
        """The game of deploy/examples/cpp, here in torch: the same increments,
        so the same parameters, mixed."""
        folder = self.folder / "cpp"
        folder.mkdir()
        game = cpp_game.build(BUILD, SOURCE, folder)
        config = ("game { caller {} } peers: 4 rounds: 300 seed: 3 "
                  "checkpoint { every: 100 } mixing { overlap_steps: steps_2 }")
        for (out, error), code in cpp_game.Fleet(BUILD, folder / "cpp", game,
                                                 config).end():
            self.assertEqual(code, 0, error)
        (folder / "run.textproto").write_text(config)
        self.fleet("""
            x = torch.tensor([0.0, 0.5, 1.0]).repeat(4096).view(3, 4096)
            names = ["rock", "paper", "scissors"]
            players = {n: {"x": x[k].view(64, 64).clone()}
                       for k, n in enumerate(names)}
            momentum = torch.zeros(3, 4096)
            fleet = gossamer.join(players=players)
            target = 1 + (fleet.id - 0.5 * (fleet.peers + 1))
            while not fleet.over:
                x = torch.stack([players[n]["x"].view(-1) for n in names])
                gradient = (x - target) + 0.5 * x[[1, 2, 0]]
                momentum = 0.9 * momentum + gradient
                for k, n in enumerate(names):
                    players[n]["x"].sub_((0.01 * momentum[k]).view(64, 64))
                fleet.mix()
            """, "torch", "--config", folder / "run.textproto")
        for i in range(1, 5):
            a, b = [cpp_game.state(root / f"peer-{i}/checkpoints/round-301")
                    for root in (folder / "cpp", self.folder / "torch")]
            self.assertTrue(a["parameters"] == b["parameters"], f"peer {i}")

    def test_equal_runs_have_equal_bits_and_resume(self):
        source = """
            fleet = gossamer.join(players={"G": G, "D": D},
                                  state={"opt": opt}, resume=%s)
            stop = %d
            while not fleet.over:
                loss = step(fleet)
                # Slow once it is asked to stop: the answer takes heartbeats,
                # and comes before the last round on a busy machine, too.
                time.sleep(0.2 if stop and fleet.round >= stop else 0.01)
                if fleet.id == 1 and fleet.round == stop:
                    fleet.stop()
                fleet.mix(G=loss)
            print("end", fleet.round, total().hex())
            """
        options = ("--peers", "3", "--set", "rounds=300")
        ends = [self.fleet(source % (False, 0), "one", *options),
                self.fleet(source % (False, 50), "two", *options),
                self.fleet(source % (True, 0), "two", *options, "--resume")]
        whole, cut, again = [sorted(re.findall(r"(\[\d\]) end (\d+) (\S+)", e))
                             for e in ends]
        self.assertEqual([w[1] for w in whole], ["300"] * 3)
        self.assertTrue(all(50 <= int(c[1]) < 300 for c in cut), cut)
        self.assertEqual(whole, again)

    def test_peers_leave_die_and_join(self):
        out = self.fleet("""
            import os, subprocess
            late = len(sys.argv) > 1
            if late:
                torch.manual_seed(5)
                D[1].running_mean.fill_(9)
            fleet = gossamer.join(players={"G": G, "D": D}, state={"opt": opt},
                                  **({"id": 5} if late else {}))
            print("begins", fleet.id, fleet.round, len(opt.state),
                  float(D[1].running_mean.abs().max()))
            child, until = None, 0
            while not fleet.over:
                step(fleet)
                time.sleep(0.01)
                if fleet.id == 2 and fleet.round == 30:
                    raise RuntimeError("a bug of the program")
                if fleet.id == 3 and fleet.round == 60:
                    os.kill(os.getpid(), 9)
                if fleet.id == 1 and fleet.members == 2 and not child:
                    child = subprocess.Popen([sys.executable, *sys.argv, "late"])
                if fleet.id == 1 and fleet.members == 3 and child and not until:
                    until = fleet.round + 30
                if until and fleet.round == until:
                    fleet.stop()
                fleet.mix()
            print("ends", fleet.id, fleet.round, fleet.members)
            if child:
                sys.exit(child.wait())
            """, "change", "--peers", "4", "--set", "rounds=100000", "--set",
            "mixing.graph=complete", status=137)
        self.assertIn("a bug of the program", out)
        self.assertIn("peer 2: left before round", out)
        self.assertRegex(out, r"program 3 ended with status -9; the others go on")
        late = re.search(r"begins 5 (\d+) (\d+) (\S+)", out)
        self.assertIsNotNone(late, out)
        # It has the optimizer's state and the batch statistics of a member.
        self.assertGreater(int(late[1]), 60)
        self.assertEqual(int(late[2]), 8)
        self.assertLess(float(late[3]), 9)
        ends = re.findall(r"ends (\d) (\d+) 3", out)
        self.assertEqual(sorted(e[0] for e in ends), ["1", "4", "5"], out)
        self.assertEqual(len({e[1] for e in ends}), 1, ends)

    def test_signal_stops_the_fleet_in_good_order(self):
        command = self.command("""
            import time
            fleet = gossamer.join(players={"G": G, "D": D})
            print("begins")
            while fleet.mix():
                time.sleep(0.02)
            print("ends", fleet.round)
            """, "signal", "--peers", "2", "--set", "rounds=100000")
        with subprocess.Popen([str(c) for c in command], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as fleet:
            seen = ""
            while seen.count("begins") < 2:
                line = fleet.stdout.readline()
                self.assertTrue(line, seen)
                seen += line
            fleet.send_signal(signal.SIGINT)
            rest = fleet.communicate(timeout=60)[0]
        self.assertEqual(fleet.returncode, 0, rest)
        self.assertEqual(rest.count("ends"), 2, rest)

    def test_wrong_programs(self):
        """One clear exception each, and the fleet goes on."""
        out = self.fleet("""
            import os, threading
            def refused(what, work, kind):
                try:
                    work()
                except kind as error:
                    print(what, type(error).__name__, str(error).split(";")[0])
                else:
                    print(what, "was taken")
            refused("name", lambda: gossamer.join(players={"x" * 65: G}),
                    ValueError)
            fleet = gossamer.join(players={"G": G, "D": D})
            def mix(): fleet.mix()
            G.weight.data[1, 2] = float("nan")
            refused("nan", mix, gossamer.PlayersError)
            G.weight.data[1, 2] = 1
            old = G.bias
            G.bias = torch.nn.Parameter(torch.zeros(3))
            refused("replaced", mix, gossamer.PlayersError)
            G.bias = old
            data = old.data
            old.data = torch.zeros(3)
            refused("moved", mix, gossamer.PlayersError)
            old.data = data
            refused("second", lambda: gossamer.join(players={"G": G}), ValueError)
            refused("losses", lambda: fleet.mix(X=1), ValueError)
            # The other peers are rounds behind, so this mix waits.
            fleet.mix()
            def other():
                refused("thread", mix, gossamer.FleetError)
            fleet._lock.acquire()
            thread = threading.Thread(target=other); thread.start(); thread.join()
            fleet._lock.release()
            pid = os.fork()
            if pid == 0:
                refused("forked", mix, gossamer.ForkedError)
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(pid, 0)
            kept = G.state_dict()
            while fleet.mix():
                pass
            fleet.close()
            refused("closed", mix, gossamer.FleetError)
            # The parameters outlive the fleet, with all that views them.
            assert torch.equal(kept["weight"], G.weight) and G.weight.isfinite().all()
            print("ends")
            """, "wrong", "--peers", "2", "--set", "rounds=20")
        for line in [r"name ValueError x{65}.weight: the player's name has 65",
                     r"nan PlayersError mix: G.weight has the value nan at index 6",
                     r"replaced PlayersError G.bias was replaced",
                     r"moved PlayersError G.bias was replaced",
                     r"second ValueError this process has a peer already",
                     r"losses ValueError mix: there is no player X",
                     r"thread FleetError mix: another thread",
                     r"forked ForkedError gossamer_mix: this process",
                     r"closed FleetError mix: this fleet has been closed",
                     r"ends"]:
            self.assertEqual(len(re.findall(r"\[\d\] " + line, out)), 2,
                             line + "\n" + out)

    def test_players_that_differ(self):
        out = self.fleet("""
            import json, os
            number = json.loads(os.environ["GOSSAMER_OPTIONS"])["--id"]
            wide = torch.nn.Linear(4, 5 if number == "2" else 3)
            try:
                fleet = gossamer.join(players={"G": wide})
                while fleet.mix():
                    pass
            except gossamer.FleetError as error:
                print("refused", error)
                sys.exit(3)
            """, "differ", "--peers", "2", "--set", "rounds=5", status=3)
        self.assertIn("before the fleet had begun", out)
        self.assertRegex(out, r"parameter layout [0-9a-f]{16} is not the run's "
                         r"[0-9a-f]{16}.*tensor 1 is \"G.weight \d,4\" of this "
                         r"peer and \"G.weight \d,4\" of the run's first peer")

    def test_codec_of_no_player(self):
        out = self.fleet("""
            try:
                gossamer.join(players={"G": G, "D": D})
            except ValueError as error:
                print("refused", error)
                sys.exit(3)
            """, "nobody", "--peers", "2", "--set", "rounds=5", "--set",
            "mixing.codec=innov-int4; H=innov-sign", status=3)
        self.assertIn('there is no player "H" in this game', out)

    def test_players_that_begin_apart(self):
        out = self.fleet("""
            import json, os
            torch.manual_seed(int(json.loads(
                os.environ["GOSSAMER_OPTIONS"])["--id"]))
            try:
                gossamer.join(players={"G": torch.nn.Linear(4, 3)})
            except gossamer.FleetError as error:
                print("refused", error)
                sys.exit(3)
            """, "apart", "--peers", "2", "--set", "rounds=5", status=3)
        self.assertIn("seed the generator of random numbers", out)

    def test_players_that_cannot_be_mixed(self):
        done = subprocess.run([self.python, "-c", LOOP + textwrap.dedent("""
            import gossamer
            def refused(players, **more):
                try:
                    gossamer.join(players=players, topology="127.0.0.1:1", **more)
                except (gossamer.PlayersError, ValueError) as error:
                    print(type(error).__name__, error)
            refused({})
            refused({"G": [("w", torch.zeros(2, dtype=torch.float64))]})
            refused({"G": [("w", 3)]})
            refused({"G": G, "H": G})
            refused({"G": G}, buffers="some")
            refused({"G": G}, set=["mixing.codec=wrong"])
            refused({"G": G}, id=0, config="/nowhere")
            """)], capture_output=True, text=True)
        lines = done.stdout.splitlines()
        for line, words in zip(lines, [
                "there are no players", "G.w is torch.float64",
                "G.w is a int, not a tensor",
                "H.weight is the same tensor as G.weight", 'buffers is "some"',
                "mixing.codec", "/nowhere"], strict=True):
            self.assertIn(words, line)

    def test_halves_mirrors_and_odd_layouts(self):
        out = self.fleet("""
            from gossamer import _players
            torch.manual_seed(1)
            half = torch.nn.Linear(3, 3).to(torch.bfloat16)
            odd = torch.nn.Linear(4, 3)
            odd.weight.data = torch.randn(4, 3).t()
            _players._MIRROR_EVERYTHING = True
            fleet = gossamer.join(players={"G": G, "half": half, "odd": odd},
                                  buffers="local")
            for p in half.parameters():
                p.data.fill_(float("nan"))
            try:
                fleet.mix()
            except gossamer.PlayersError as error:
                print("refused", error)
            for p in half.parameters():
                p.data.fill_(1)
            with torch.no_grad():
                while True:
                    # A bfloat16 near 1 cannot hold what is added: its master
                    # does, since the program adds it where it can.
                    for p in half.parameters():
                        p += 2.0 ** -7 * fleet.id
                    odd.weight += 2.0 ** -6 * fleet.id
                    G.weight += 2.0 ** -6 * fleet.id
                    if not fleet.mix():
                        break
            print("values", float(half.weight.float().mean()),
                  odd.weight.is_contiguous(), float(odd.weight.sum()),
                  float(G.weight.sum()))
            """, "halves", "--peers", "2", "--set", "rounds=32", "--set",
            "mixing.codec=dense-f32")
        self.assertEqual(out.count("refused mix: half.weight has the value nan"),
                         2, out)
        values = [v.split() for v in re.findall(r"values (.*)", out)]
        self.assertEqual(len(values), 2, out)
        # 32 rounds of 2⁻⁷ times the mean of the ids, 1.5.
        self.assertAlmostEqual(sum(float(v[0]) for v in values) / 2,
                               1 + 32 * 1.5 * 2.0 ** -7, delta=0.02)
        self.assertEqual({v[1] for v in values}, {"False"})
        for column in (2, 3):
            apart = abs(float(values[0][column]) - float(values[1][column]))
            self.assertLess(apart, 12 * 32 * 2.0 ** -6 / 2)

    def test_service_that_is_not_there(self):
        began = time.monotonic()
        done = subprocess.run([self.python, "-c", LOOP + textwrap.dedent("""
            try:
                gossamer.join(players={"G": G}, topology="127.0.0.1:1", id=1,
                              set=["mixing.liveness_limit=2s"])
            except gossamer.FleetError as error:
                print("refused", error)
            """)], capture_output=True, text=True, cwd=self.folder)
        self.assertIn("refused", done.stdout, done.stderr)
        self.assertLess(time.monotonic() - began, 60)

    def test_run_says_what_is_wrong(self):
        for options, words in [(["--peers", "0", "x.py"], "--peers 0"),
                               (["/nowhere.py"], "no such file"),
                               (["--set", "rounds=x", __file__], "rounds")]:
            done = subprocess.run([self.python, "-m", "gossamer.run", *options],
                                  cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
