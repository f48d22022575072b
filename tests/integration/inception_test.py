#!/usr/bin/env python3
"""deploy/inception.py on files of weights that are made as the published ones
are, with numbers that a formula gives.

usage: PYTHON_WITH_TORCH inception_test.py deploy/inception.py [unittest arguments]
       PYTHON_WITH_TORCH inception_test.py --expected

inception_layers.txt has the convolutions of torchvision 0.26: name, outputs,
inputs, height, width.  EXPECTED has what pytorch-fid 0.3.0 and torchvision
0.26.0 compute from the same weights and images; --expected prints it where both
are installed.
"""

import math
import os
import subprocess
import sys
import tempfile
import unittest
import zlib

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = os.path.join(HERE, "inception_layers.txt")
SCRIPT = None
FID, TORCHVISION = 1008, 1000  # classes
IMAGES = 3
FEATURE_STEP, LOGIT_STEP = 64, 125

# Every 64th feature and every 125th logit of the first image.
EXPECTED = {
    FID: {
        "features": [0.1737, 0.0999, 0.0, 0.3064, 0.2719, 1.2702, 0.1928,
                     0.3685, 0.2018, 1.3831, 4.4177, 0.3909, 0.7518, 2.8877,
                     0.0, 0.0, 0.3177, 1.3678, 1.2895, 0.8288, 0.0001, 1.747,
                     0.4123, 0.6794, 2.168, 0.363, 0.9222, 2.325, 0.0579,
                     0.0, 0.0, 2.0343],
        "logits": [-6.0292, -3.3349, 2.8199, -1.8767, -7.4686, -3.0085,
                   7.7395, 1.562, -8.297]},
    TORCHVISION: {
        "features": [0.2749, 0.0904, 0.0007, 0.3896, 0.3203, 1.3718, 0.2079,
                     0.4029, 0.2025, 1.2648, 4.3244, 0.3359, 0.7529, 2.6194,
                     0.0, 0.0, 0.3112, 1.4608, 1.2562, 0.8204, 0.0, 1.8994,
                     0.4955, 0.7142, 2.0449, 0.3401, 0.9865, 2.2698, 0.0487,
                     0.0, 0.0, 1.4088],
        "logits": [-5.4966, -3.0475, 2.7698, -1.7065, -7.7033, -1.9686,
                   6.8425, 1.6608]}}


def table():
    """Returns numbers in [0, 1] that look random, equal on every machine."""
    mask = 0xffffffff
    k = torch.arange(1, 65538)
    for factor in (2654435761, 2246822519):
        k = (k * factor) & mask
        k ^= k >> 15
    return (k.double() / mask).float()


def numbers(name, shape, low, high):
    """Returns numbers of the table, from a place that the name chooses."""
    values = TABLE.roll(zlib.crc32(name.encode()) % len(TABLE))
    count = math.prod(shape)
    values = values.repeat(count // len(TABLE) + 1)[:count].view(shape)
    return low + (high - low) * values


TABLE = table()


def weights(classes):
    """Returns a file's tensors by name.  Torchvision's has its second classifier,
    and counters of batches, which the older file lacks."""
    tensors = {}
    with open(LAYERS, encoding="utf-8") as lines:
        layers = [line.split() for line in lines]
    for name, *shape in layers:
        if name.startswith("AuxLogits.") and classes == FID:
            continue
        shape = [int(length) for length in shape]
        # The layers keep the size of what goes through them.
        bound = (6 / (shape[1] * shape[2] * shape[3])) ** 0.5
        for part, sizes, low, high in (
                ("conv.weight", shape, -bound, bound),
                ("bn.weight", shape[:1], 0.8, 1.2),
                ("bn.bias", shape[:1], -0.1, 0.5),
                ("bn.running_mean", shape[:1], -0.2, 0.2),
                ("bn.running_var", shape[:1], 0.8, 1.2)):
            tensors[f"{name}.{part}"] = numbers(f"{name}.{part}", sizes, low,
                                                high)
        if classes == TORCHVISION:
            tensors[f"{name}.bn.num_batches_tracked"] = torch.tensor(0)
    for name, inputs in (("fc", 2048), ("AuxLogits.fc", 768)):
        if name == "fc" or classes == TORCHVISION:
            tensors[f"{name}.weight"] = numbers(f"{name}.weight",
                                                [classes, inputs], -0.1, 0.1)
            tensors[f"{name}.bias"] = numbers(f"{name}.bias", [classes], -1, 1)
    return tensors


def images():
    i, c, y, x = torch.meshgrid(
        *(torch.arange(n) for n in (IMAGES, 3, 299, 299)), indexing="ij")
    return ((x * (3 + i) + y * (5 - i) + 40 * c) % 256).float()


def shown(features, logits):
    return {"features": features[0, ::FEATURE_STEP],
            "logits": logits[0, ::LOGIT_STEP]}


class StyleGan(torch.nn.Module):
    """A TorchScript that is called as StyleGAN's is, and has three features."""

    def forward(self, images: torch.Tensor, return_features: bool = False):
        features = images.mean((2, 3))
        if return_features:
            return features
        return torch.softmax(features / 64, 1)


class Plain(torch.nn.Module):
    def forward(self, images: torch.Tensor):
        return images.mean((2, 3))


class InceptionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def save(self, name, content):
        torch.save(content, self.path(name))
        return name

    def run_script(self, weights_file, out="out.pt", python=(sys.executable,)):
        return subprocess.run(
            [*python, SCRIPT, "--weights", self.path(weights_file), "--out",
             self.path(out)], text=True, capture_output=True, check=False)

    def loaded(self, weights_file, prints):
        """Returns the function that the script makes of the file."""
        done = self.run_script(weights_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"{self.path('out.pt')}: {prints}\n")
        return torch.jit.load(self.path("out.pt"))

    def assert_refused(self, weights_file, *words):
        done = self.run_script(weights_file, "none.pt")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stderr.startswith("inception: "), done.stderr)
        for word in (self.path(weights_file), *words):
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(self.path("none.pt")))

    def test_features_and_logits_are_those_of_the_packages(self):
        outputs = {}
        for classes in (FID, TORCHVISION):
            with self.subTest(classes=classes), torch.no_grad():
                self.save("weights.pth", weights(classes))
                net = self.loaded("weights.pth",
                                  f"2048 features, {classes} classes")
                features, logits = outputs[classes] = net(images())
                self.assertEqual(features.shape, (IMAGES, 2048))
                self.assertEqual(logits.shape, (IMAGES, classes))
                self.assertEqual(features.dtype, torch.float32)
                for name, values in shown(features, logits).items():
                    torch.testing.assert_close(
                        values, torch.tensor(EXPECTED[classes][name]),
                        rtol=1e-3, atol=1e-3)
                # An image has its features whatever the others are.
                alone, _ = net(images()[1:2])
                torch.testing.assert_close(alone, features[1:2], rtol=1e-3,
                                           atol=1e-3)
        # The convolutions of both files are equal, the pools are not.
        self.assertGreater(
            (outputs[FID][0] - outputs[TORCHVISION][0]).abs().mean(), 0.05)

    def test_the_torchscript_of_stylegan_is_asked_twice(self):
        torch.jit.script(StyleGan()).save(self.path("stylegan.pt"))
        net = self.loaded("stylegan.pt", "3 features, 3 classes")
        features, logits = net(images())
        torch.testing.assert_close(features, images().mean((2, 3)))
        torch.testing.assert_close(torch.softmax(logits, 1),
                                   torch.softmax(features / 64, 1))

    def test_other_files_are_refused_with_the_reason(self):
        with open(self.path("page.pth"), "w", encoding="utf-8") as page:
            page.write("<!DOCTYPE html><title>Not found</title>")
        self.assert_refused("page.pth", "is no file of weights")
        self.assert_refused("absent.pth", "is missing")
        self.save("list.pth", [torch.zeros(2)])
        self.assert_refused("list.pth", "has no matrix fc.weight", "--help")
        self.save("number.pth", {"fc.weight": 3})
        self.assert_refused("number.pth", "has no matrix fc.weight")
        torch.jit.script(Plain()).save(self.path("plain.pt"))
        self.assert_refused("plain.pt", "not StyleGAN's", "return_features")

    def test_missing_unknown_and_wrong_tensors_are_named(self):
        name = "Mixed_6c.branch7x7_2.conv.weight"
        missing = weights(FID)
        del missing[name]
        self.save("missing.pth", missing)
        self.assert_refused("missing.pth", "Missing key", name)
        unknown = weights(TORCHVISION)
        unknown["layer4.conv.weight"] = torch.zeros(1)
        self.save("unknown.pth", unknown)
        self.assert_refused("unknown.pth", "Unexpected key",
                            "layer4.conv.weight")
        wrong = weights(FID)
        wrong[name] = wrong[name].transpose(2, 3).contiguous()
        self.save("wrong.pth", wrong)
        self.assert_refused("wrong.pth", "size mismatch", name)

    def test_help_needs_no_torch_and_says_where_the_files_are(self):
        bare = (sys.executable, "-S")  # without installed packages
        shown_help = subprocess.run([*bare, SCRIPT, "--help"], text=True,
                                    capture_output=True, check=False)
        self.assertEqual(shown_help.returncode, 0, shown_help.stderr)
        for name in ("pt_inception-2015-12-05-6726825d.pth",
                     "github.com/mseitzer/pytorch-fid",
                     "inception-2015-12-05.pt",
                     "inception_v3_google-0cc3c7bd.pth"):
            self.assertIn(name, shown_help.stdout)
        done = self.run_script("any.pth", python=bare)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip install torch", done.stderr)


def print_expected():
    """Prints EXPECTED by the packages themselves."""
    import pytorch_fid.inception as published
    import torchvision

    layers = {
        name[:-len(".conv.weight")]: list(value.shape)
        for name, value in torchvision.models.inception_v3(
            weights=None, init_weights=False).state_dict().items()
        if name.endswith(".conv.weight")}
    with open(LAYERS, encoding="utf-8") as lines:
        assert layers == {name: [int(length) for length in shape]
                          for name, *shape in map(str.split, lines)}

    def run(net, pixels):
        kept = []
        net.eval().fc.register_forward_pre_hook(
            lambda _, inputs: kept.append(inputs[0]))
        with torch.no_grad():
            logits = net(pixels)
        return kept[0], logits

    pixels = images() / 255
    # Counters are no numbers of the network.
    counters = {name: value for name, value in weights(TORCHVISION).items()
                if name.endswith("num_batches_tracked") and
                not name.startswith("AuxLogits.")}
    published.load_state_dict_from_url = (
        lambda *_, **__: {**weights(FID), **counters})
    outputs = {FID: run(published.fid_inception_v3(), 2 * pixels - 1)}
    with torch.no_grad():
        features = published.InceptionV3(resize_input=False).eval()(pixels)[0]
    assert torch.equal(outputs[FID][0], features.flatten(1))
    # As inception_v3(weights="DEFAULT") makes it, and its transforms the input.
    net = torchvision.models.inception_v3(weights=None, init_weights=False,
                                          transform_input=True)
    net.load_state_dict(weights(TORCHVISION))
    mean, deviation = (torch.tensor(v).view(1, 3, 1, 1) for v in (
        [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    outputs[TORCHVISION] = run(net, (pixels - mean) / deviation)
    for classes, output in outputs.items():
        print(classes, {name: [round(v, 4) for v in values.tolist()]
                        for name, values in shown(*output).items()})
    return outputs


if __name__ == "__main__":
    if sys.argv[1:] == ["--expected"]:
        print_expected()
        sys.exit()
    SCRIPT = os.path.abspath(sys.argv.pop(1))
    # Torch says at each use that TorchScript, which gossamer reads, is old.
    unittest.main(warnings="ignore")
