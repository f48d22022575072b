"""Gossip training under a training loop of your own.

    import gossamer, torch

    fleet = gossamer.join("run.textproto", players={"G": G, "D": D})
    torch.manual_seed(1000 + fleet.id)      # noise of its own
    for batch in fleet.shard(dataset, batch_size=64):
        ...                 # any losses, any optimizers
        opt_d.step(); opt_g.step()
        fleet.mix()

``python -m gossamer.run --peers 4 train.py`` runs such a program as a fleet of
four peers on this machine.
"""

import typing

if typing.TYPE_CHECKING:
    from gossamer._fleet import (Fleet, FleetError, ForkedError, PlayersError,
                                 join)

__version__ = "0.1.0"
__all__ = ["Fleet", "FleetError", "ForkedError", "PlayersError", "join",
           "__version__"]


def __dir__():
    return sorted({*globals(), *__all__})


def __getattr__(name):
    # gossamer.run needs neither torch nor the library, which take seconds.
    if name in __all__:
        from gossamer import _fleet
        return getattr(_fleet, name)
    raise AttributeError(f"module gossamer has no attribute {name!r}")
