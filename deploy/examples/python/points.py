"""Data and scores of the examples: points of eight Gaussians on a circle, of
which no peer has enough to learn the whole alone."""

import math

import torch

MODES = 8


def centres():
    angle = torch.arange(MODES) * (2 * math.pi / MODES)
    return torch.stack([angle.cos(), angle.sin()], 1)


def sample(count, modes=range(MODES), seed=None):
    """Points of these modes, and the modes."""
    generator = torch.Generator()
    if seed is not None:
        generator.manual_seed(seed)
    modes = torch.tensor(list(modes))
    labels = modes[torch.randint(len(modes), (count,), generator=generator)]
    noise = 0.1 * torch.randn(count, 2, generator=generator)
    return centres()[labels] + noise, labels


class Own(torch.utils.data.IterableDataset):
    """The stream of one peer, which lacks two neighbouring modes."""

    def __init__(self, peer, batch):
        super().__init__()
        lacks = {2 * (peer - 1) % MODES, (2 * (peer - 1) + 1) % MODES}
        self.modes = [m for m in range(MODES) if m not in lacks]
        self.seed, self.batch = 1000 * peer, batch

    def __iter__(self):
        # As many steps as anybody will ask for.
        while True:
            self.seed += 1
            yield sample(self.batch, self.modes, self.seed)


class Shard(torch.utils.data.IterableDataset):
    """The part of one peer in a small set of points, over and over."""

    def __init__(self, peer, batch, size=24):
        super().__init__()
        self.points, self.labels = sample(size, seed=1000 * peer)
        self.seed, self.batch = 1000 * peer, batch

    def __iter__(self):
        draws = torch.Generator().manual_seed(self.seed)
        while True:
            which = torch.randint(len(self.points), (self.batch,),
                                  generator=draws)
            yield self.points[which], self.labels[which]


def energy_distance(points, seed=7):
    """Of the points to the whole mixture: 0 for the same distribution."""
    real, _ = sample(len(points), seed=seed)
    other, _ = sample(len(points), seed=seed + 1)
    points = points.detach().float().cpu()
    half = len(points) // 2
    within = torch.cdist(points[:half], points[half:]).mean()
    return (2 * torch.cdist(points, real).mean() - within -
            torch.cdist(real, other).mean()).item()
