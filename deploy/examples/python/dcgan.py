"""DCGAN as PyTorch users write it: convolutions and batch normalisation, on
pictures of 16 by 16 pixels that show one of four shapes; each peer sees one.

    python -m gossamer.run --peers 4 --set rounds=600 dcgan.py
"""

import torch
from torch import nn

import gossamer

SIZE, LATENT = 16, 16


def draw(shape, count, generator):
    """Pictures of a shape somewhere, in −1 to 1."""
    place = torch.rand(count, 2, 1, 1, generator=generator) * 6 - 3
    y, x = torch.meshgrid(torch.arange(SIZE) - 7.5, torch.arange(SIZE) - 7.5,
                          indexing="ij")
    y, x = (y - place[:, 0]).abs(), (x - place[:, 1]).abs()
    frame = (torch.maximum(x, y) > 3) & (torch.maximum(x, y) < 5)
    inside = [x.hypot(y) < 4, (x < 5) & (y < 1.5), (x < 1.5) & (y < 5), frame][shape]
    return inside.float().unsqueeze(1) * 2 - 1


def features(pictures):
    return nn.functional.avg_pool2d(pictures, 2).flatten(1)


def energy_distance(fake):
    """To pictures of all four shapes: 0 for the same distribution."""
    generator = torch.Generator().manual_seed(7)
    real, other = (features(torch.cat([draw(s, 200, generator)
                                       for s in range(4)])) for _ in range(2))
    fake = features(fake.detach())
    half = len(fake) // 2
    return (2 * torch.cdist(fake, real).mean() -
            torch.cdist(fake[:half], fake[half:]).mean() -
            torch.cdist(real, other).mean()).item()


class Shapes(torch.utils.data.IterableDataset):
    def __init__(self, peer, batch):
        super().__init__()
        self.shape, self.batch = (peer - 1) % 4, batch
        self.generator = torch.Generator().manual_seed(peer)

    def __iter__(self):
        while True:
            yield draw(self.shape, self.batch, self.generator)


torch.manual_seed(1)
G = nn.Sequential(
    nn.ConvTranspose2d(LATENT, 32, 4), nn.BatchNorm2d(32), nn.ReLU(),
    nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh())
D = nn.Sequential(
    nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(16, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.LeakyReLU(0.2),
    nn.Conv2d(32, 1, 4))
opt_g = torch.optim.Adam(G.parameters(), 5e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), 5e-4, betas=(0.5, 0.999))
loss = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1, 1, 1), torch.zeros(32, 1, 1, 1)

fleet = gossamer.join(players={"G": G, "D": D}, buffers="averaged",
                      state={"opt_g": opt_g, "opt_d": opt_d})
torch.manual_seed(fleet.id)
for real in fleet.loop(Shapes(fleet.id, batch=32)):
    fake = G(torch.randn(32, LATENT, 1, 1))
    loss_d = loss(D(real), ones) + loss(D(fake.detach()), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = loss(D(fake), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    fleet.mix(G=loss_g, D=loss_d)
G.eval()
print(f"score {energy_distance(G(torch.randn(800, LATENT, 1, 1))):.4f}")
