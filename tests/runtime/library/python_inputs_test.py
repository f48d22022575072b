#!/usr/bin/env python3
"""Programs that the Python package refuses, or that do what they must not: one
clear exception each, and the fleet goes on.

    python_inputs_test.py BUILD SOURCE PYTHON
"""

import contextlib
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from python_fleet import LOOP, FleetTest


class PythonInputsTest(FleetTest):
    def test_wrong_programs(self):
        """One clear exception each, and the fleet goes on."""
        out = self.fleet("""
            import os, pathlib, threading
            def refused(what, work, kind):
                try:
                    work()
                except kind as error:
                    print(what, type(error).__name__, str(error).split(";")[0])
                else:
                    print(what, "was taken")
            refused("name", lambda: gossamer.join(players={"x" * 65: G}),
                    ValueError)
            refused("device", lambda: gossamer.join(players={"G": G},
                                                    device="cuda"), ValueError)
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
            # Peer 2 begins its step when one of two threads of peer 1 has been
            # refused, and then the other way round: until then nobody mixes.
            def turns(peer):
                said = pathlib.Path(f"wrong-thread-{peer}")
                if fleet.id != peer:
                    while not said.exists():
                        time.sleep(0.01)
                    fleet.mix()
                    return
                def one():
                    try:
                        fleet.mix()
                    except gossamer.FleetError as error:
                        print("thread", type(error).__name__, error)
                        said.touch()
                threads = [threading.Thread(target=one) for _ in range(2)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
            turns(1)
            turns(2)
            data = torch.utils.data.TensorDataset(torch.arange(8.))
            batches = torch.utils.data.DataLoader(data, 4, num_workers=2)
            for _, (x,) in zip(range(4), fleet.loop(batches)):
                fleet.mix()
            pid = os.fork()
            if pid == 0:
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
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
            """, "wrong", "--peers", "2", "--set", "rounds=20", "--set",
            "mixing.overlap_steps=0")
        for line in [r"name ValueError x{65}.weight: the player's name has 65",
                     r'device ValueError device is "cuda"',
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
        """By name, shape or numbers, from those of a fleet that goes on."""
        program = self.program("""
            import pathlib
            config, address, number, player, features, kind = sys.argv[1:]
            mine = torch.nn.Linear(4, int(features)).to(getattr(torch, kind))
            try:
                fleet = gossamer.join(config, players={player: mine},
                                      topology=address, id=int(number))
            except gossamer.FleetError as error:
                print("refused", error)
                sys.exit(3)
            print("begins")
            while not pathlib.Path("differ/done").exists():
                fleet.mix()
                time.sleep(0.01)
            print("ends")
            """, "differ")
        config = "game { caller {} } peers: 2 rounds: 100000"
        with self.service("differ", config) as (_, address, file), \
             contextlib.ExitStack() as programs:
            def start(number, *players):
                return programs.enter_context(self.started(
                    program, file, address, str(number), *players))
            members = [start(i, "G", "3", "float32") for i in (1, 2)]
            for peer in members:
                self.reads(peer, "begins")
            for number, player, features, kind, own in [
                    (3, "H", "3", "float32", "H.weight 3,4"),
                    (4, "G", "5", "float32", "G.weight 5,4"),
                    (5, "G", "3", "bfloat16", "G.weight (torch.bfloat16) 3,4")]:
                out = self.ends(start(number, player, features, kind), status=3)
                self.assertRegex(
                    out, r"parameter layout [0-9a-f]{16} is not the run's "
                    rf'[0-9a-f]{{16}}.*tensor 1 is "{re.escape(own)}" of this '
                    r'peer and "G.weight 3,4" of the run')
            (self.folder / "differ/done").touch()
            for peer in members:
                self.assertIn("ends", self.ends(peer))

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
                except (gossamer.FleetError, ValueError, TypeError) as error:
                    print(type(error).__name__, error)
            refused({})
            refused([G, D])
            refused({"G": opt})
            refused({"G": G}, state={"epoch": 3})
            refused({"G": G}, state={"opt": type("Odd", (), {
                "state_dict": lambda self: {"x": print},
                "load_state_dict": None})()})
            refused({"G": [("w", torch.zeros(2, dtype=torch.float64))]})
            refused({"G": [("w", 3)]})
            refused({"G": G, "H": G})
            refused({"G": G}, buffers="some")
            refused({"G": G}, set=["mixing.codec=wrong"])
            refused({"G": G}, id=0, config="/nowhere")
            """)], capture_output=True, text=True)
        lines = done.stdout.splitlines()
        for line, words in zip(lines, [
                "there are no players", "players is a list",
                "player G: give a torch.nn.Module", "state: epoch is a int",
                "tensors, numbers, texts and containers", "G.w is torch.float64",
                "G.w is a int, not a tensor",
                "H.weight is the same tensor as G.weight", 'buffers is "some"',
                "mixing.codec", "/nowhere"], strict=True):
            self.assertIn(words, line)

    def test_gpu_that_fails_in_a_step(self):
        """What torch says then, it says again at the leave: the peer still ends."""
        out = self.fleet("""
            from gossamer._fleet import Fleet
            try:
                with gossamer.join(players={"G": G}, leave_within=10) as fleet:
                    while not fleet.over:
                        if fleet.id == 1 and fleet.round == 5:
                            def fails(fleet):
                                raise RuntimeError("device-side assert")
                            Fleet._settle = fails
                        time.sleep(0.02)
                        fleet.mix()
                print("ends")
            except RuntimeError as error:
                print("failed", error)
            """, "fails", "--peers", "3", "--set", "rounds=300")
        self.assertIn("failed device-side assert", out)
        self.assertEqual(out.count("ends"), 2, out)
        self.assertIn("left before round", out)

    def test_gpu_that_cannot_be_had(self):
        """The reason comes back, and the parameters are mixed where they were."""
        out = self.fleet("""
            import types
            from gossamer._fleet import Fleet
            used = Fleet._use_memory
            def asks(fleet, vector):
                there = types.SimpleNamespace(device=torch.device("cuda", 99),
                                              data_ptr=lambda: 0)
                print("refused", used(fleet, there))
                return used(fleet, vector)
            Fleet._use_memory = asks
            fleet = gossamer.join(players={"G": G})
            while fleet.mix():
                pass
            print("ends")
            """, "gpu", "--peers", "2", "--set", "rounds=3")
        self.assertEqual(len(re.findall(
            r"refused .*(has no CUDA|no NVIDIA driver|cuda:99 is not there)",
            out)), 2, out)
        self.assertEqual(out.count("ends"), 2, out)

    def test_service_that_is_not_there(self):
        done = subprocess.run([self.python, "-c", LOOP + textwrap.dedent("""
            try:
                gossamer.join(players={"G": G}, topology="127.0.0.1:1", id=1,
                              set=["mixing.liveness_limit=2s"])
            except gossamer.FleetError as error:
                print("refused", error)
            """)], capture_output=True, text=True, cwd=self.folder)
        self.assertRegex(done.stdout, "refused .*127.0.0.1:1")

    def test_checkpoint_of_other_players(self):
        source = """
            try:
                fleet = gossamer.join(players={"G": G, sys.argv[1]: D})
            except gossamer.FleetError as error:
                print("refused", error)
                sys.exit(3)
            while fleet.mix():
                pass
            """
        for player, more, status in [("D", [], 0), ("E", ["--resume"], 3)]:
            command = self.command(source, "renamed", "--peers", "2", "--set",
                                   "rounds=20", *more)
            done = subprocess.run(
                [*command, player], cwd=self.folder, text=True, timeout=120,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, status, done.stdout)
        self.assertRegex(done.stdout, "refused .*layout")

    def test_programs_that_fail_lose_nothing(self):
        """Few rounds pass after an exception in all programs, and what they
        leave is there for a program that is right."""
        source = """
            names = {{"{name}": opt}}
            fleet = gossamer.join(players={{"G": G, "D": D}}, state=names)
            print("begins at", fleet.round, len(opt.state_dict()["state"]))
            for n in range(1, {most} + 1):
                step(fleet)
                if n == {most}:
                    raise RuntimeError("the program is wrong")
                fleet.mix()
            """
        options = ("--peers", "2", "--set", "rounds=100000")
        out = self.fleet(source.format(name="opt", most=20), "raises", *options,
                         status=1)
        first = [int(n) for n in re.findall(r"stopped before round (\d+)", out)]
        self.assertEqual(len(first), 2, out)
        self.assertLess(max(first), 3000, out)
        out = self.fleet(source.format(name="other", most=5), "raises",
                         "--resume", status=1)
        self.assertEqual(out.count(
            "the state that was saved has opt, and join was given other"), 2, out)
        # All parameters but those of the batch statistics have moments.
        out = self.fleet(source.format(name="opt", most=5), "raises", "--resume",
                         status=1)
        again = re.findall(r"begins at (\d+) (\d+)", out)
        self.assertEqual([moments for _, moments in again], ["8", "8"], out)
        self.assertGreaterEqual(int(again[0][0]), max(first), out)

    def test_a_folder_has_one_run(self):
        # Beside it, pairs that can be read once, and a line that is no text.
        source = """
            import sys
            sys.stdout.buffer.write(b"no text: \\xff\\n")
            fleet = gossamer.join(players={"G": G.named_parameters(), "D": D})
            while fleet.mix():
                pass
            """
        options = ("--peers", "1", "--set", "rounds=5")
        self.fleet(source, "one", *options)
        self.assertIn("rounds: 5\n",
                      (self.folder / "one/config.textproto").read_text())
        self.assertIn("no text: \ufffd\n",
                      (self.folder / "one/program-1.log").read_text())
        out = self.fleet(source, "one", *options, status=2)
        self.assertIn("has a run already", out)
        out = self.fleet(source, "one", "--overwrite", "--set", "rouns=5",
                         status=2)
        self.assertTrue((self.folder / "one/peer-1/metrics.jsonl").exists(), out)
        self.fleet(source, "one", *options, "--overwrite")
        lines = (self.folder / "one/peer-1/metrics.jsonl").read_text()
        self.assertEqual(lines.count("\n"), 5)
        # The difference is named, and peers refuse their checkpoints.
        out = self.fleet(source, "one", "--resume", "--set", "rounds=7", status=1)
        self.assertIn("now rounds: 7, before rounds: 5", out)
        out = self.fleet(source, "none", "--resume", status=2)
        self.assertIn("there is no checkpoint", out)
        self.assertFalse((self.folder / "none").exists())

    def test_a_long_wait_is_told(self):
        out = self.fleet("""
            fleet = gossamer.join(players={"G": G, "D": D})
            for n in range(1, 11):
                if fleet.id == 1:
                    gossamer._fleet._LONG_WAIT = 1 if n in (5, 6) else 600
                if n == 5 and fleet.id == 2:
                    time.sleep(4)
                fleet.mix()
            """, "waits", "--peers", "2", "--set", "rounds=10")
        self.assertRegex(out, r"\[1\] gossamer: peer 1 has waited for 1 s after "
                         r"round \d+, .*; gossamer status --topology")
        self.assertNotIn("[2] gossamer:", out)

    def test_a_signal_before_the_first_round_ends_all(self):
        source = "print('does not join yet'); time.sleep(600)"
        with subprocess.Popen(
                self.command(source, "early", "--peers", "1"),
                cwd=self.folder, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as run:
            for line in run.stdout:
                if "does not join yet" in line:
                    break
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(60), 130)
            self.assertIn("stopping the fleet", run.stdout.read())
        # Nothing was trained, so the folder is free.
        self.fleet("", "early", "--peers", "1")

    def test_programs_end_with_the_one_that_runs_them(self):
        program = """
            print("is", os.getpid(), flush=True)
            time.sleep(600)
            """
        with subprocess.Popen(
                self.command("import os" + textwrap.dedent(program), "orphans",
                             "--peers", "1"), cwd=self.folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            pid = next(int(line.split()[-1]) for line in run.stdout
                       if " is " in line)
            run.kill()
            run.wait()
            limit = time.monotonic() + 60
            while pathlib.Path(f"/proc/{pid}/exe").exists():
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.05)

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
