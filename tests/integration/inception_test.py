#!/usr/bin/env python3
"""deploy/inception.py on files of weights with the names and shapes of the
published ones, and numbers that a formula gives.

usage: PYTHON_WITH_TORCH inception_test.py deploy/inception.py [unittest arguments]
       PYTHON_WITH_TORCH inception_test.py --expected

inception_layers.txt has the convolutions of torchvision 0.26: name, outputs,
inputs, height, width.  EXPECTED has what pytorch-fid 0.3.0 and torchvision
0.26.0 compute from the same weights and images; --expected prints it where both
are installed.  StyleGAN's TorchScript has a stand-in that is called as it is.
"""

import collections
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
import zlib

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = os.path.join(HERE, "inception_layers.txt")
SCRIPT = None
FID, TORCHVISION = 1008, 1000  # classes
IMAGES = 3
FEATURE_STEP, LOGIT_STEP = 64, 125
ADDRESSES = [
    "https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/"
    "pt_inception-2015-12-05-6726825d.pth",
    "https://nvlabs-fi-cdn.nvidia.com/stylegan2-ada-pytorch/pretrained/metrics/"
    "inception-2015-12-05.pt",
    "https://download.pytorch.org/models/inception_v3_google-0cc3c7bd.pth"]

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

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, images: torch.Tensor, return_features: bool = False):
        features = images.mean((2, 3)) * self.scale
        if return_features:
            return features
        return torch.softmax(features / 64, 1)


class Plain(torch.nn.Module):
    def forward(self, images: torch.Tensor):
        return images.mean((2, 3))


class OfOtherImages(torch.nn.Module):
    def forward(self, images: torch.Tensor, return_features: bool = False):
        return images.view(-1, 7, 299, 299)


def damage(path, member):
    """Changes a bit in the middle of the archive's member."""
    with zipfile.ZipFile(path) as archive:
        info = next(i for i in archive.infolist()
                    if i.filename.endswith(member))
    with open(path, "r+b") as file:
        # The lengths of the name and of what follows it.
        file.seek(info.header_offset + 26)
        name, more = (int.from_bytes(file.read(2), "little") for _ in range(2))
        file.seek(info.header_offset + 30 + name + more +
                  info.compress_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


class InceptionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def save(self, name, content, **how):
        torch.save(content, self.path(name), **how)
        return name

    def save_as_before_torch_1_6(self, name, content):
        """The format of the FID's file, which is no archive."""
        self.save(name, collections.OrderedDict(content),
                  _use_new_zipfile_serialization=False)
        self.assertFalse(zipfile.is_zipfile(self.path(name)))

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

    def assert_stopped(self, done, *words):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\Ainception: .+\n\Z")  # one line
        for word in words:
            self.assertIn(word, done.stderr)

    def assert_refused(self, weights_file, *words):
        self.assert_stopped(self.run_script(weights_file, "none.pt"),
                            self.path(weights_file), *words)
        self.assertFalse(os.path.exists(self.path("none.pt")))

    def test_features_and_logits_are_those_of_the_packages(self):
        outputs = {}
        for classes in (FID, TORCHVISION):
            with self.subTest(classes=classes), torch.no_grad():
                save = (self.save_as_before_torch_1_6 if classes == FID
                        else self.save)
                save("weights.pth", weights(classes))
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
        self.assert_refused("page.pth",
                            "is no file of weights, or not a whole one")
        self.assert_refused("absent.pth", "is missing")
        self.save("list.pth", [torch.zeros(2)])
        self.assert_refused("list.pth", "has no matrix fc.weight", "--help")
        self.save("number.pth", {"fc.weight": 3})
        self.assert_refused("number.pth", "has no matrix fc.weight")
        torch.jit.script(Plain()).save(self.path("plain.pt"))
        self.assert_refused("plain.pt", "not StyleGAN's", "return_features")

    def test_a_damaged_torchscript_is_refused_in_one_line(self):
        def whole(name):
            torch.jit.script(StyleGan()).save(self.path(name))
            return self.path(name)

        os.truncate(whole("cut.pt"), os.path.getsize(whole("cut.pt")) * 2 // 3)
        self.assert_refused("cut.pt", "is no file of weights")
        # Torch loads a changed number without a word.
        for member in ("data/0", "data.pkl", "__torch__.py", "constants.pkl"):
            with self.subTest(member):
                damage(whole("changed.pt"), member)
                self.assert_refused("changed.pt", "is no file of weights")
        with zipfile.ZipFile(whole("whole.pt")) as archive, \
                zipfile.ZipFile(self.path("part.pt"), "w") as part:
            for name in archive.namelist():
                if not name.endswith("constants.pkl"):
                    part.writestr(name, archive.read(name))
        self.assert_refused("part.pt", "is no file of weights",
                            "constants.pkl")
        torch.jit.script(OfOtherImages()).save(self.path("other.pt"))
        self.assert_refused("other.pt", "fails on images [2, 3, 299, 299]",
                            "shape")

    def test_a_damaged_file_of_tensors_is_refused_in_one_line(self):
        self.save("zip.pth", {"fc.weight": torch.ones(8, 2048)})
        damage(self.path("zip.pth"), "data/0")
        self.assert_refused("zip.pth", "is no file of weights", "data/0")
        self.save_as_before_torch_1_6("old.pth",
                                      {"fc.weight": torch.ones(8, 2048)})
        os.truncate(self.path("old.pth"), 9000)
        self.assert_refused("old.pth", "is no file of weights")

    def test_a_place_for_the_result_is_looked_for_before_the_work(self):
        # The weights are missing as well, which is found later.
        out = os.path.join("no", "such", "out.pt")
        self.assert_stopped(self.run_script("absent.pth", out),
                            "there is no folder", self.path("no/such"))
        self.assert_stopped(self.run_script("absent.pth", "."), "is a folder")
        torch.jit.script(StyleGan()).save(self.path("stylegan.pt"))
        self.assert_stopped(self.run_script("stylegan.pt", "/dev/full"),
                            "/dev/full cannot be written", "No space left")

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

    def test_help_and_the_recipe_say_where_the_files_are(self):
        bare = (sys.executable, "-S")  # without torch, as without all packages
        shown_help = subprocess.run([*bare, SCRIPT, "--help"], text=True,
                                    capture_output=True, check=False)
        self.assertEqual(shown_help.returncode, 0, shown_help.stderr)
        deploy = os.path.dirname(SCRIPT)
        with open(os.path.join(deploy, "setup.sh"), encoding="utf-8") as setup:
            torch_of_gossamer = "torch==" + re.search(
                r"^TORCH_VERSION=(\S+)$", setup.read(), re.M)[1]
        install = f"pip install {torch_of_gossamer}\n"
        with open(os.path.join(deploy, "RECIPES.md"), encoding="utf-8") as page:
            recipe = page.read()
        for text in (shown_help.stdout, recipe):
            for words in (*ADDRESSES, f"curl -LO {ADDRESSES[0]}\n", install):
                self.assertIn(words, text)
        self.assert_stopped(self.run_script("any.pth", python=bare),
                            f"pip install {torch_of_gossamer}")


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
