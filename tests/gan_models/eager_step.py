#!/usr/bin/env python3
"""The steps of gpu_step in eager PyTorch, as a user of PyTorch writes them, with gossamer's settings of cuDNN.

  eager_step.py --model wgan-gp-resnet|sagan [--width N] [--resolution N] [--latent N] [--classes N]
                [--batch N] [--precision float32|bf16] [--deterministic on|off]
                [--layout faster|channels_last|contiguous] [--steps N] [--device cuda|cpu] [--json FILE]

Two passes: the discriminator's loss on detached fakes, then the generator's on
new scores of them.  Networks have the layers of gan_models/networks, which the
numbers of parameters in the JSON show.  Of layout "faster" both are measured,
and the faster one is the result.  bf16 is torch.autocast.  cuBLAS has
gossamer's settings, too, and TF32 is off.  Exit code 1: no layout works; 3:
there is no such device.
"""
import argparse
import json
import os
import sys
import time

LAYOUTS = ('channels_last', 'contiguous')


def networks(torch, a):
    """The generator and the discriminator of the model."""
    nn, F = torch.nn, torch.nn.functional
    sn = torch.nn.utils.parametrizations.spectral_norm

    def up(x):
        return F.interpolate(x, scale_factor=2)

    def pool(x):
        return F.avg_pool2d(x, 2)

    class ResUp(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.n1, self.n2 = nn.BatchNorm2d(w), nn.BatchNorm2d(w)
            self.c1, self.c2 = nn.Conv2d(w, w, 3, padding=1), nn.Conv2d(w, w, 3, padding=1)
            self.s = nn.Conv2d(w, w, 1)

        def forward(self, x):
            h = self.c1(up(F.relu(self.n1(x))))
            return self.c2(F.relu(self.n2(h))) + up(self.s(x))

    class ResGenerator(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.w, self.linear = w, nn.Linear(a.latent, w * 16)
            self.blocks = nn.Sequential(ResUp(w), ResUp(w), ResUp(w))
            self.norm, self.conv = nn.BatchNorm2d(w), nn.Conv2d(w, 3, 3, padding=1)

        def forward(self, z, labels):
            h = self.blocks(self.linear(z).view(-1, self.w, 4, 4))
            return torch.tanh(self.conv(F.relu(self.norm(h))))

    class Res(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.c1, self.c2 = nn.Conv2d(w, w, 3, padding=1), nn.Conv2d(w, w, 3, padding=1)

        def forward(self, x):
            return self.c2(F.relu(self.c1(F.relu(x))))

    class ResDiscriminator(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.c1, self.c2 = nn.Conv2d(3, w, 3, padding=1), nn.Conv2d(w, w, 3, padding=1)
            self.s1, self.s2 = nn.Conv2d(3, w, 1), nn.Conv2d(w, w, 1)
            self.b2, self.b3, self.b4 = Res(w), Res(w), Res(w)
            self.linear = nn.Linear(w, 1)

        def forward(self, x, labels):
            h = pool(self.c2(F.relu(self.c1(x)))) + self.s1(pool(x))
            h = pool(self.b2(h)) + self.s2(pool(h))
            h = h + self.b3(h)
            h = h + self.b4(h)
            return self.linear(F.relu(h).mean((2, 3))).view(-1)

    def conv(i, o, k, bias=True):
        return sn(nn.Conv2d(i, o, k, padding=k // 2, bias=bias))

    class Attention(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.theta, self.phi = conv(c, c // 8, 1, False), conv(c, c // 8, 1, False)
            self.g, self.out = conv(c, c // 2, 1, False), conv(c // 2, c, 1, False)
            self.ratio = nn.Parameter(torch.zeros(()))

        def forward(self, x):
            n, c, h, w = x.shape
            q = self.theta(x).flatten(2).transpose(1, 2)
            k = F.max_pool2d(self.phi(x), 2).flatten(2)
            v = F.max_pool2d(self.g(x), 2).flatten(2).transpose(1, 2)
            seen = torch.bmm(torch.softmax(torch.bmm(q, k), -1), v)
            return x + self.ratio * self.out(seen.transpose(1, 2).reshape(n, c // 2, h, w))

    class ConditionalNorm(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm = nn.BatchNorm2d(c, affine=False)
            self.gamma, self.beta = nn.Embedding(a.classes, c), nn.Embedding(a.classes, c)
            nn.init.ones_(self.gamma.weight)
            nn.init.zeros_(self.beta.weight)

        def forward(self, x, labels):
            gamma, beta = self.gamma(labels), self.beta(labels)
            return beta[:, :, None, None] + self.norm(x) * gamma[:, :, None, None]

    class SaganUp(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.n0, self.n1 = ConditionalNorm(i), ConditionalNorm(o)
            self.c1, self.c2, self.c3 = conv(i, o, 3), conv(o, o, 3), conv(i, o, 1)

        def forward(self, x, labels):
            h = self.c1(up(F.relu(self.n0(x, labels))))
            return self.c2(F.relu(self.n1(h, labels))) + up(self.c3(x))

    attention_side = min(32, a.resolution // 2)

    class SaganGenerator(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.first, i = 16 * w, 16 * w
            self.linear, self.blocks = sn(nn.Linear(a.latent, 16 * i)), nn.ModuleList()
            side = 8
            while side <= a.resolution:
                o = 128 * w // side
                self.blocks.append(SaganUp(i, o))
                if side == attention_side:
                    self.attention, self.after = Attention(o), len(self.blocks)
                i, side = o, 2 * side
            self.norm, self.conv = nn.BatchNorm2d(i), conv(i, 3, 3)

        def forward(self, z, labels):
            h = self.linear(z).view(-1, self.first, 4, 4)
            for n, block in enumerate(self.blocks, 1):
                h = block(h, labels)
                if n == self.after:
                    h = self.attention(h)
            return torch.tanh(self.conv(F.relu(self.norm(h))))

    class SaganDown(nn.Module):
        def __init__(self, i, o, halves, first):
            super().__init__()
            self.first, self.c1, self.c2 = first, conv(i, o, 3), conv(o, o, 3)
            self.c3 = conv(i, o, 1) if halves else None

        def forward(self, x):
            h = self.c2(F.relu(self.c1(x if self.first else F.relu(x))))
            return pool(h) + self.c3(pool(x)) if self.c3 is not None else h + x

    class SaganDiscriminator(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.blocks, i, side = nn.ModuleList(), 3, a.resolution // 2
            while side >= 4:
                o = 64 * w // side
                self.blocks.append(SaganDown(i, o, True, i == 3))
                if side == attention_side:
                    self.attention, self.after = Attention(o), len(self.blocks)
                i, side = o, side // 2
            self.blocks.append(SaganDown(i, i, False, False))
            self.linear, self.embedding = sn(nn.Linear(i, 1)), sn(nn.Embedding(a.classes, i))

        def forward(self, x, labels):
            h = x
            for n, block in enumerate(self.blocks, 1):
                h = block(h)
                if n == self.after:
                    h = self.attention(h)
            h = F.relu(h).sum((2, 3))
            return self.linear(h).view(-1) + (h * self.embedding(labels)).sum(1)

    if a.model == 'sagan':
        return SaganGenerator(a.width), SaganDiscriminator(a.width)
    return ResGenerator(a.width), ResDiscriminator(a.width)


def measure(torch, a, layout):
    """The seconds of each step, sorted, and the numbers of both players' parameters."""
    torch.manual_seed(1)
    device = torch.device(a.device)
    layout = torch.channels_last if layout == 'channels_last' else torch.contiguous_format
    g, d = (m.to(device, memory_format=layout) for m in networks(torch, a))
    F, hinge = torch.nn.functional, a.model == 'sagan'

    def autocast():
        return torch.autocast(device.type, torch.bfloat16, enabled=a.precision == 'bf16')

    def step():
        real = torch.rand(a.batch, 3, a.resolution, a.resolution, device=device).mul_(2).sub_(1)
        real = real.to(memory_format=layout)
        z = torch.randn(a.batch, a.latent, device=device)
        real_labels = torch.randint(a.classes, (a.batch,), device=device)
        fake_labels = torch.randint(a.classes, (a.batch,), device=device)
        for m in (g, d):
            m.zero_grad()
        with autocast():
            fake = g(z, fake_labels)
            constant = fake.detach().float()
            of_real, of_fake = d(real, real_labels).float(), d(constant, fake_labels).float()
        if hinge:
            loss = F.relu(1 - of_real).mean() + F.relu(1 + of_fake).mean()
        else:
            alpha = torch.rand(a.batch, 1, 1, 1, device=device)
            x = (real + alpha * (constant - real)).requires_grad_(True)
            with autocast():
                scores = d(x, real_labels).float().sum()
            slope = torch.autograd.grad(scores, x, create_graph=True)[0].flatten(1).norm(dim=1)
            loss = of_fake.mean() - of_real.mean() + 10 * (slope - 1).square().mean()
        loss.backward()
        d.requires_grad_(False)
        with autocast():
            of_generator = -d(fake, fake_labels).float().mean()
        of_generator.backward()
        d.requires_grad_(True)
        return loss.item(), of_generator.item()

    seconds = []
    for i in range(a.steps + 6):
        began = time.perf_counter()
        step()
        if device.type == 'cuda':
            torch.cuda.synchronize()
        if i >= 6:
            seconds.append(time.perf_counter() - began)
    return sorted(seconds), [sum(q.numel() for q in m.parameters()) for m in (g, d)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--model', choices=['wgan-gp-resnet', 'sagan'], default='wgan-gp-resnet')
    for name, default in (('width', 128), ('resolution', 32), ('latent', 128), ('classes', 10), ('batch', 64),
                          ('steps', 30)):
        p.add_argument('--' + name, type=int, default=default)
    p.add_argument('--precision', choices=['float32', 'bf16'], default='float32')
    p.add_argument('--deterministic', choices=['on', 'off'], default='on')
    p.add_argument('--layout', choices=['faster', *LAYOUTS], default='faster')
    p.add_argument('--device', default='cuda')
    p.add_argument('--json')
    a = p.parse_args()
    # The libraries read them when they are first used; gossamer's are those of
    # runtime/device/cuda_library.cc.
    os.environ.setdefault('TORCH_CUDNN_USE_HEURISTIC_MODE_B', '1')
    os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
    import torch
    if a.device.startswith('cuda') and not torch.cuda.is_available():
        print('eager_step: torch has no GPU', file=sys.stderr)
        return 3
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if a.deterministic == 'on':
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False
    seconds, count = {}, None
    for layout in LAYOUTS if a.layout == 'faster' else [a.layout]:
        try:
            seconds[layout], count = measure(torch, a, layout)
        except RuntimeError as e:  # the other layout may have memory and kernels enough
            print(f'eager_step: {layout}: {e}', file=sys.stderr)
    if not seconds:
        return 1
    milliseconds = {layout: 1e3 * of[len(of) // 2] for layout, of in seconds.items()}
    layout = min(milliseconds, key=milliseconds.get)
    out = {'model': a.model, 'precision': a.precision, 'deterministic': a.deterministic == 'on', 'layout': layout,
           'batch': a.batch, 'parameters': count, 'torch': torch.__version__, 'milliseconds': milliseconds[layout],
           'fastest': 1e3 * seconds[layout][0], 'layouts': milliseconds}
    print(json.dumps(out))
    if a.json:
        with open(a.json, 'w') as f:
            json.dump(out, f)
    return 0


if __name__ == '__main__':
    sys.exit(main())
