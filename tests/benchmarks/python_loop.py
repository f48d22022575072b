#!/usr/bin/env python3
"""A user's loop, WGAN-GP with residual networks of width 32 in PyTorch, on the
hosts of a lab: images a second and CPU time a step with gossamer, under DDP with
gloo, and alone.

    python_loop.py --gossamer BIN --lab deploy/lab/wan_100ms_100mbit.textproto
    python_loop.py --gossamer BIN --lab deploy/lab/no_network.textproto

Needs root, or namespaces (gossamer lab --help), and the package in this
interpreter.  Prints JSON.
"""

import argparse
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import time

WIDTH, LATENT = 32, 128


def networks():
    import torch
    from torch import nn
    torch.manual_seed(1)

    class Block(nn.Module):
        def __init__(self, resample, norm):
            super().__init__()
            up = nn.Upsample(scale_factor=2) if resample == "up" else nn.Identity()
            down = nn.AvgPool2d(2) if resample == "down" else nn.Identity()
            make = nn.BatchNorm2d if norm else nn.Identity
            self.body = nn.Sequential(
                make(WIDTH), nn.ReLU(), up, nn.Conv2d(WIDTH, WIDTH, 3, 1, 1),
                make(WIDTH), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, 1, 1), down)
            self.skip = nn.Sequential(up, nn.Conv2d(WIDTH, WIDTH, 1), down)

        def forward(self, x):
            return self.body(x) + self.skip(x)

    generator = nn.Sequential(
        nn.Linear(LATENT, 16 * WIDTH), nn.Unflatten(1, (WIDTH, 4, 4)),
        *[Block("up", norm=True) for _ in range(3)], nn.BatchNorm2d(WIDTH),
        nn.ReLU(), nn.Conv2d(WIDTH, 3, 3, 1, 1), nn.Tanh())
    critic = nn.Sequential(
        nn.Conv2d(3, WIDTH, 3, 1, 1), Block("down", norm=False),
        Block("down", norm=False), Block("", norm=False), Block("", norm=False),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, 1))
    return torch, generator, critic


def loop(method, batch, seconds):
    """One peer; prints a line of JSON."""
    began = time.monotonic()
    torch, generator, critic = networks()
    torch.set_num_threads(1)
    rank = int(os.environ["LAB_RANK"])
    first = os.environ["LAB_HOSTS"].split(",")[0]
    fleet = None
    torch_g, torch_d = generator, critic
    if method == "ddp":
        # Else gloo takes the address of the machine's own name.
        (device,) = [name for _, name in socket.if_nameindex() if name != "lo"]
        os.environ.update(GLOO_SOCKET_IFNAME=device,
                          MASTER_ADDR=first, MASTER_PORT="29411",
                          RANK=str(rank), WORLD_SIZE=os.environ["LAB_SIZE"])
        torch.distributed.init_process_group("gloo")
        generator = torch.nn.parallel.DistributedDataParallel(generator)
        critic = torch.nn.parallel.DistributedDataParallel(critic)
    imported = time.monotonic()
    if method == "gossamer":
        import gossamer
        fleet = gossamer.join(
            players={"G": generator, "D": critic}, id=rank + 1, insecure=True,
            topology=f"{first}:7700", listen=os.environ["LAB_ADDRESS"] + ":7800",
            run_dir=os.environ["RUN_DIR"], buffers="local",
            config=os.environ["RUN_CONFIG"])
    joined = time.monotonic()
    opt_g = torch.optim.Adam(torch_g.parameters(), 1e-4, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(torch_d.parameters(), 1e-4, betas=(0.0, 0.9))
    torch.manual_seed(rank)
    real = torch.rand(batch, 3, 32, 32) * 2 - 1

    def step():
        fake = generator(torch.randn(batch, LATENT))
        share = torch.rand(batch, 1, 1, 1)
        between = (share * real + (1 - share) * fake.detach()).requires_grad_()
        # One pass, which is how DDP wants it.
        scores = critic(torch.cat([real, fake.detach(), between]))
        on_real, on_fake, on_between = scores.chunk(3)
        (slope,) = torch.autograd.grad(on_between.sum(), between,
                                       create_graph=True)
        penalty = ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
        opt_d.zero_grad()
        (on_fake.mean() - on_real.mean() + 10 * penalty).backward()
        opt_d.step()
        opt_g.zero_grad()
        # The critic's own gradients are not wanted here, nor averaged.
        torch_d.requires_grad_(False)
        (-torch_d(fake).mean()).backward()
        torch_d.requires_grad_(True)
        opt_g.step()
        if fleet is not None:
            fleet.mix()

    for _ in range(10):
        step()
    steps, start = 0, time.monotonic()
    cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    while time.monotonic() - start < seconds:
        step()
        steps += 1
    passed = time.monotonic() - start
    cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - cpu
    print(json.dumps({
        "images_per_second": steps * batch / passed, "steps": steps,
        "cpu_milliseconds_per_step": 1000 * cpu / steps,
        "import_seconds": imported - began, "join_seconds": joined - imported,
        "parameters": sum(p.numel() for m in (torch_g, torch_d)
                          for p in m.parameters())}), flush=True)
    # The others may still be measuring: a peer that leaves now would have them
    # settle a view, and one of DDP's would stop them.
    limit = time.monotonic() + 5
    while time.monotonic() < limit and fleet is not None:
        step()
    os._exit(0)


def measure(options, method, folder):
    """The peers' lines of one method."""
    config = folder / "run.textproto"
    config.write_text(f"game {{ caller {{}} }} peers: {options.hosts} "
                      "rounds: 10000000 " + options.mixing)
    inner = (f"{sys.executable} {os.path.abspath(__file__)} --peer {method} "
             f"--batch {options.batch} --seconds {options.seconds}")
    environment = dict(os.environ, RUN_DIR=str(folder / method),
                       RUN_CONFIG=str(config), OMP_NUM_THREADS="1")
    topology = f"{options.gossamer}/gossamer-topology"
    service = (f"if [ $LAB_RANK = 0 ]; then rm -rf {folder}/state; {topology} "
               f"--config {config} --listen $LAB_ADDRESS:7700 --insecure "
               f"--state {folder}/state & sleep 1; else sleep 1; fi; ")
    command = (service if method == "gossamer" else "") + inner
    out = folder / f"out-{method}"
    done = subprocess.run(
        [f"{options.gossamer}/gossamer", "lab", "--scenario", options.lab,
         "--hosts", str(options.hosts), "--exec",
         f"({command}; kill $(jobs -p) 2>/dev/null; true)", "--out", str(out),
         "--json"], env=environment, capture_output=True, text=True)
    lines = []
    for log in sorted(out.rglob("*.log")):
        for line in log.read_text().splitlines():
            if line.startswith('{"images'):
                lines.append(json.loads(line))
    if len(lines) != options.hosts:
        raise SystemExit(f"{method}: {len(lines)} of {options.hosts} hosts "
                         f"answered\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                         + "".join(p.read_text()[-1500:]
                                   for p in sorted(out.rglob("*.log"))))
    mean = {key: sum(line[key] for line in lines) / len(lines)
            for key in lines[0]}
    mean["images_per_second"] *= len(lines)  # of all
    return mean


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--gossamer", help="folder of gossamer's programs")
    parser.add_argument("--lab", help="scenario of the network",
                        default="deploy/lab/no_network.textproto")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8, help="of one peer")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--methods", default="alone,gossamer,ddp,alone,gossamer,ddp")
    parser.add_argument("--mixing", default="mixing { codec: 'innov-int4' }",
                        help="of the configuration")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return loop(options.peer, options.batch, options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for i, method in enumerate(options.methods.split(",")):
            own = pathlib.Path(folder) / str(i)
            own.mkdir()
            runs.append({"method": method, **measure(options, method, own)})
            print(json.dumps(runs[-1]), flush=True)


if __name__ == "__main__":
    main()
