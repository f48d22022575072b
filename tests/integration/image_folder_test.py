#!/usr/bin/env python3
"""Pictures of a person from a folder to samples: one file is made of them, real
peers train SAGAN on it, and pictures of a class are drawn and scored.

usage: image_folder_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import processes_test as processes

CONFIG = """
seed: 5
peers: 2
rounds: 20
algorithm: "dp-oadam"
step { beta1: 0 }
game {
  gan {
    model: "sagan"
    width: 4
    latent: 8
    loss: "hinge"
    batch: 2
    data { name: "image-folder" flip: true }
  }
}
evaluation { every: 10 samples: 30 }
"""


def png(width, height, colour):
    """Returns a PNG file of one colour that fades to the right."""
    rows = b"".join(
        b"\0" + b"".join(bytes(c * (width - x) // width for c in colour)
                         for x in range(width)) for _ in range(height))

    def chunk(name, content):
        return (struct.pack(">I", len(content)) + name + content +
                struct.pack(">I", zlib.crc32(name + content)))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class ImageFolderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="gossamer_image_folder_")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for c, colour in {"blue": (0, 0, 255), "green": (0, 255, 0),
                          "red": (255, 0, 0)}.items():
            for part, count in (("pictures", 20), ("others", 10)):
                os.makedirs(cls.path(part, c))
                for i in range(count):
                    with open(cls.path(part, c, f"{i}.png"), "wb") as file:
                        file.write(png(40 + i, 50, colour))
        with open(cls.path("config.textproto"), "w") as file:
            file.write(CONFIG)
        cls.built = cls.gossamer("data", "build", "--from",
                                 cls.path("pictures"), "--held-out",
                                 cls.path("others"), "--out",
                                 cls.path("data.images"), "--resolution", "32",
                                 "--json")
        cls.trained = cls.train("run", "data.images")

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @classmethod
    def gossamer(cls, *words):
        return processes.run(processes.program("gossamer"), *words)

    @classmethod
    def train(cls, name, data, *more):
        return cls.gossamer("train", "--config", cls.path("config.textproto"),
                            "--data", cls.path(data), "--runs",
                            cls.path("runs"), "--name", name, *more)

    def test_one_file_is_made_and_trained_on(self):
        self.assertEqual(self.built.returncode, 0, self.built.stderr)
        built = json.loads(self.built.stdout)
        self.assertEqual((built["train"], built["held_out"]), (60, 30))
        self.assertEqual(self.trained.returncode, 0, self.trained.stderr)

    def test_samples_are_of_the_class_that_is_asked_for(self):
        def sample(*words):
            out = self.path("grid.png")
            drawn = self.gossamer("sample", "--run", self.path("runs", "run"),
                                  "--out", out, *words)
            if drawn.returncode != 0:
                return drawn.stderr
            with open(out, "rb") as file:
                return file.read()

        red = sample("--class", "red")
        self.assertIsInstance(red, bytes, red)
        self.assertEqual(sample("--class", "2"), red)
        self.assertNotEqual(sample("--class", "blue"), red)
        self.assertIsInstance(sample(), bytes)
        self.assertIn("0 blue, 1 green, 2 red", sample("--class", "grey"))

    def test_scores_compare_with_the_held_out_pictures(self):
        scored = self.gossamer("evaluate", "--run", self.path("runs", "run"),
                               "--json")
        self.assertEqual(scored.returncode, 0, scored.stderr)
        self.assertEqual(json.loads(scored.stdout)["n_real"], 30)

    def test_another_process_scores_each_checkpoint_as_it_comes(self):
        ended = self.gossamer("evaluate", "--run", self.path("runs", "run"),
                              "--follow", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(json.loads(ended.stdout)["round"], 21)

        run, rounds = self.path("runs", "watched"), []
        with subprocess.Popen(
                [processes.program("gossamer"), "train", "--config",
                 self.path("config.textproto"), "--data",
                 self.path("data.images"), "--runs", self.path("runs"),
                 "--name", "watched", "--set", "evaluation.every=0", "--set",
                 "checkpoint.every=5", "--set", "checkpoint.keep=100", "--set",
                 "rounds=100000"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as train:
            processes.wait_for(lambda: os.path.exists(
                os.path.join(run, "config.textproto")))
            scores = self.path("scores")
            with open(scores, "w") as file, subprocess.Popen(
                    [processes.program("gossamer"), "evaluate", "--run", run,
                     "--follow"], stdout=file) as scorer:
                def scored():
                    with open(scores) as lines:
                        rounds[:] = [int(line.split()[1]) for line in lines
                                     if line.startswith("round ")]
                    return len(rounds) > 1

                try:
                    processes.wait_for(scored)
                finally:
                    scorer.kill()
                    train.send_signal(signal.SIGINT)
            self.assertEqual(train.wait(processes.LIMIT), 0)
        self.assertLess(rounds[0], rounds[1])

    def test_a_generator_is_exported_without_naming_its_classes(self):
        exported = self.gossamer("checkpoint", "export", "--run",
                                 self.path("runs", "run"), "--out",
                                 self.path("generator.safetensors"))
        self.assertEqual(exported.returncode, 0, exported.stderr)

    def test_another_resolution_is_refused_before_training(self):
        refused = self.train("large", "data.images", "--set",
                             "game.gan.resolution=64")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("have 32 pixels a side", refused.stderr + refused.stdout)

    def test_a_folder_in_place_of_the_file_is_refused(self):
        refused = self.train("folder", "pictures")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("gossamer data build", refused.stderr)


if __name__ == "__main__":
    processes.BIN = sys.argv.pop(1)
    unittest.main()
