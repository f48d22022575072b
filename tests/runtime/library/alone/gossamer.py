"""A stand-in for the package: a peer that never mixes, for comparison."""

import os


class Fleet:
    def __init__(self, rounds, number):
        self.rounds, self.id = rounds, number
        self.round, self.over = 1, False

    def mix(self, **losses):
        self.over = self.round == self.rounds
        self.round += not self.over
        return not self.over

    def loop(self, loader):
        while not self.over:
            for batch in loader:
                yield batch
                if self.over:
                    return


def join(**anything):
    return Fleet(int(os.environ["ROUNDS"]), int(os.environ["NUMBER"]))
