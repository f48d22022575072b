#!/usr/bin/env python3
"""The configurations and networks of deploy/ are what the programs take: each
passes the checks of a run, and every key of a configuration has the value that
its file says.

usage: shipped_files_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

import processes_test as processes

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CONFIGS = sorted((DEPLOY / "configs").glob("*.textproto"))
NETWORKS = sorted((DEPLOY / "lab").glob("*.textproto"))


def gossamer(*arguments):
    return processes.run(processes.program("gossamer"), *map(str, arguments))


def values_of(text):
    """Returns the values of a configuration by their keys, "game.gan.width"."""
    values, groups, key = {}, [], ""
    for token in re.findall(r'#.*|"[^"\n]*"|[{}]|[^\s:{}"#]+', text):
        if token.startswith("#"):
            continue
        if token == "{":
            groups.append(key)
            key = ""
        elif token == "}":
            groups.pop()
        elif not key:
            key = token
        else:
            values[".".join([*groups, key])] = meaning(token)
            key = ""
    return values


def meaning(value):
    """Returns a number as one: 5e-4 is 0.0005, and "steps_1" of an enum is 1."""
    try:
        return float(value.removeprefix("steps_"))
    except ValueError:
        return value


class ShippedFilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def accepted(self, *arguments):
        done = gossamer(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused_with_another_key(self, path, *arguments):
        """The whole file is read: a key at its end has its place."""
        text = path.read_text() + "\nnonsense: 1\n"
        wrong = self.folder / path.name
        wrong.write_text(text)
        done = gossamer(*arguments, wrong)
        line = text.count("\n")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(f'{wrong}:{line}:1: there is no key "nonsense"',
                      done.stderr)

    def test_configurations_pass_the_checks_of_a_run(self):
        self.assertGreaterEqual(len(CONFIGS), 11)
        for path in CONFIGS:
            with self.subTest(path.name):
                shown = self.accepted("config", "show", "--config", path)
                values = values_of(shown)
                said = values_of(path.read_text())
                self.assertIn("name", said)
                self.assertTrue(any(key.startswith("game.") for key in said))
                for key, value in said.items():
                    self.assertEqual(values[key], value, key)
                # Runs are called as their configuration is.
                self.assertEqual(values["name"].strip('"').replace("-", "_"),
                                 path.stem)
                whole = self.folder / "whole.textproto"
                whole.write_text(shown)
                self.assertEqual(
                    self.accepted("config", "show", "--config", whole), shown)
                self.refused_with_another_key(path, "config", "show",
                                              "--config")

    def test_fleets_of_the_configurations_make_two_rounds(self):
        network = DEPLOY / "lab" / "wan_100ms.textproto"
        rehearsed = 0
        for path in CONFIGS:
            # No other game votes as the one of DataLens does; datalens_test.py
            # trains by its file.
            if path.stem == "datalens":
                continue
            with self.subTest(path.name):
                out = self.folder / path.stem
                self.accepted("lab", "--rehearse", "--scenario", network,
                              "--config", path, "--parameters", 1000,
                              "--step-time", "10ms", "--set", "rounds=2",
                              "--set", "step.decay_from_round=0", "--out", out)
                rehearsed += 1
        self.assertEqual(rehearsed, len(CONFIGS) - 1)

    def test_networks_are_read(self):
        self.assertGreaterEqual(len(NETWORKS), 10)
        for path in NETWORKS:
            with self.subTest(path.name):
                shown = json.loads(self.accepted("lab", "--show", "--json",
                                                 "--scenario", path))
                self.assertEqual(shown["name"].replace("-", "_"), path.stem)
                hosts = len(shown["hosts"])
                self.assertGreaterEqual(hosts, 2)
                self.assertTrue(shown["links"])
                self.refused_with_another_key(path, "lab", "--show",
                                              "--scenario")

    def test_the_page_lists_every_configuration(self):
        page = (DEPLOY / "README.md").read_text()
        section = page.split("## Configurations")[1].split("\n## ")[0]
        self.assertEqual(
            sorted(set(re.findall(r"`(\w+)\.textproto`", section))),
            [path.stem for path in CONFIGS])


if __name__ == "__main__":
    processes.BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
