"""The programs of the package, for the path: gossamer, gossamer-peer and
gossamer-topology."""

import os
import sys

from gossamer.run import program


def _become(name):
    os.execv(program(name), [name, *sys.argv[1:]])


def main():
    _become("gossamer")


def peer():
    _become("gossamer-peer")


def topology():
    _become("gossamer-topology")
