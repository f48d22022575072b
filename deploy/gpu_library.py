#!/usr/bin/env python3
"""A peer of gpu_check.sh whose parameters are PyTorch's, on a GPU: what mix()
costs there, and the bits that it leaves.

usage: python -m gossamer.run --peers 2 gpu_library.py FOLDER PLACE

PLACE: in-place, the parameters are mixed on the GPU; by-host, as where the
runtime cannot do so, by a copy in the host's memory; cpu, all is there.  Each
peer leaves FOLDER/PLACE-ID.json.
"""
import ctypes
import hashlib
import json
import os
import statistics
import sys
import time

import gossamer
import torch

VALUES = 1 << 22
WARM_UP = 5  # rounds


def main():
    folder, place = sys.argv[1:]
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    # Multiples of a power of two, as what is added to them: no sum is rounded.
    x = torch.randint(-1000, 1000, (1024, VALUES // 1024), generator=generator) / 1024
    x = x.to('cpu' if place == 'cpu' else 'cuda:0')
    # A tensor of odd size, and behind it a layer whose bias a GPU wants aligned.
    layer = torch.nn.Linear(64, 5, device=x.device)
    odd = torch.zeros(1, device=x.device)
    begin = x.double().mean().item()
    seconds = []
    with gossamer.join(players={'x': {'weight': x}, 'odd': {'value': odd}, 'layer': layer},
                       device='cpu' if place == 'by-host' else 'auto') as fleet:
        rounds, peers, mine = fleet.rounds, fleet.peers, fleet.id
        goes_on = True
        while goes_on:
            x += mine / 64
            layer(torch.ones(8, 64, device=x.device)).sum().backward()
            now = time.monotonic()
            goes_on = fleet.mix()
            seconds.append(time.monotonic() - now)
        vector_on = str(fleet._flat.device)
    added = rounds * (peers + 1) / 2 / 64
    # torch has no need of numpy, and a bare Python has none.
    on_host = x.cpu()
    values = ctypes.string_at(on_host.data_ptr(), 4 * on_host.numel())
    with open(os.path.join(folder, f'{place}-{mine}.json'), 'w') as f:
        json.dump({'vector_on': vector_on, 'rounds': rounds,
                   'mean_off': x.double().mean().item() - begin - added,
                   'bits': hashlib.sha256(values).hexdigest(),
                   'milliseconds': 1e3 * statistics.median(seconds[WARM_UP:])}, f)


if __name__ == '__main__':
    main()
