"""A stand-in for the package: peers that average their gradients before every step
of an optimizer, by an all-reduce over gloo, as DistributedDataParallel does, for
comparison.  It has no hooks in autograd, so that it runs where that does not."""

import os

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook


class Fleet:
    def __init__(self, players, rounds):
        dist.init_process_group("gloo")
        self.rounds, self.id = rounds, dist.get_rank() + 1
        self.round, self.over = 1, False
        self.buffers = [b for p in players.values() for b in p.buffers()]
        for player in players.values():
            for parameter in player.parameters():
                dist.broadcast(parameter.data, src=0)
        register_optimizer_step_pre_hook(self.average)

    @staticmethod
    def average(optimizer, *_):
        gradients = [p.grad for group in optimizer.param_groups
                     for p in group["params"] if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for g, mean in zip(gradients, flat.split([g.numel() for g in gradients])):
            g.copy_(mean.view_as(g))

    def mix(self, **losses):
        for buffer in self.buffers:
            dist.broadcast(buffer, src=0)
        self.over = self.round == self.rounds
        self.round += not self.over
        return not self.over

    def loop(self, loader):
        while not self.over:
            for batch in loader:
                yield batch
                if self.over:
                    return


def join(players, **anything):
    return Fleet(players, int(os.environ["ROUNDS"]))
