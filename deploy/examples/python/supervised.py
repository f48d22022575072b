"""Plain supervised training, a game of one player: each peer lacks two of eight
classes, and the network that all mix knows them all.

    python -m gossamer.run --peers 4 --set rounds=800 supervised.py
"""

import torch

import gossamer
import points

torch.manual_seed(1)
network = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(),
                              torch.nn.Linear(64, points.MODES))
optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9)

fleet = gossamer.join(players={"network": network},
                      state={"optimizer": optimizer})
for x, label in fleet.loop(points.Own(fleet.id, batch=64)):
    loss = torch.nn.functional.cross_entropy(network(x), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    fleet.mix(network=loss)
x, label = points.sample(2000, seed=7)
wrong = (network(x).argmax(1) != label).float().mean()
print(f"score {wrong:.4f}")
