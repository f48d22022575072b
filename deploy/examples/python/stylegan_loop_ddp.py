"""The training loop of the StyleGAN line in miniature: phases with lazy
regularisation, a flat all-reduce of gradients, and a moving average of the
generator.  stylegan_loop.py is the same loop with gossamer.

    torchrun --nproc-per-node 4 stylegan_loop_ddp.py
"""

import copy

import torch
import torch.distributed as dist
from torch.nn.functional import softplus

import points

STEPS = 1500
BATCH, LATENT, R1_GAMMA, EMA = 64, 8, 0.1, 0.99


def make(inputs, outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 64), torch.nn.LeakyReLU(0.2),
        torch.nn.Linear(64, 64), torch.nn.LeakyReLU(0.2),
        torch.nn.Linear(64, outputs))


class Phase:
    """One optimizer's turn, every `interval` steps."""

    def __init__(self, name, module, optimizer, interval, loss):
        self.name, self.module, self.optimizer = name, module, optimizer
        self.interval, self.loss = interval, loss


torch.manual_seed(1)
G, D = make(LATENT, 2), make(2, 1)
G_ema = copy.deepcopy(G).eval()


def g_main(real):
    return softplus(-D(G(torch.randn(BATCH, LATENT)))).mean()


def d_main(real):
    fake = G(torch.randn(BATCH, LATENT))
    return (softplus(D(fake)) + softplus(-D(real))).mean()


def d_r1(real):
    real = real.requires_grad_()
    (gradient,) = torch.autograd.grad(D(real).sum(), real, create_graph=True)
    return gradient.square().sum(1).mean() * (R1_GAMMA / 2)


def adam(module, interval):
    # Lazy regularisation: rate and moments of fewer, larger steps.
    ratio = interval / (interval + 1)
    return torch.optim.Adam(module.parameters(), lr=1e-3 * ratio,
                            betas=(0.0 ** ratio, 0.99 ** ratio))


opt_g, opt_d = adam(G, 4), adam(D, 16)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
for tensor in [*G.parameters(), *D.parameters()]:
    dist.broadcast(tensor.data, src=0)
torch.manual_seed(rank)
phases = [Phase("Gmain", G, opt_g, 1, g_main),
          Phase("Dmain", D, opt_d, 1, d_main),
          Phase("Dreg", D, opt_d, 16, lambda real: d_r1(real) * 16)]

data = iter(points.Shard(rank + 1, BATCH))
for batch in range(STEPS):
    real, _ = next(data)
    for phase in phases:
        if batch % phase.interval != 0:
            continue
        phase.optimizer.zero_grad(set_to_none=True)
        for module in (G, D):
            module.requires_grad_(module is phase.module)
        phase.loss(real.detach().clone()).backward()
        own = [p for p in phase.module.parameters() if p.grad is not None]
        flat = torch.cat([p.grad.flatten() for p in own])
        dist.all_reduce(flat)
        flat /= world
        torch.nan_to_num(flat, nan=0, posinf=1e5, neginf=-1e5, out=flat)
        for p, grad in zip(own, flat.split([p.numel() for p in own])):
            p.grad = grad.reshape(p.shape)
        phase.optimizer.step()
    with torch.no_grad():
        for average, p in zip(G_ema.parameters(), G.parameters()):
            average.copy_(p.lerp(average, EMA))
print(f"score {points.energy_distance(G_ema(torch.randn(2000, LATENT))):.4f}")
dist.destroy_process_group()
