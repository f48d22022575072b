"""A module and a loss under torch.compile: parameters are mixed as others are.
They are compiled by their first calls, which come after the join.

    python -m gossamer.run --peers 4 --set rounds=1500 compiled.py
"""

import torch

import gossamer
import points

torch.manual_seed(1)
G = torch.compile(torch.nn.Sequential(
    torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)))
D = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(),
                        torch.nn.Linear(64, 64), torch.nn.ReLU(),
                        torch.nn.Linear(64, 1))
opt_g = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.5, 0.9))
softplus = torch.nn.functional.softplus


@torch.compile
def discriminator_loss(real, fake):
    return (softplus(-D(real)) + softplus(D(fake))).mean()


fleet = gossamer.join(players={"G": G, "D": D},
                      state={"opt_g": opt_g, "opt_d": opt_d})
torch.manual_seed(fleet.id)
for real, _ in fleet.loop(points.Own(fleet.id, batch=64)):
    latent = torch.randn(64, 8)
    loss_d = discriminator_loss(real, G(latent).detach())
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = softplus(-D(G(latent))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    fleet.mix(G=loss_g, D=loss_d)
print(f"score {points.energy_distance(G(torch.randn(2000, 8))):.4f}")
