"""Three players, as in distribution matching distillation: a student makes
points, a fake score learns the student's distribution, and a discriminator tells
its points from real ones; the student follows both.

    python -m gossamer.run --peers 4 --set rounds=2000 three_players.py
"""

import torch
from torch import nn

import gossamer
import points


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 64), nn.SiLU(), nn.Linear(64, 64),
                         nn.SiLU(), nn.Linear(64, outputs))


def teacher_score(x, sigma):
    """Of the whole mixture with noise of σ added, which a teacher would know."""
    difference = points.centres() - x.unsqueeze(1)
    variance = 0.1 ** 2 + sigma ** 2
    weight = torch.softmax(-(difference ** 2).sum(2) / (2 * variance), 1)
    return (weight.unsqueeze(2) * difference).sum(1) / variance


torch.manual_seed(1)
student, fake_score, discriminator = network(8, 2), network(3, 2), network(2, 1)
optimizers = {name: torch.optim.Adam(module.parameters(), 1e-3, betas=(0.5, 0.9))
              for name, module in [("student", student),
                                   ("fake_score", fake_score),
                                   ("discriminator", discriminator)]}


def step(name, loss):
    optimizers[name].zero_grad()
    loss.backward()
    optimizers[name].step()


fleet = gossamer.join(players={"student": student, "fake_score": fake_score,
                               "discriminator": discriminator},
                      state=optimizers)
torch.manual_seed(fleet.id)
for real, _ in fleet.loop(points.Own(fleet.id, batch=64)):
    made = student(torch.randn(64, 8))
    # The fake score learns to denoise what the student makes.
    sigma = 0.1 + 0.4 * torch.rand(64, 1)
    noise = torch.randn(64, 2)
    noisy = made.detach() + sigma * noise
    denoised = fake_score(torch.cat([noisy, sigma], 1))
    loss_f = ((denoised + noise) ** 2).mean()
    step("fake_score", loss_f)
    loss_d = (nn.functional.softplus(-discriminator(real)) +
              nn.functional.softplus(discriminator(made.detach()))).mean()
    step("discriminator", loss_d)
    # The student follows the difference of the scores, and the discriminator.
    with torch.no_grad():
        denoised = fake_score(torch.cat([noisy, sigma], 1))
        difference = denoised / sigma - teacher_score(noisy, sigma)
    loss_s = ((difference * made).sum(1) * sigma.squeeze()).mean()
    loss_s = loss_s + 0.1 * nn.functional.softplus(-discriminator(made)).mean()
    step("student", loss_s)
    fleet.mix(student=loss_s, fake_score=loss_f, discriminator=loss_d)
print(f"score {points.energy_distance(student(torch.randn(2000, 8))):.4f}")
