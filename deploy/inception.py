#!/usr/bin/env python3
"""Makes the TorchScript of Inception that gossamer evaluate --inception takes.

  curl -LO https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/pt_inception-2015-12-05-6726825d.pth
  python3 -m venv venv
  venv/bin/pip install torch==2.11.0
  venv/bin/python deploy/inception.py --weights pt_inception-2015-12-05-6726825d.pth --out inception.pt
  gossamer evaluate --run runs/cifar10 --inception inception.pt --samples 50000

Torch 2.11.0 is the version that gossamer has; it may be unable to read what a
newer one writes, and needs Python 3.10 or later.  After deploy/setup.sh --for tests
the program .deps/torch-2.11.0/bin/python has it, and no venv is needed.

The weights are one of these, told apart by what is in the file:
  pt_inception-2015-12-05-6726825d.pth  of the published FID, as pytorch-fid has
                                        them: the address above
  inception-2015-12-05.pt               StyleGAN's TorchScript, by its authors a
                                        translation of the graph of 2015; its
                                        features are not compared here
    https://nvlabs-fi-cdn.nvidia.com/stylegan2-ada-pytorch/pretrained/metrics/inception-2015-12-05.pt
  inception_v3_google-0cc3c7bd.pth      torchvision's, which are others: scores on
                                        them compare with each other only
    https://download.pytorch.org/models/inception_v3_google-0cc3c7bd.pth

The result is a function of images [N, 3, 299, 299], floats in [0, 255], to
(features [N, 2048], logits [N, classes]). gossamer resizes the images.
"""

import argparse
import os
import pickle
import sys
import textwrap
import warnings
import zipfile

warnings.filterwarnings("ignore", category=DeprecationWarning)

CLASSES_OF_FID = 1008  # of the graph of 2015; torchvision's has 1000


def stop(why):
    sys.exit(f"inception: {why}")


def one_line(error):
    """Returns what an error says, of which torch's may have many lines."""
    return textwrap.shorten(str(error) or type(error).__name__, 400,
                            placeholder=" ...")


try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    # --help does not need it.
    if any(word in ("-h", "--help") for word in sys.argv[1:]):
        print(__doc__.strip())
        sys.exit(0)
    stop(f"{error}; pip install torch==2.11.0, as --help says")


class Layer(torch.nn.Module):
    """Convolution, batch normalization, ReLU; padded unless it strides."""

    def __init__(self, inputs, outputs, size, stride=1, padding=None):
        super().__init__()
        sizes = (size, size) if isinstance(size, int) else size
        if padding is None:
            padding = tuple(s // 2 if stride == 1 else 0 for s in sizes)
        self.conv = torch.nn.Conv2d(inputs, outputs, sizes, stride, padding,
                                    bias=False)
        self.bn = torch.nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


def average(x):
    return F.avg_pool2d(x, 3, stride=1, padding=1)


# In the graph of 2015 averages leave the padding out, and the last block takes
# a maximum.
def average_without_padding(x):
    return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


def maximum(x):
    return F.max_pool2d(x, 3, stride=1, padding=1)


class Block(torch.nn.Module):
    """Layers by name, and the pooling of the block's last branch."""

    def __init__(self, pool, layers):
        super().__init__()
        self.pool = pool
        for name, shape in layers.items():
            self.add_module(name, Layer(*shape))

    def after(self, x, *names):
        for name in names:
            x = getattr(self, name)(x)
        return x


# The blocks have the names of torchvision, which the files of weights have.
class BlockA(Block):
    def __init__(self, inputs, pooled, pool):
        super().__init__(pool, {
            "branch1x1": (inputs, 64, 1),
            "branch5x5_1": (inputs, 48, 1),
            "branch5x5_2": (48, 64, 5),
            "branch3x3dbl_1": (inputs, 64, 1),
            "branch3x3dbl_2": (64, 96, 3),
            "branch3x3dbl_3": (96, 96, 3),
            "branch_pool": (inputs, pooled, 1)})

    def forward(self, x):
        return torch.cat([
            self.branch1x1(x),
            self.after(x, "branch5x5_1", "branch5x5_2"),
            self.after(x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
            self.branch_pool(self.pool(x))], 1)


class BlockB(Block):
    def __init__(self, inputs):
        super().__init__(None, {
            "branch3x3": (inputs, 384, 3, 2),
            "branch3x3dbl_1": (inputs, 64, 1),
            "branch3x3dbl_2": (64, 96, 3),
            "branch3x3dbl_3": (96, 96, 3, 2)})

    def forward(self, x):
        return torch.cat([
            self.branch3x3(x),
            self.after(x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
            F.max_pool2d(x, 3, stride=2)], 1)


class BlockC(Block):
    def __init__(self, inputs, inner, pool):
        row, column = (1, 7), (7, 1)
        super().__init__(pool, {
            "branch1x1": (inputs, 192, 1),
            "branch7x7_1": (inputs, inner, 1),
            "branch7x7_2": (inner, inner, row),
            "branch7x7_3": (inner, 192, column),
            "branch7x7dbl_1": (inputs, inner, 1),
            "branch7x7dbl_2": (inner, inner, column),
            "branch7x7dbl_3": (inner, inner, row),
            "branch7x7dbl_4": (inner, inner, column),
            "branch7x7dbl_5": (inner, 192, row),
            "branch_pool": (inputs, 192, 1)})

    def forward(self, x):
        return torch.cat([
            self.branch1x1(x),
            self.after(x, "branch7x7_1", "branch7x7_2", "branch7x7_3"),
            self.after(x, "branch7x7dbl_1", "branch7x7dbl_2", "branch7x7dbl_3",
                       "branch7x7dbl_4", "branch7x7dbl_5"),
            self.branch_pool(self.pool(x))], 1)


class BlockD(Block):
    def __init__(self, inputs):
        super().__init__(None, {
            "branch3x3_1": (inputs, 192, 1),
            "branch3x3_2": (192, 320, 3, 2),
            "branch7x7x3_1": (inputs, 192, 1),
            "branch7x7x3_2": (192, 192, (1, 7)),
            "branch7x7x3_3": (192, 192, (7, 1)),
            "branch7x7x3_4": (192, 192, 3, 2)})

    def forward(self, x):
        return torch.cat([
            self.after(x, "branch3x3_1", "branch3x3_2"),
            self.after(x, "branch7x7x3_1", "branch7x7x3_2", "branch7x7x3_3",
                       "branch7x7x3_4"),
            F.max_pool2d(x, 3, stride=2)], 1)


class BlockE(Block):
    def __init__(self, inputs, pool):
        row, column = (1, 3), (3, 1)
        super().__init__(pool, {
            "branch1x1": (inputs, 320, 1),
            "branch3x3_1": (inputs, 384, 1),
            "branch3x3_2a": (384, 384, row),
            "branch3x3_2b": (384, 384, column),
            "branch3x3dbl_1": (inputs, 448, 1),
            "branch3x3dbl_2": (448, 384, 3),
            "branch3x3dbl_3a": (384, 384, row),
            "branch3x3dbl_3b": (384, 384, column),
            "branch_pool": (inputs, 192, 1)})

    def forward(self, x):
        b = self.branch3x3_1(x)
        d = self.after(x, "branch3x3dbl_1", "branch3x3dbl_2")
        return torch.cat([
            self.branch1x1(x),
            self.branch3x3_2a(b), self.branch3x3_2b(b),
            self.branch3x3dbl_3a(d), self.branch3x3dbl_3b(d),
            self.branch_pool(self.pool(x))], 1)


class Inception(torch.nn.Module):
    """Features and logits, of the graph of 2015 if it has that one's classes."""

    def __init__(self, classes):
        super().__init__()
        of_fid = classes == CLASSES_OF_FID
        mean = average_without_padding if of_fid else average
        self.Conv2d_1a_3x3 = Layer(3, 32, 3, 2)
        self.Conv2d_2a_3x3 = Layer(32, 32, 3, padding=0)
        self.Conv2d_2b_3x3 = Layer(32, 64, 3)
        self.Conv2d_3b_1x1 = Layer(64, 80, 1)
        self.Conv2d_4a_3x3 = Layer(80, 192, 3, padding=0)
        self.Mixed_5b = BlockA(192, 32, mean)
        self.Mixed_5c = BlockA(256, 64, mean)
        self.Mixed_5d = BlockA(288, 64, mean)
        self.Mixed_6a = BlockB(288)
        self.Mixed_6b = BlockC(768, 128, mean)
        self.Mixed_6c = BlockC(768, 160, mean)
        self.Mixed_6d = BlockC(768, 160, mean)
        self.Mixed_6e = BlockC(768, 192, mean)
        self.Mixed_7a = BlockD(768)
        self.Mixed_7b = BlockE(1280, mean)
        self.Mixed_7c = BlockE(2048, maximum if of_fid else mean)
        self.fc = torch.nn.Linear(2048, classes)

    def forward(self, images):
        # Both networks take pixels in [-1, 1]; torchvision turns its own range
        # into this one inside of the network (transform_input).
        x = 2 * (images / 255) - 1
        x = self.Conv2d_1a_3x3(x)
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(x))
        x = F.max_pool2d(x, 3, stride=2)
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x))
        x = F.max_pool2d(x, 3, stride=2)
        for name in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e", "7a",
                     "7b", "7c"):
            x = getattr(self, "Mixed_" + name)(x)
        features = x.mean((2, 3))
        return features, self.fc(features)


class Detector(torch.nn.Module):
    """Features and logits of StyleGAN's TorchScript."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images):
        features = self.net(images, return_features=True)
        # Its output without features is softmax; the weights are inside.
        return features, torch.log(self.net(images).clamp_min(1e-30))


def is_torchscript(path):
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
        if damaged:  # torch would take numbers that are damaged
            raise zipfile.BadZipFile(f"{damaged} in it is damaged")
        return any("/code/" in name for name in archive.namelist())


def detector(path, net):
    try:
        arguments = [a.name for a in net.forward.schema.arguments]
    except AttributeError:  # there is no forward
        arguments = []
    if "return_features" not in arguments:
        stop(f"{path} is a TorchScript, but not StyleGAN's: its forward has no "
             "argument return_features")
    return Detector(net)


def inception(path, state):
    last = state.get("fc.weight") if isinstance(state, dict) else None
    if not isinstance(last, torch.Tensor) or last.dim() != 2:
        stop(f"{path} has no matrix fc.weight: it is none of the files that "
             "--help lists")
    net = Inception(last.shape[0])
    # Torchvision's has a second classifier, which only training uses.
    state = {name: value for name, value in state.items()
             if not name.startswith("AuxLogits.")}
    # Files of before 2018 lack this counter, which nothing here reads.
    for name, value in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state.setdefault(name, value)
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        stop(f"{path}: {one_line(error)}")
    return net


def network(path):
    try:
        if is_torchscript(path):
            make, content = detector, torch.jit.load(path, map_location="cpu")
        else:
            make, content = inception, torch.load(path, map_location="cpu",
                                                  weights_only=True)
    except pickle.UnpicklingError:  # whose text advises to trust the file
        stop(f"{path} is no file of weights, or not a whole one")
    except Exception as error:  # of many kinds, all of the file
        stop(f"{path} is no file of weights: {one_line(error)}")
    return make(path, content)


def traced_network(path):
    """Returns the function, the number of its features and that of its classes."""
    module = network(path).eval()
    images = (torch.arange(2 * 3 * 299 * 299) % 256).float().view(
        2, 3, 299, 299)
    with torch.no_grad():
        try:
            traced = torch.jit.trace(module, images)
            features, logits = traced(images[:1])
            both, _ = module(images)
        except RuntimeError as error:
            # The last line has the reason, those before it the calls.
            lines = str(error).strip().splitlines() or [""]
            stop(f"{path} fails on images [2, 3, 299, 299]: "
                 f"{one_line(lines[-1])}")
        # One of the batch alone gives what it gives among others.
        if not torch.allclose(features, both[:1], rtol=1e-3, atol=1e-3):
            stop("the traced network depends on the size of a batch")
    return traced, features.shape[1], logits.shape[1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, metavar="FILE")
    parser.add_argument("--out", required=True, metavar="FILE")
    options = parser.parse_args()
    folder = os.path.dirname(os.path.abspath(options.out))
    if not os.path.isdir(folder):
        stop(f"there is no folder {folder} for --out {options.out}")
    if os.path.isdir(options.out):
        stop(f"--out {options.out} is a folder; it takes a file")
    if not os.path.isfile(options.weights):
        stop(f"{options.weights} is missing")
    traced, features, classes = traced_network(options.weights)
    try:
        with open(options.out, "wb") as out:
            out.write(traced.save_to_buffer())
    except OSError as error:
        stop(f"{options.out} cannot be written: {error.strerror}")
    print(f"{options.out}: {features} features, {classes} classes")


if __name__ == "__main__":
    main()
