#!/usr/bin/env python3
"""The Python package: what is in it, and what holds of a fleet of programs.

    python_test.py BUILD SOURCE PYTHON
"""

import ast
import contextlib
import json
import re
import signal
import subprocess
import sys
import textwrap
import time
import unittest

import cpp_game
from python_fleet import BUILD, LOOP, SOURCE, FleetTest


class PythonTest(FleetTest):
    def test_wheel_serves_every_python(self):
        self.assertIn("-py3-none-", self.wheel.name)

        # One library for every torch: it links to none.
        package = next((self.folder / "clean/lib").glob(
            "python*/site-packages/gossamer"))
        needs = subprocess.run(
            ["readelf", "-d", package / "lib/libgossamer.so"], text=True,
            capture_output=True, check=True).stdout
        self.assertIn("libc.so", needs)
        self.assertNotRegex(needs, "torch|c10|python")

    def test_programs_are_installed(self):
        for name in ("gossamer", "gossamer-peer", "gossamer-topology"):
            done = subprocess.run([self.python.parent / name, "--help"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Usage: " + name, done.stdout)

    def test_package_has_its_types_and_words(self):
        out = subprocess.run([self.python, "-c", textwrap.dedent("""
            import ctypes, gossamer, inspect, pathlib
            from gossamer import _library
            assert (pathlib.Path(gossamer.__path__[0]) / "py.typed").exists()
            assert (gossamer.__version__ ==
                    _library.library.gossamer_version().decode())
            public = [(n, getattr(gossamer, n)) for n in gossamer.__all__
                      if not n.startswith("__")]
            public += [(f"Fleet.{n}", v) for n, v in vars(gossamer.Fleet).items()
                       if not n.startswith("_")]
            for name, thing in public:
                assert inspect.getdoc(thing), name
                call = thing.fget if isinstance(thing, property) else thing
                if not inspect.isfunction(call):
                    continue
                signature = inspect.signature(call)
                assert signature.return_annotation is not signature.empty, name
                for parameter in signature.parameters.values():
                    assert (parameter.name == "self" or parameter.annotation
                            is not parameter.empty), (name, parameter)
            print(len(public))
            """)], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertGreater(int(out.stdout), 10)

    def test_parameters_are_views_and_tied_ones_stay_tied(self):
        out = self.fleet("""
            import io
            tied = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
            tied[1].weight = tied[0].weight
            large = torch.nn.Linear(100, 100)
            odd = torch.nn.Linear(4, 3)
            odd.weight.data = torch.randn(4, 3).t()
            fleet = gossamer.join(players={"G": G, "T": tied, "odd": odd,
                                           "large": large})
            own = io.BytesIO()
            torch.save(G.state_dict(), own)
            print("saved", len(own.getvalue()) < 4000)
            places = [p.data_ptr() for p in [*G.parameters(), *tied.parameters()]]
            print("places", [b - a for a, b in zip(places, places[1:])])
            with torch.no_grad():
                while not fleet.over:
                    tied[1].weight += fleet.id * 2.0 ** -6
                    fleet.mix()
            print("tied", tied[1].weight is tied[0].weight,
                  tied[0].weight.data_ptr() == places[2],
                  float(tied[0].weight.sum()))
            """, "tied", "--peers", "2", "--set", "rounds=10", "--set",
            "mixing.codec=dense-f32")
        # A player is saved without the others.
        self.assertEqual(out.count("saved True"), 2, out)
        # Each tensor lies behind the one before, and the tied one once.
        self.assertEqual(out.count("places [48, 12, 64, 16]"), 2, out)
        sums = re.findall(r"tied True True (\S+)", out)
        self.assertEqual(len(sums), 2, out)
        self.assertLess(abs(float(sums[0]) - float(sums[1])), 16 * 10 * 2.0 ** -6)
        self.assertEqual(out.count("1 tensors are copied at every mix (not laid "
                                   "out row by row): odd.weight"), 2, out)

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

    def test_replays_the_mixing(self):
        # Payloads that come too late are the clock's doing, which a replay
        # repeats.
        source = """
            import json, os
            number = json.loads(os.environ["GOSSAMER_OPTIONS"])["--id"]
            log = f"{sys.argv[1]}/peer-{number}/decisions.log" if sys.argv[1:] else None
            fleet = gossamer.join(players={"G": G, "D": D}, replay=log)
            torch.manual_seed(fleet.id)
            with torch.no_grad():
                while not fleet.over:
                    for m in (G, D):
                        for p in m.parameters():
                            p += 0.01 * torch.randn(p.shape)
                    if not log and fleet.id == 2 and fleet.round % 10 == 0:
                        time.sleep(0.2)
                    fleet.mix()
            print("end", total().hex())
            """
        options = ("--peers", "3", "--set", "rounds=100", "--set",
                   "mixing.deadline=20ms")
        first = self.fleet(source, "first", *options)
        decided = "".join(
            (self.folder / f"first/peer-{i}/decisions.log").read_text()
            for i in (1, 3))
        self.assertIn("skip", decided)
        command = self.command(source, "again", *options)
        again = subprocess.run(
            [*command, self.folder / "first"], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(again.returncode, 0, again.stdout)
        ends = [sorted(re.findall(r"(\[\d\]) end (\S+)", out))
                for out in (first, again.stdout)]
        self.assertEqual(len(ends[0]), 3, first)
        self.assertEqual(*ends)

    def test_mix_waits_for_what_is_due_alone(self):
        out = self.fleet("""
            import pathlib
            fleet = gossamer.join(players={"G": G})
            def reached(peer, r): return pathlib.Path(f"due-{peer}-{r}")
            while not fleet.over:
                if fleet.id == 2 and fleet.round == 5:
                    while not reached(1, 7).exists():
                        time.sleep(0.01)
                    # Time enough for a round that does not wait.
                    time.sleep(1)
                    print("ahead", reached(1, 8).exists())
                reached(fleet.id, fleet.round).touch()
                fleet.mix()
            """, "due", "--peers", "2", "--set", "rounds=12", "--set",
            "mixing.overlap_steps=2")
        self.assertIn("ahead False", out)

    def test_buffers_are_averaged(self):
        out = self.fleet("""
            fleet = gossamer.join(players={"D": D}, buffers="averaged")
            with torch.no_grad():
                while not fleet.over:
                    D[1].running_mean += fleet.id * 2.0 ** -6
                    D[1].num_batches_tracked += fleet.id
                    fleet.mix()
            print("mean", float(D[1].running_mean.sum()),
                  int(D[1].num_batches_tracked))
            """, "averaged", "--peers", "4", "--set", "rounds=32", "--set",
            "mixing.codec=dense-f32")
        means, counts = zip(*re.findall(r"mean (\S+) (\d+)", out))
        expected = 8 * 32 * 2.5 * 2.0 ** -6
        self.assertAlmostEqual(sum(map(float, means)) / 4, expected, delta=1e-5)
        for mean in means:
            self.assertAlmostEqual(float(mean), expected, delta=expected / 10)
        # Whole numbers are each peer's own.
        self.assertEqual(sorted(map(int, counts)), [32, 64, 96, 128])

    def test_shards(self):
        out = self.fleet("""
            import os
            fleet = gossamer.join(players={"G": G})
            few = torch.utils.data.TensorDataset(torch.arange(1))
            try:
                print("few", len(next(fleet.shard(few))[0]))
            except ValueError as error:
                print("few", error)
            assert os.environ["GOSSAMER_RANK"] == str(fleet.id - 1)
            data = torch.utils.data.TensorDataset(torch.arange(21))
            begin = next(fleet.shard(data, batch_size=11))[0]
            seen = []
            for (x,) in fleet.shard(data, batch_size=4):
                seen.append(x.tolist())
                if fleet.round == 5:
                    # As after a resume.
                    later = next(fleet.shard(data, batch_size=11))[0]
                fleet.mix()
            print("seen", seen)
            print("orders", begin.tolist() != later.tolist(),
                  sorted(begin.tolist()) == sorted(later.tolist()))
            """, "shards", "--peers", "2", "--set", "rounds=7",
            "--set", f"seed={2**64 - 1}")
        self.assertEqual(len(re.findall(r"few 1$", out, re.M)), 1, out)
        self.assertIn("few shard: 1 examples are too few for 2 peers", out)
        seen = [ast.literal_eval(s) for s in re.findall(r"seen (.*)", out)]
        self.assertEqual([len(s) for s in seen], [7, 7], out)
        epochs = [[sorted(sum(s[i:i + 3], [])) for i in (0, 3)] for s in seen]
        for epoch in range(2):
            both = sorted(epochs[0][epoch] + epochs[1][epoch])
            self.assertEqual(both, list(range(21)))
        # Another order in each epoch, and after a resume.
        self.assertNotEqual(seen[0][:3], seen[0][3:6])
        self.assertEqual(out.count("orders True True"), 2, out)
        self.assertEqual(out.count("gossamer status --topology 127.0.0.1:"), 1,
                         out)

    def test_mixed_precision(self):
        out = self.fleet("""
            fleet = gossamer.join(players={"G": G, "D": D})
            scaler = torch.amp.GradScaler("cpu")
            begin = torch.cat([p.detach().flatten().clone()
                               for m in (G, D) for p in m.parameters()])
            while not fleet.over:
                torch.manual_seed(1000 * fleet.id + fleet.round)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    out = D(G(torch.randn(16, 4)) + fleet.id)
                assert out.dtype == torch.bfloat16
                opt.zero_grad()
                scaler.scale((out.float() ** 2).mean()).backward()
                scaler.step(opt)
                scaler.update()
                fleet.mix()
            end = torch.cat([p.detach().flatten() for m in (G, D)
                             for p in m.parameters()])
            print("moved", float((end - begin).norm()), end.dtype, end.tolist())
            """, "amp", "--peers", "2", "--set", "rounds=100", "--set",
            "mixing.codec=dense-f32")
        found = re.findall(r"moved (\S+) torch.float32 \[(.*)\]", out)
        self.assertEqual(len(found), 2, out)
        one, two = [[float(v) for v in values.split(",")] for _, values in found]
        apart = sum((a - b) ** 2 for a, b in zip(one, two)) ** 0.5
        for moved, _ in found:
            self.assertLess(apart, float(moved) / 4)

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

    def test_state_takes_longer_than_a_lease_to_save(self):
        out = self.fleet("""
            class Large:
                def state_dict(self):
                    print("saves", fleet.id, fleet.round, flush=True)
                    time.sleep(6 if fleet.id == 1 and fleet.round == 20 else 0)
                    return {"round": fleet.round}
                def load_state_dict(self, state):
                    pass
            fleet = gossamer.join(players={"G": G, "D": D},
                                  state={"large": Large()})
            while not fleet.over:
                step(fleet)
                fleet.mix()
            print("ends", fleet.id, fleet.members)
            """, "large", "--peers", "2", "--set", "rounds=40", "--set",
            "checkpoint.every=20")
        for peer in (1, 2):
            self.assertIn(f"ends {peer} 2", out)
        self.assertIn("saves 1 20", out)
        self.assertIn("saves 1 40", out)
        # The service leases a membership for four seconds.
        self.assertNotRegex(out, "evicted|outside|rejoined|not saved")

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
            # In one write, since parent and child end at the same time.
            sys.stdout.write(
                f"ends {fleet.id} {fleet.round} {fleet.members}\\n")
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

    def test_joins_by_address_leaves_and_comes_back(self):
        config = """game { caller {} } peers: 4 rounds: 100000
                    mixing { graph: "complete" }"""
        program = self.program("""
            import os
            config, address, number, *again = sys.argv[1:]
            D[1].running_mean.fill_(9)
            with gossamer.join(config, players={"G": G, "D": D}, id=int(number),
                               topology=address, state={"opt": opt},
                               run_dir="address" + "-again" * bool(again),
                               buffers="local") as fleet:
                print("begins", fleet.id, len(opt.state),
                      float(D[1].running_mean.min()))
                until = fleet.round + 30 if again else None
                while not fleet.over:
                    step(fleet)
                    time.sleep(0.01)
                    if fleet.id == 4 and fleet.round == 20:
                        fleet.leave()
                        break
                    if fleet.id == 3 and not again and fleet.round == 40:
                        os.kill(os.getpid(), 9)
                    if fleet.round == until:
                        break
                    fleet.mix()
                print("ends", fleet.id, fleet.over)
            assert fleet.over
            """, "address")
        with self.service("address", config) as (_, address, file), \
             contextlib.ExitStack() as programs:
            peers = [programs.enter_context(self.started(
                program, file, address, str(i))) for i in range(1, 5)]
            self.assertIn("ends 4 True", self.ends(peers[3]))
            self.ends(peers[2], status=-9)
            again = programs.enter_context(self.started(
                program, file, address, "3", "again"))
            # The optimizer's state is a member's, the batch statistics its own.
            self.reads(again, "begins 3 8 9.0")
            self.assertIn("ends 3 False", self.ends(again))
            peers[0].send_signal(signal.SIGTERM)
            peers[1].send_signal(signal.SIGTERM)

    def test_joins_behind_certificates(self):
        program = self.program("""
            config, address, number, certs = sys.argv[1:]
            fleet = gossamer.join(config, players={"G": G, "D": D}, certs=certs,
                                  topology=address, id=int(number),
                                  run_dir="certified")
            while not fleet.over:
                step(fleet)
                fleet.mix()
            print("ends", fleet.round)
            """, "certified")
        certs = self.folder / "certs"
        for command in (["init", "--run", "certified"],
                        ["issue", "--fleet", "2", "--out", certs]):
            subprocess.run([self.python.parent / "gossamer", "certs", *command,
                            "--ca", self.folder / "ca"], check=True,
                           capture_output=True)
        config = 'name: "certified" game { caller {} } peers: 2 rounds: 10'
        with self.service("certified", config, "--certs", certs / "topology") as (
                _, address, file), contextlib.ExitStack() as programs:
            peers = [programs.enter_context(self.started(
                program, file, address, str(i), certs / f"peer-{i}"))
                for i in (1, 2)]
            for peer in peers:
                self.assertIn("ends 10", self.ends(peer))

    def test_waits_without_the_interpreters_lock_and_ends_at_ctrl_c(self):
        program = self.program("""
            import threading
            config, address, number = sys.argv[1:]
            count = before = 0
            def counts():
                global count
                while True:
                    count += 1
            try:
                fleet = gossamer.join(config, players={"G": G}, run_dir="wait",
                                      topology=address, id=int(number))
                print("begins")
                if number == "2":
                    sys.stdin.read()  # this peer mixes no more
                fleet.mix()
                threading.Thread(target=counts, daemon=True).start()
                print("waits")
                before = count
                fleet.mix()
            except KeyboardInterrupt:
                print("interrupted", count - before if number == "1" else "")
            """, "wait")
        config = "game { caller {} } peers: 2 mixing { overlap_steps: steps_1 }"
        with self.service("wait", config) as (_, address, file), \
             self.started(program, file, address, "1") as one:
            # In join(), which waits for the other founder.
            self.reads(one, "registered as peer 1")
            one.send_signal(signal.SIGINT)
            self.assertIn("interrupted 0", self.ends(one))
        with self.service("wait", config) as (_, address, file), \
             self.started(program, file, address, "1") as one, \
             self.started(program, file, address, "2") as two:
            self.reads(two, "begins")
            self.reads(one, "waits")
            time.sleep(1)
            one.send_signal(signal.SIGINT)
            counted = re.search(r"interrupted (\d+)", self.ends(one))
            # Of a lock that a wait keeps: some hundreds, between two waits.
            self.assertGreater(int(counted[1]), 100_000)

    def test_goes_on_without_the_service(self):
        program = self.program("""
            import pathlib
            config, address, number = sys.argv[1:]
            fleet = gossamer.join(config, players={"G": G, "D": D},
                                  topology=address, id=int(number),
                                  run_dir="dead", state={"opt": opt},
                                  leave_within=10)
            print("begins")
            while fleet.round < 30:
                step(fleet)
                fleet.mix()
            while not pathlib.Path("dead/service-is-dead").exists():
                time.sleep(0.01)
            while fleet.round < 60:
                step(fleet)
                fleet.mix()
            print("has got to", fleet.round)
            # Nobody answers, so the time of the leave runs out.
            fleet.leave()
            """, "dead")
        config = "game { caller {} } peers: 2 rounds: 100000"
        with self.service("dead", config) as (service, address, file), \
             self.started(program, file, address, "1") as one, \
             self.started(program, file, address, "2") as two:
            self.reads(one, "begins")
            service.kill()
            service.wait()
            (self.folder / "dead/service-is-dead").touch()
            for peer in (one, two):
                self.reads(peer, "has got to 60")
                self.ends(peer)
        for number in (1, 2):
            (saved,) = (self.folder / f"dead/peer-{number}/checkpoints").glob(
                "round-*")
            self.assertGreater(len(cpp_game.state(saved)["game.caller"]), 0)

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

    def test_program_of_the_gpu_check(self):
        out = subprocess.run(
            [self.python, "-m", "gossamer.run", "--peers", "2", "--run-dir",
             self.folder / "gpu", "--set", "rounds=12", "--set",
             "mixing.overlap_steps=0", SOURCE / "deploy/gpu_library.py",
             self.folder, "cpu"], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(out.returncode, 0, out.stdout)
        left = [json.loads((self.folder / f"cpu-{i}.json").read_text())
                for i in (1, 2)]
        self.assertEqual([one["vector_on"] for one in left], ["cpu", "cpu"])
        # The increments of the two differ, and so do they in the middle.
        self.assertNotEqual(left[0]["bits"], left[1]["bits"])
        self.assertLess(abs(sum(one["mean_off"] for one in left)) / 2, 1e-6)
        self.assertGreater(left[0]["milliseconds"], 0)

    def test_halves_and_mirrors(self):
        out = self.fleet("""
            from gossamer import _players
            torch.manual_seed(1)
            kinds = {str(kind): torch.nn.Linear(3, 3).to(kind)
                     for kind in (torch.bfloat16, torch.float16)}
            halves = [p for half in kinds.values() for p in half.parameters()]
            # Behind G's 15 values and 24 halves, where no GPU would read it.
            tail = torch.nn.Linear(3, 1)
            for p in [*halves, *tail.parameters()]:
                p.data.fill_(1)
            _players._MIRROR_EVERYTHING = True
            fleet = gossamer.join(players={"G": G, **kinds, "tail": tail},
                                  buffers="local")
            halves[0].data.fill_(float("nan"))
            try:
                fleet.mix()
            except gossamer.PlayersError as error:
                print("refused", error)
            halves[0].data.fill_(1)
            while True:
                # Each half holds what a program adds, 2⁻⁶ or 2⁻⁵, and bfloat16
                # not the mean of these, 1.5 times 2⁻⁶: its master does.
                with torch.no_grad():
                    for p in [*halves, *G.parameters(),
                              *tail.parameters()]:
                        p += 2.0 ** -6 * fleet.id
                if not fleet.mix():
                    break
            print("values", *[float(p.float().mean()) for p in halves],
                  float(G.weight.detach().double().sum()),
                  float(fleet._flat.double().sum()),
                  float(tail.weight.detach().mean()))
            """, "halves", "--peers", "2", "--set", "rounds=31", "--set",
            "mixing.codec=dense-f32")
        self.assertEqual(
            out.count("refused mix: torch.bfloat16.weight (torch.bfloat16) has "
                      "the value nan"), 2, out)
        self.assertEqual(out.count("4 tensors are copied"), 0)
        self.assertEqual(out.count("2 tensors are copied at every mix "
                                   "(torch.float16)"), 2, out)
        self.assertEqual(out.count("2 tensors are copied at every mix (behind a "
                                   "tensor of odd size"), 2, out)
        values = [[float(v) for v in line.split()]
                  for line in re.findall(r"values (.*)", out)]
        self.assertEqual(len(values), 2, out)
        one, two = values
        added = 31 * 1.5 * 2.0 ** -6
        for a, b in zip(one[:4], two[:4]):
            # Peers that never mixed would be 31 times 2⁻⁶ apart.
            self.assertLess(abs(a - b), 4 * 2.0 ** -6)
            self.assertAlmostEqual((a + b) / 2, 1 + added, delta=2.0 ** -7)
        begin = subprocess.run(
            [self.python, "-c", LOOP + "print(float(G.weight.double().sum()), "
             "float(sum(p.double().sum() for p in G.parameters())))"],
            capture_output=True, text=True, check=True).stdout.split()
        weight = float(begin[0]) + 12 * added
        self.assertAlmostEqual((one[4] + two[4]) / 2 / weight, 1, delta=1e-6)
        # The masters keep the mean that the halves round.
        flat = float(begin[1]) + 15 * added + 28 * (1 + added)
        self.assertAlmostEqual((one[5] + two[5]) / 2 / flat, 1, delta=1e-6)
        self.assertAlmostEqual((one[6] + two[6]) / 2, 1 + added, delta=1e-6)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
