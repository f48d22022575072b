#!/usr/bin/env python3
"""FID, kernel distance, precision, recall and Inception Score against a second
computation, in float64 and with nothing but Python: resizing, the network, its
features and the scores.

usage: image_scores_test.py IMAGE_SCORES

The network is tests/golden/small_network.pt, a TorchScript of

  def forward(self, images):                        # [N, 3, S, S] in [0, 255]
      k = torch.arange(12 * 3 * 8 * 8, dtype=torch.float32)
      w = (torch.sin(0.37 * k) * 0.1).reshape(12, 3, 8, 8)
      f = torch.relu(torch.conv2d(images / 255, w, stride=8)).mean((2, 3))
      v = torch.cos(0.53 * torch.arange(84, dtype=torch.float32)).reshape(7, 12)
      return f, 400 * f @ v.t()
"""

import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
from array import array

PROGRAM = ""
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "golden", "small_network.pt")
COUNT, SIDE, SIZE = 40, 16, 24
FILTERS, CLASSES, STRIDE = 12, 7, 8


def draw(seed, brightness):
    """Images of bytes, smooth enough that resizing matters."""
    rng = random.Random(seed)
    images = []
    for _ in range(COUNT):
        wave = [rng.uniform(0, 1.2) for _ in range(6)]
        images.append([[[min(255, max(0, round(
            brightness + 90 * math.sin(wave[c] * x + wave[c + 3] * y)
            + rng.uniform(-40, 40)))) for x in range(SIDE)]
            for y in range(SIDE)] for c in range(3)])
    return images


def write(path, sets):
    header, body = {}, b""
    for name, images in sets.items():
        values = array("f", (v / 127.5 - 1 for image in images
                             for plane in image for row in plane for v in row))
        data = values.tobytes()
        header[name] = {"dtype": "F32", "shape": [COUNT, 3, SIDE, SIDE],
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def resize(plane):
    """Bilinear, with pixels as squares whose corners do not count."""
    def taps(i):
        at = max(0.0, (i + 0.5) * SIDE / SIZE - 0.5)
        low = int(at)
        return low, min(low + 1, SIDE - 1), at - low
    places = [taps(i) for i in range(SIZE)]
    return [[(plane[a][c] * (1 - t) + plane[a][d] * t) * (1 - s)
             + (plane[b][c] * (1 - t) + plane[b][d] * t) * s
             for c, d, t in places] for a, b, s in places]


def features(images):
    weights = [[[[0.1 * math.sin(0.37 * (((o * 3 + c) * STRIDE + y) * STRIDE + x))
                  for x in range(STRIDE)] for y in range(STRIDE)]
                for c in range(3)] for o in range(FILTERS)]
    blocks = SIZE // STRIDE
    rows = []
    for image in images:
        planes = [resize(p) for p in image] if SIZE != SIDE else image
        row = []
        for o in range(FILTERS):
            total = 0.0
            for by in range(blocks):
                for bx in range(blocks):
                    total += max(0.0, sum(
                        weights[o][c][y][x] * planes[c][by * STRIDE + y][bx * STRIDE + x]
                        for c in range(3) for y in range(STRIDE)
                        for x in range(STRIDE)) / 255)
            row.append(total / blocks ** 2)
        rows.append(row)
    return rows


def logits(rows):
    v = [[math.cos(0.53 * (k * FILTERS + i)) for i in range(FILTERS)]
         for k in range(CLASSES)]
    return [[400 * sum(a * b for a, b in zip(row, w)) for w in v] for row in rows]


def multiply(a, b):
    columns = list(zip(*b))
    return [[math.fsum(x * y for x, y in zip(row, column))
             for column in columns] for row in a]


def inverse(a):
    """By Gauss and Jordan with the largest pivot."""
    n = len(a)
    rows = [list(map(float, row)) + [float(i == j) for j in range(n)]
            for i, row in enumerate(a)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i])]
    return [row[n:] for row in rows]


def root(a):
    """A matrix's square root by Denman and Beavers."""
    y, z = a, [[float(i == j) for j in range(len(a))] for i in range(len(a))]
    for _ in range(60):
        iy, iz = inverse(y), inverse(z)
        y, z = ([[(p + q) / 2 for p, q in zip(r, s)] for r, s in zip(y, iz)],
                [[(p + q) / 2 for p, q in zip(r, s)] for r, s in zip(z, iy)])
    return y


def fit(rows):
    n, d = len(rows), len(rows[0])
    mean = [math.fsum(r[i] for r in rows) / n for i in range(d)]
    return mean, [[math.fsum((r[i] - mean[i]) * (r[j] - mean[j]) for r in rows)
                   / (n - 1) for j in range(d)] for i in range(d)]


def frechet(real, fake):
    (m, s), (n, t) = fit(real), fit(fake)
    cross = root(multiply(s, t))
    trace = sum(s[i][i] + t[i][i] - 2 * cross[i][i] for i in range(len(s)))
    return sum((a - b) ** 2 for a, b in zip(m, n)) + trace


def kernel_distance(real, fake):
    def k(x, y):
        return (sum(a * b for a, b in zip(x, y)) / len(x) + 1) ** 3

    def within(rows):
        return math.fsum(k(x, y) for i, x in enumerate(rows)
                         for j, y in enumerate(rows) if i != j) / (
                             len(rows) * (len(rows) - 1))
    return within(real) + within(fake) - 2 * math.fsum(
        k(x, y) for x in real for y in fake) / (len(real) * len(fake))


def covered(points, centers, k=3):
    radii = [sorted(math.dist(c, o) for o in centers)[k] for c in centers]
    return sum(any(math.dist(p, c) <= r for c, r in zip(centers, radii))
               for p in points) / len(points)


def inception_score(rows, splits):
    scores = []
    for s in range(splits):
        part = rows[len(rows) * s // splits:len(rows) * (s + 1) // splits]
        p = []
        for row in part:
            e = [math.exp(v - max(row)) for v in row]
            p.append([v / sum(e) for v in e])
        marginal = [sum(q) / len(p) for q in zip(*p)]
        scores.append(math.exp(sum(
            q * math.log(q / m) for row in p
            for q, m in zip(row, marginal)) / len(p)))
    mean = sum(scores) / splits
    return mean, math.sqrt(sum((v - mean) ** 2 for v in scores) / splits)


class ImageScores(unittest.TestCase):
    def test_they_are_those_of_a_second_computation(self):
        real, fake = draw(1, 110), draw(2, 140)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "images.safetensors")
            write(path, {"real": real, "generated": fake})
            done = subprocess.run([PROGRAM, SCRIPT, str(SIZE), path], text=True,
                                  capture_output=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        real, fake = features(real), features(fake)
        for value, expected in zip(got["features"], sum(real, [])):
            self.assertAlmostEqual(value, expected, delta=2e-5)
        mean, deviation = inception_score(logits(fake), 4)
        for name, expected in {
                "fid": frechet(real, fake),
                "kid": kernel_distance(real, fake),
                "precision": covered(fake, real),
                "recall": covered(real, fake),
                "inception_score": mean,
                "inception_score_deviation": deviation}.items():
            # Features are float32, and what is compared is small.
            self.assertAlmostEqual(got[name], expected,
                                   delta=5e-4 * abs(expected), msg=name)
        # The case is not a trivial one.
        self.assertGreater(got["fid"], 1e-3)
        self.assertGreater(got["inception_score"], 1.02)
        self.assertTrue(0 < got["recall"] < 1)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
