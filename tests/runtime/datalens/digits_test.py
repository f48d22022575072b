#!/usr/bin/env python3
"""What DataLens learns from scikit-learn's digits, within what may be spent.

usage: digits_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]

Needs deploy/digits.sh.  The settings of deploy/configs/digits.txt, with a seed
that chose none of them; 8 s on one core.
"""

import json
import os
import subprocess
import sys
import unittest

BIN = ""
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                    "..")
CHANCE = 0.1
# Some five standard deviations of a guess at 359 images above chance.
CLEARLY_ABOVE = 0.2


def train(*more):
    """The result of a training, as printed with --json."""
    done = subprocess.run(
        [os.path.join(BIN, "gossamer-datalens"), "train", "--config",
         os.path.join(ROOT, "deploy/configs/digits.txt"), "--data",
         os.path.join(ROOT, "data/digits/digits.csv"), "--quiet", "--json",
         *more], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class DigitsTest(unittest.TestCase):
    def test_a_classifier_of_samples_knows_real_digits(self):
        result = train("--seed", "11", "--noise-seed", "11")
        self.assertGreater(result["accuracy"], CHANCE + CLEARLY_ABOVE)
        self.assertEqual(result["held_out"], 359)
        # All that may be spent, and no step more.
        self.assertTrue(result["budget_spent"])
        self.assertLessEqual(result["epsilon"], 10)
        self.assertGreater(result["epsilon"], 9.5)
        self.assertEqual(result["delta"], 1e-5)

    def test_a_small_budget_ends_it_earlier(self):
        # The row of algorithms/method/datalens.md where nothing is learnt.
        result = train("--seed", "11", "--noise-seed", "11", "--epsilon", "1",
                       "--teachers", "300", "--sigma", "1000")
        self.assertTrue(result["budget_spent"])
        self.assertLessEqual(result["epsilon"], 1)
        self.assertGreater(result["epsilon"], 0.95)
        self.assertEqual(result["steps"], 47)
        self.assertEqual(result["images_asked_about"], 470)
        self.assertEqual(result["images_per_teacher"], 4)
        self.assertLess(result["accuracy"], CHANCE + CLEARLY_ABOVE)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
