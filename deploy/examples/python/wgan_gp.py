"""WGAN-GP as PyTorch users write it: a penalty on the gradient's norm, by
autograd.grad with create_graph=True, and five steps of the critic for one of the
generator.

    python -m gossamer.run --peers 4 --set rounds=3000 wgan_gp.py
"""

import torch

import gossamer
import points

torch.manual_seed(1)
G = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(),
                        torch.nn.Linear(64, 64), torch.nn.ReLU(),
                        torch.nn.Linear(64, 2))
D = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(),
                        torch.nn.Linear(64, 64), torch.nn.ReLU(),
                        torch.nn.Linear(64, 1))
opt_g = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.5, 0.9))


def gradient_penalty(real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(D(between).sum(), between,
                                      create_graph=True)
    return ((gradient.norm(dim=1) - 1) ** 2).mean()


fleet = gossamer.join(players={"G": G, "D": D},
                      state={"opt_g": opt_g, "opt_d": opt_d})
torch.manual_seed(fleet.id)
for real, _ in fleet.loop(points.Shard(fleet.id, batch=64)):
    fake = G(torch.randn(64, 8)).detach()
    loss_d = D(fake).mean() - D(real).mean() + gradient_penalty(real, fake)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = -D(G(torch.randn(64, 8))).mean()
    if fleet.round % 5 == 0:
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    fleet.mix(G=loss_g, D=loss_d)
print(f"score {points.energy_distance(G(torch.randn(2000, 8))):.4f}")
