#!/usr/bin/env python3
"""Real gossamer-datalens processes that are stopped, killed and started again.

usage: datalens_processes_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = ""
LIMIT = 120  # seconds that no wait of these tests may exceed
SETTINGS = ["--teachers", "40", "--teacher-width", "4", "--student-width", "16",
            "--seed", "3", "--quiet"]
NOISE = ["--noise-seed", "3"]
EVERY = 3


def write_digits(path):
    """Images that only look like digits' lines: 64 values and a class."""
    draw = random.Random(1)
    with open(path, "w") as f:
        for i in range(300):
            values = [draw.randint(0, 16) for _ in range(64)]
            f.write(",".join(map(str, values)) + f",{i % 10}\n")


def start_plain(command, *more):
    return subprocess.Popen(
        [os.path.join(BIN, "gossamer-datalens"), command, *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start(command, folder, *more):
    return start_plain(command, "--data", os.path.join(folder, "digits.csv"),
                       *SETTINGS, *more)


def end(process):
    """Its exit status, and its JSON or what it complains of."""
    out, err = process.communicate(timeout=LIMIT)
    return process.returncode, json.loads(out) if out else err


def wait_for(condition, process):
    until = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > until or process.poll() is not None:
            raise AssertionError(f"not before the end: {process.communicate()}")
        time.sleep(0.002)


def newest(folder):
    try:
        rounds = [int(n[6:]) for n in os.listdir(folder)
                  if n.startswith("round-") and n[6:].isdigit()]
    except FileNotFoundError:
        rounds = []
    return max(rounds, default=-1)


class DataLens(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.kept = os.path.join(self.folder, "kept")
        self.processes = []
        self.addCleanup(self.kill_all)
        write_digits(os.path.join(self.folder, "digits.csv"))

    def kill_all(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def picture(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def run_here(self, name, *more, every=EVERY):
        """`train` with two groups, which leaves a picture."""
        process = start("train", self.folder, "--groups", "2", "--json",
                        "--checkpoint-every", str(every), "--samples",
                        os.path.join(self.folder, name), *more)
        self.processes.append(process)
        return process

    def start_student(self, name, *more):
        port_file = os.path.join(self.folder, "port")
        if os.path.exists(port_file):
            os.remove(port_file)
        process = start("student", self.folder, "--groups", "2", "--json",
                        "--checkpoint-every", str(EVERY), "--samples",
                        os.path.join(self.folder, name), "--listen",
                        "127.0.0.1:" + more[0], "--port-file", port_file,
                        "--checkpoints", self.kept, *more[1:])
        self.processes.append(process)
        wait_for(lambda: os.path.exists(port_file) and
                 os.path.getsize(port_file) > 0, process)
        with open(port_file) as f:
            return process, f.read().strip()

    def start_teachers(self, port):
        groups = [start("teachers", self.folder, "--groups", "2", "--group",
                        str(g), "--student", "127.0.0.1:" + port,
                        "--checkpoints", self.kept) for g in range(2)]
        self.processes += groups
        return groups

    def whole(self, *more):
        code, result = end(self.run_here("whole.png", *more))
        self.assertEqual(code, 0, result)
        self.assertTrue(result["budget_spent"])
        self.assertGreater(result["steps"], 40)
        return result

    def until_step(self, step, process):
        wait_for(lambda: newest(os.path.join(self.kept, "student")) >= step,
                 process)

    def test_train_goes_on_after_a_stop_and_after_a_death(self):
        whole = self.whole(*NOISE)
        stays = ["--checkpoints", self.kept, *NOISE]
        process = self.run_here("stopped.png", *stays)
        self.until_step(2 * EVERY, process)
        process.send_signal(signal.SIGTERM)
        code, result = end(process)
        self.assertEqual(code, 0, result)
        self.assertTrue(result["stopped"])
        self.assertFalse(result["budget_spent"])
        self.assertLess(result["steps"], whole["steps"])
        self.assertEqual(newest(os.path.join(self.kept, "student")),
                         result["steps"])
        stopped = result["steps"]

        process = self.run_here("killed.png", *stays)
        self.until_step(stopped + 2 * EVERY, process)
        process.kill()
        process.communicate()
        code, result = end(self.run_here("last.png", *stays))
        self.assertEqual(code, 0, result)
        self.assertEqual(self.picture("last.png"), self.picture("whole.png"))
        for key in ("steps", "images_asked_about", "epsilon", "accuracy"):
            self.assertEqual(result[key], whole[key], key)

    def test_student_and_teachers_go_on_over_grpc(self):
        whole = self.whole(*NOISE)
        student, port = self.start_student("a.png", "0", *NOISE)
        teachers = self.start_teachers(port)
        self.until_step(2 * EVERY, student)
        student.send_signal(signal.SIGTERM)
        code, result = end(student)
        self.assertEqual(code, 0, result)
        self.assertTrue(result["stopped"])
        for group in teachers:
            self.assertEqual(end(group)[0], 0)

        # All again; this time teachers first, as a Ctrl-C may have it.
        student, port = self.start_student("b.png", "0", *NOISE)
        teachers = self.start_teachers(port)
        self.until_step(result["steps"] + 2 * EVERY, student)
        for process in (*teachers, student):
            process.send_signal(signal.SIGINT)
        for process in (*teachers, student):
            code, result = end(process)
            self.assertEqual(code, 0, result)
        self.assertTrue(result["stopped"])

        # Then the student alone dies and comes back.
        student, port = self.start_student("c.png", "0", *NOISE)
        teachers = self.start_teachers(port)
        self.until_step(result["steps"] + 2 * EVERY, student)
        student.kill()
        student.communicate()
        student, _ = self.start_student("last.png", port, *NOISE)
        code, result = end(student)
        self.assertEqual(code, 0, result)
        for group in teachers:
            self.assertEqual(end(group)[0], 0)
        self.assertEqual(self.picture("last.png"), self.picture("whole.png"))
        for key in ("steps", "images_asked_about", "epsilon", "accuracy"):
            self.assertEqual(result[key], whole[key], key)

    def test_a_death_buys_no_budget(self):
        stays = ["--checkpoints", self.kept]
        allowed = self.whole()["images_asked_about"]
        ledger = os.path.join(self.kept, "student", "spent")
        for _ in range(3):
            before = max(newest(ledger), 0)
            process = self.run_here("killed.png", *stays, every=0)
            wait_for(lambda: newest(ledger) >= before + 50, process)
            process.kill()
            process.communicate()
        spent = newest(ledger)
        code, last = end(self.run_here("last.png", *stays))
        self.assertEqual(code, 0, last)
        self.assertTrue(last["budget_spent"])
        self.assertEqual(last["images_asked_about"], allowed)
        self.assertLessEqual(last["epsilon"], last["epsilon_budget"])
        # No state was kept, so every life began anew, but not its budget.
        self.assertEqual(10 * last["steps"], allowed - spent)
        # And once more: nothing is left, and that is no error.
        code, again = end(self.run_here("again.png", *stays))
        self.assertEqual(code, 0, again)
        self.assertEqual({**again, "samples": ""}, {**last, "samples": ""})
        self.assertEqual(self.picture("again.png"), self.picture("last.png"))

    def configured(self, text, *more):
        """`train` told by a file, which is the only place with settings."""
        path = os.path.join(self.folder, "told.txt")
        with open(path, "w") as f:
            f.write(text)
        process = start_plain("train", "--config", path, "--quiet", *more)
        self.processes.append(process)
        return end(process)

    def test_a_configuration_says_what_options_say(self):
        code, said = end(self.run_here("said.png", *NOISE, "--steps", "9"))
        self.assertEqual(code, 0, said)
        text = f"""# As SETTINGS.
            data {os.path.join(self.folder, "digits.csv")}
            teachers 40
            teacher-width 4
            student-width 16
            groups 2
            steps 9
            noise-seed 3
            seed 4
            """
        picture = os.path.join(self.folder, "told.png")
        # Options go over it, on whichever side.
        code, told = self.configured(text, "--seed", "3", "--checkpoints",
                                     self.kept, "--json", "--samples", picture)
        self.assertEqual(code, 0, told)
        self.assertEqual({**told, "samples": ""}, {**said, "samples": ""})
        self.assertEqual(self.picture("told.png"), self.picture("said.png"))

        # What the folder keeps repeats it, from anywhere.
        again = os.path.join(self.folder, "again.png")
        process = subprocess.run(
            [os.path.join(BIN, "gossamer-datalens"), "train", "--config",
             os.path.join(self.kept, "config.txt"), "--quiet", "--json",
             "--samples", again], capture_output=True, text=True, cwd="/",
            timeout=LIMIT, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual({**json.loads(process.stdout), "samples": ""},
                         {**said, "samples": ""})
        self.assertEqual(self.picture("again.png"), self.picture("said.png"))
        with open(os.path.join(self.kept, "config.txt")) as f:
            kept = f.read()
        for line in ("seed 3", "sigma 200", "teachers 40", "noise-seed 3"):
            self.assertIn(f"\n{line}\n", kept)

    def test_refuses_what_is_wrong_before_it_looks_for_data(self):
        nowhere = f"data {self.folder}/nowhere.csv\n"
        for text, said in (
                ("top 32\nteechers 4\n",
                 'told.txt:3: there is no "teechers"; did you mean "teachers"?'),
                ("top 65\n", "top is 65; it must lie between 1 and 64"),
                ("teachers 0\n", "teachers is 0"),
                ("epsilon 0.01\n", "before the first batch of 10"),
                ("epsilon 0\n", "epsilon is 0"),
                ("groups 480\n", "groups is 480")):
            code, complaint = self.configured(nowhere + text)
            self.assertEqual(code, 2, complaint)
            self.assertIn(said, complaint)
            self.assertNotIn("digits.sh", complaint)
        code, complaint = self.configured(nowhere)
        self.assertEqual(code, 1, complaint)
        self.assertIn("deploy/digits.sh fetches it", complaint)
        code, complaint = end(start_plain("train", "--config", "/nowhere.txt"))
        self.assertEqual(code, 2, complaint)
        self.assertIn("--config /nowhere.txt: cannot be read", complaint)

    def test_the_example_configuration_is_one(self):
        example = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                               "../../../deploy/configs/digits.txt")
        code, result = end(start_plain(
            "train", "--config", example, "--data",
            os.path.join(self.folder, "digits.csv"), "--teachers", "40",
            "--steps", "1", "--quiet", "--json"))
        self.assertEqual(code, 0, result)
        self.assertEqual(result["epsilon_budget"], 10)

    def test_the_text_says_what_is_guaranteed(self):
        example = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                               "../../../deploy/configs/digits.txt")
        for more, unless in (((), ""),
                             (("--noise-seed", "3"),
                              ", were the noise's seed not known")):
            done = start_plain(
                "train", "--config", example, "--data",
                os.path.join(self.folder, "digits.csv"), "--teachers", "40",
                "--steps", "1", "--quiet", *more)
            out, complaint = done.communicate(timeout=LIMIT)
            self.assertEqual(done.returncode, 0, complaint)
            lines = out.splitlines()
            self.assertRegex(lines[0], r"^ended     .*, after 1 steps, 10 images$")
            privacy = re.fullmatch(
                r"privacy   \(([0-9.]+), 1e-05\)-DP of 10" + unless, lines[1])
            self.assertIsNotNone(privacy, lines[1])
            self.assertGreater(float(privacy[1]), 0)
            self.assertLess(float(privacy[1]), 10)
            self.assertRegex(lines[2], r"^accuracy  0\.[0-9]{3} on \d+ held-out")

    def test_a_student_that_is_not_finite_stops_and_says_so(self):
        code, complaint = end(self.run_here(
            "a.png", "--checkpoints", self.kept, "--student-rate", "1.5e38"))
        self.assertEqual(code, 1, complaint)
        self.assertRegex(
            complaint.strip(),
            r"^gossamer-datalens: step 1: the student's parameters are not "
            r"finite; .*Epsilon \d+(\.\d+)? of 10 is spent and stays spent$")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "a.png")))
        # Paid for, and no state of it is kept.
        self.assertEqual(newest(os.path.join(self.kept, "student", "spent")),
                         10)
        self.assertEqual(newest(os.path.join(self.kept, "student")), 0)

    def test_teachers_that_are_not_finite_abstain(self):
        process = self.run_here("a.png", "--checkpoints", self.kept,
                                "--teacher-rate", "1e38", "--steps", "3")
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(json.loads(out)["images_asked_about"], 30)
        said = err.strip().splitlines()
        self.assertEqual(len(said), 2, err)  # one of each group
        for group, line in enumerate(sorted(said)):
            self.assertIn(f"of teachers {20 * group} to {20 * group + 19} "
                          "abstain, as their gradients are not finite", line)

    def test_refuses_folders_of_others(self):
        stays = ["--checkpoints", self.kept, "--steps", "2"]
        code, result = end(self.run_here("a.png", *stays))
        self.assertEqual(code, 0, result)
        for more, said in (
                (["--top", "31"], '"top 31" here, "top 32" there'),
                (NOISE, '"noise-seed 3" here, "noise-seed none" there')):
            code, complaint = end(self.run_here("b.png", *stays, *more))
            self.assertEqual(code, 1, complaint)
            self.assertIn(said, complaint)
        with open(os.path.join(self.folder, "digits.csv"), "a") as f:
            f.write("0," * 64 + "1\n")
        code, complaint = end(self.run_here("b.png", *stays))
        self.assertEqual(code, 1, complaint)
        self.assertIn('"data ', complaint)


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
