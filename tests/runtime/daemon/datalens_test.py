#!/usr/bin/env python3
"""Fleets of algorithm datalens as real processes: they stop, are killed and go
on, refuse what does not fit, and learn from scikit-learn's digits.

usage: datalens_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]

The last class needs deploy/digits.sh.
"""

import glob
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = ""
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                    "..")
LIMIT = 120  # seconds that no wait of these tests may exceed
EVERY = 3
BATCH = 10

SMALL = f"""
name: "small"
algorithm: "datalens"
seed: 3
peers: 3
game {{
  datalens {{ teachers: 40 teacher_width: 4 student_width: 16 }}
}}
evaluation {{ every: 0 samples: 200 }}
checkpoint {{ every: {EVERY} }}
"""
NOISE = "game.datalens.noise_seed=3"


def write_digits(folder):
    """Images that only look like digits' lines: 64 values and a class."""
    os.makedirs(folder)
    draw = random.Random(1)
    with open(os.path.join(folder, "digits.csv"), "w") as f:
        for i in range(300):
            values = [draw.randint(0, 16) for _ in range(64)]
            f.write(",".join(map(str, values)) + f",{i % 10}\n")


def newest(folder):
    names = [os.path.basename(p) for p in glob.glob(folder + "/round-*")]
    return max((int(n[6:]) for n in names if n[6:].isdigit()), default=-1)


class Fleets(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.data = os.path.join(self.folder, "data")
        self.config = os.path.join(self.folder, "small.textproto")
        self.processes = []
        self.addCleanup(self.kill_all)
        write_digits(self.data)
        self.write_config(SMALL)

    def kill_all(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def write_config(self, text):
        with open(self.config, "w") as f:
            f.write(text)

    def start(self, *argv):
        process = subprocess.Popen(
            [os.path.join(BIN, argv[0]), *argv[1:]], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.processes.append(process)
        return process

    def end(self, process):
        out, err = process.communicate(timeout=LIMIT)
        return process.returncode, out, err

    def start_train(self, name, *more):
        argv = ["gossamer", "train", "--config", self.config, "--data",
                self.data, "--runs", self.runs(), "--name", name, "--json"]
        for word in more:
            argv += [word] if word.startswith("--") else ["--set", word]
        return self.start(*argv)

    def runs(self, *parts):
        return os.path.join(self.folder, "runs", *parts)

    def train(self, name, *more):
        code, out, err = self.end(self.start_train(name, *more))
        self.assertEqual(code, 0, err)
        return json.loads(out)["summary"]

    def refused(self, name, *more):
        code, _, err = self.end(self.start_train(name, *more))
        self.assertEqual(code, 2, err)
        return err

    def wait_for(self, condition, process):
        until = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > until or process.poll() is not None:
                raise AssertionError(f"not before the end: {self.end(process)}")
            time.sleep(0.002)

    def student(self, name):
        """A hash of all that the student has learnt, at its newest round."""
        folder = self.runs(name, "peer-1", "checkpoints")
        path = os.path.join(folder, f"round-{newest(folder)}",
                            "state.safetensors")
        with open(path, "rb") as f:
            bytes_of = f.read()
        header = int.from_bytes(bytes_of[:8], "little")
        names = json.loads(bytes_of[8:8 + header])
        begin, end = names["parameters"]["data_offsets"]
        return hashlib.sha256(
            bytes_of[8 + header + begin:8 + header + end]).hexdigest()

    def ledger(self, name):
        return newest(self.runs(name, "peer-1", "spent"))

    def kill_when_kept(self, name, rounds, *more):
        process = self.start_train(name, *more)
        folder = self.runs(name, "peer-1", "checkpoints")
        after = max(newest(folder), 1) + rounds
        self.wait_for(lambda: newest(folder) >= after, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def stop_when_kept(self, name, *more):
        process = self.start_train(name, *more)
        folder = self.runs(name, "peer-1", "checkpoints")
        after = max(newest(folder), 0) + 2 * EVERY
        self.wait_for(lambda: newest(folder) > after, process)
        process.send_signal(signal.SIGINT)
        code, out, err = self.end(process)
        self.assertEqual(code, 0, err)
        summary = json.loads(out)["summary"]
        self.assertFalse(summary["finished"])
        return summary

    def test_it_goes_on_after_a_stop(self):
        # The fleet agrees on a round seconds ahead. This budget lasts for a
        # minute or more.
        self.write_config(SMALL.replace("teachers: 40",
                                        "sigma: 2000 teachers: 40"))
        first = self.stop_when_kept("again", NOISE)
        last = self.stop_when_kept("again", NOISE, "--resume")
        self.assertGreater(last["rounds"], first["rounds"])
        self.assertEqual(self.ledger("again"), BATCH * last["rounds"])
        whole = self.train("whole", NOISE, f"rounds={last['rounds']}")
        self.assertTrue(whole["finished"])
        self.assertEqual(last["epsilon"], whole["epsilon"])
        self.assertEqual(self.student("again"), self.student("whole"))

    def test_it_goes_on_after_a_death(self):
        whole = self.train("whole", NOISE)
        self.assertTrue(whole["finished"])
        self.assertEqual(self.ledger("whole"), BATCH * whole["rounds"])
        # How the teachers are spread changes no bit.
        self.train("spread", NOISE, "peers=5")
        self.assertEqual(self.student("spread"), self.student("whole"))

        self.kill_when_kept("again", 2 * EVERY, NOISE)
        self.kill_when_kept("again", 2 * EVERY, NOISE, "--resume")
        last = self.train("again", NOISE, "--resume")
        self.assertTrue(last["finished"])
        self.assertEqual(last["epsilon"], whole["epsilon"])
        self.assertEqual(self.student("again"), self.student("whole"))
        self.assertEqual(self.ledger("again"), self.ledger("whole"))

        # Decisions repeat a run whose noise is kept.
        self.train("replayed", NOISE, "--replay=" + self.runs("whole"))
        self.assertEqual(self.student("replayed"), self.student("whole"))

    def test_a_death_buys_no_budget(self):
        allowed = BATCH * self.train("whole")["rounds"]
        self.kill_when_kept("killed", 3 * EVERY)
        for _ in range(2):
            self.kill_when_kept("killed", 3 * EVERY, "--resume")
        last = self.train("killed", "--resume")
        self.assertEqual(self.ledger("killed"), allowed)
        self.assertLessEqual(last["epsilon"], 10)
        self.assertGreater(last["epsilon"], 9.5)
        self.assertLessEqual(BATCH * last["steps"], allowed)
        self.assertIsNotNone(last["last_score"])
        # Nothing is left, and that is no error.
        again = self.train("killed", "--resume")
        self.assertEqual(self.ledger("killed"), allowed)
        self.assertEqual(again["steps"], last["steps"])
        # Nothing here forgets what was spent.
        err = self.refused("killed", "--overwrite")
        self.assertIn("the ledger of a privacy budget that stays spent", err)
        # A copy of another run's ledger is none of this one's.
        process = self.start_train("killed", "--resume",
                                   "game.datalens.top=31")
        code, _, err = self.end(process)
        self.assertEqual(code, 2, err)
        self.assertIn("top: 32 -> 31", err)
        # The noise of that run is kept nowhere.
        process = self.start_train("none", "--replay=" + self.runs("killed"))
        code, _, err = self.end(process)
        self.assertNotEqual(code, 0)
        self.assertIn("the noise of that run is kept nowhere", err)

    def test_a_damaged_ledger_has_no_replacement(self):
        self.kill_when_kept("damaged", EVERY)
        spent = self.runs("damaged", "peer-1", "spent")
        manifest = os.path.join(spent, f"round-{newest(spent)}",
                                "manifest.textproto")
        with open(manifest, "w") as f:
            f.write("half")
        code, _, err = self.end(self.start_train("damaged", "--resume"))
        self.assertEqual(code, 1)
        self.assertIn("nobody knows what is spent of the privacy budget", err)

    def test_samples_and_scores_are_drawn_from_the_student(self):
        self.train("seen", NOISE, "rounds=4")
        self.assertTrue(glob.glob(self.runs("seen", "samples", "*.png")))
        # The service is told of no parameters.
        self.assertEqual(os.path.getsize(self.runs("seen", "consensus.jsonl")),
                         0)
        picture = os.path.join(self.folder, "grid.png")
        code, out, err = self.end(self.start(
            "gossamer", "sample", "--run", self.runs("seen"), "--out",
            picture))
        self.assertEqual((code, out.strip()), (0, picture), err)
        self.assertGreater(os.path.getsize(picture), 1000)
        code, out, err = self.end(self.start(
            "gossamer", "evaluate", "--run", self.runs("seen"), "--json"))
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["basis"], "200 generated, 60 held-out")
        self.assertGreater(json.loads(out)["classifier-error"], 0.5)
        code, _, err = self.end(self.start(
            "gossamer", "sample", "--run", self.runs("seen"), "--of", "2"))
        self.assertEqual(code, 2, err)
        self.assertIn("peer 1 alone has a generator", err)
        tensors = os.path.join(self.folder, "g.safetensors")
        code, out, err = self.end(self.start(
            "gossamer", "checkpoint", "export", "--run", self.runs("seen"),
            "--out", tensors))
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r": 4 tensors, \d+ parameters")

    def test_values_that_are_not_finite(self):
        process = self.start_train("wild", "game.datalens.student_rate=1.5e38")
        code, _, err = self.end(process)
        self.assertEqual(code, 1)
        self.assertRegex(
            err, r"round 1: the student's parameters are not finite; .* "
            r"Epsilon \d+(\.\d+)? of 10 is spent and stays spent")
        self.assertEqual(self.ledger("wild"), BATCH)
        self.assertEqual(newest(self.runs("wild", "peer-1", "checkpoints")), -1)

        self.train("quiet", "game.datalens.teacher_rate=1e38", "rounds=3")
        for peer, first in ((2, 0), (3, 20)):
            with open(self.runs("quiet", "logs", f"peer-{peer}.log")) as f:
                log = f.read()
            self.assertIn(f"of teachers {first} to {first + 19} abstain, as "
                          "their gradients are not finite", log)
            # The service counts events, and is told nothing.
            with open(self.runs("quiet", f"peer-{peer}", "events.jsonl")) as f:
                self.assertNotIn("abstain", f.read())

    def test_refuses_what_is_wrong_with_its_line(self):
        for text, said in (
                ("teechers: 4", 'there is no key "teechers" in datalens; did '
                 'you mean "teachers"?'),
                ("top: 65", "game.datalens.top is 65; it must lie between 1 "
                 "and 64"),
                ("teachers: 0", "game.datalens.teachers is 0"),
                ("teachers: 1", "peers is 3, but besides the student each "
                 "needs a teacher"),
                ("epsilon: 0.01", "game.datalens.epsilon is 0.01, which is "
                 "spent after"),
                ("epsilon: 0", "game.datalens.epsilon is 0")):
            self.write_config('algorithm: "datalens" peers: 3\n'
                              "game { datalens {\n" + text + "\n} }\n")
            err = self.refused("wrong")
            self.assertIn(said, err)
            if "peers" not in said:
                self.assertIn("small.textproto:3:", err)
        self.write_config(SMALL)
        for change, said in (
                ("rounds=5000", "rounds is 5000, but the budget of epsilon 10 "
                 "pays for "),
                ("peers=1", "peers is 1, but peer 1 is the student"),
                ("step.n_critic=5", "step.n_critic is set, but a round of "
                 "datalens is one question"),
                ("mixing.overlap_steps=1", "mixing.overlap_steps is not 0"),
                ("mixing.clip_radius=1", "mixing.clip_radius is 1"),
                ("mixing.gradient_codec=qsgd", "datalens sends no gradients"),
                ("algorithm=dp-oadam", "game datalens has votes and no "
                 "gradients: take algorithm datalens"),
                ("game.quadratic.dimension=4", "is datalens, which learns from "
                 "votes")):
            self.assertIn(said, self.refused("wrong", change))
        self.data = os.path.join(self.folder, "nowhere")
        self.assertIn("deploy/digits.sh", self.refused("wrong"))

    # A service and peers that are started one by one.
    def start_service(self):
        port_file = os.path.join(self.folder, "port")
        service = self.start("gossamer-topology", "--listen", "127.0.0.1:0",
                             "--port-file", port_file, "--state",
                             os.path.join(self.folder, "state"), "--config",
                             self.config)
        self.wait_for(lambda: os.path.exists(port_file) and
                      os.path.getsize(port_file) > 0, service)
        with open(port_file) as f:
            return "127.0.0.1:" + f.read().strip()

    def start_peer(self, service, peer, *more):
        return self.start("gossamer-peer", "--topology", service, "--config",
                          self.config, "--id", str(peer), "--listen",
                          "127.0.0.1:0", "--data", self.data,
                          *(more if "--run-dir" in more else
                            ("--run-dir", self.runs("peers"), *more)))

    def test_others_are_refused(self):
        service = self.start_service()
        peers = [self.start_peer(service, 1), self.start_peer(service, 2)]
        # The settings of all are the same, or they do not begin.
        code, _, err = self.end(self.start_peer(
            service, 3, "--set", "game.datalens.sigma=201"))
        self.assertEqual(code, 1)
        self.assertIn("configuration", err)
        peers.append(self.start_peer(service, 3))
        ledger = self.runs("peers", "peer-1", "spent")
        self.wait_for(lambda: newest(ledger) >= 2 * BATCH, peers[0])
        # Nobody joins with what members have: it would be private.
        code, _, err = self.end(self.start_peer(service, 4))
        self.assertEqual(code, 1)
        self.assertIn("the run already has its 3 peers", err)
        for process in peers:
            code, _, err = self.end(process)
            self.assertEqual(code, 0, err)
        self.assertEqual(sorted(os.listdir(self.runs("peers", "peer-2"))),
                         ["checkpoints", "decisions.log", "events.jsonl",
                          "metrics.jsonl"])

    def test_two_processes_do_not_spend_from_one_ledger(self):
        first = self.start_train("both")
        ledger = self.runs("both", "peer-1", "spent")
        self.wait_for(lambda: newest(ledger) >= BATCH, first)
        service = self.start_service()
        code, _, err = self.end(self.start_peer(service, 1, "--run-dir",
                                                self.runs("both")))
        self.assertEqual(code, 1)
        self.assertIn("two processes must not spend from one ledger", err)
        self.assertEqual(self.end(first)[0], 0)


class Digits(unittest.TestCase):
    """The settings of deploy/configs/datalens.textproto, with a seed that chose
    none of them; 8 s on one core."""

    CHANCE = 0.1
    # Some five standard deviations of a guess at 359 images above chance.
    CLEARLY_ABOVE = 0.2

    def train(self, *changes):
        with tempfile.TemporaryDirectory() as folder:
            argv = [os.path.join(BIN, "gossamer"), "train", "--config",
                    os.path.join(ROOT, "deploy/configs/datalens.textproto"),
                    "--data", os.path.join(ROOT, "data/digits"), "--runs",
                    folder, "--json"]
            for change in ("seed=11", "game.datalens.noise_seed=11", *changes):
                argv += ["--set", change]
            done = subprocess.run(argv, capture_output=True, text=True,
                                  timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["summary"]

    def test_a_classifier_of_samples_knows_real_digits(self):
        result = self.train()
        self.assertLess(result["last_score"],
                        1 - self.CHANCE - self.CLEARLY_ABOVE)
        # All that may be spent, and no step more.
        self.assertTrue(result["finished"])
        self.assertEqual(result["steps"], 111)
        self.assertLessEqual(result["epsilon"], 10)
        self.assertGreater(result["epsilon"], 9.5)

    def test_a_small_budget_ends_it_earlier(self):
        # The row of algorithms/method/datalens.md where nothing is learnt.
        result = self.train("game.datalens.epsilon=1",
                            "game.datalens.teachers=300",
                            "game.datalens.sigma=1000")
        self.assertTrue(result["finished"])
        self.assertLessEqual(result["epsilon"], 1)
        self.assertGreater(result["epsilon"], 0.95)
        self.assertEqual(result["steps"], 47)
        self.assertGreater(result["last_score"],
                           1 - self.CHANCE - self.CLEARLY_ABOVE)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
