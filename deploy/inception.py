#!/usr/bin/env python3
"""Makes the TorchScript of Inception that gossamer evaluate --inception takes.

  python3 -m venv venv && venv/bin/pip install torch torchvision
  venv/bin/python deploy/inception.py --weights pt_inception-2015-12-05-6726825d.pth --out inception.pt
  gossamer evaluate --run runs/cifar10 --inception inception.pt --samples 50000

The weights are one of these, told apart by what is in the file:
  pt_inception-2015-12-05-6726825d.pth  of the published FID, as pytorch-fid has
                                        them (github.com/mseitz/pytorch-fid, releases)
  inception-2015-12-05.pt               the same network as TorchScript, as StyleGAN has it
  inception_v3_google-0cc3c7bd.pth      torchvision's, trained anew: scores on them
                                        compare with each other only

The result is a function of images [N, 3, 299, 299], floats in [0, 255], to
(features [N, 2048], logits [N, classes]). gossamer resizes the images.
"""

import argparse
import os
import sys
import warnings
import zipfile

warnings.filterwarnings("ignore", category=DeprecationWarning)

CLASSES_OF_FID = 1008  # of the graph of 2015; torchvision's has 1000


def stop(why):
    sys.exit(f"inception: {why}")


try:
    import torch
    import torch.nn.functional as F
    import torchvision
    from torchvision.models import inception
except ImportError as error:
    # --help needs none of them.
    if any(word in ("-h", "--help") for word in sys.argv[1:]):
        print(__doc__.strip())
        sys.exit(0)
    stop(f"{error}; pip install torch torchvision")


# The blocks in which the graph of 2015 differs from torchvision's: averages
# leave the padding out, and the last block takes a maximum.
def average(x):
    return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


def maximum(x):
    return F.max_pool2d(x, 3, stride=1, padding=1)


class BlockA(inception.InceptionA):
    def forward(self, x):
        b5 = self.branch5x5_2(self.branch5x5_1(x))
        b3 = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return torch.cat([self.branch1x1(x), b5, b3,
                          self.branch_pool(average(x))], 1)


class BlockC(inception.InceptionC):
    def forward(self, x):
        b7 = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        d = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        d = self.branch7x7dbl_5(self.branch7x7dbl_4(d))
        return torch.cat([self.branch1x1(x), b7, d,
                          self.branch_pool(average(x))], 1)


class BlockE(inception.InceptionE):
    def __init__(self, channels, pool):
        super().__init__(channels)
        self.pool = pool

    def forward(self, x):
        b = self.branch3x3_1(x)
        d = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        return torch.cat([self.branch1x1(x),
                          self.branch3x3_2a(b), self.branch3x3_2b(b),
                          self.branch3x3dbl_3a(d), self.branch3x3dbl_3b(d),
                          self.branch_pool(self.pool(x))], 1)


def fid_network():
    net = torchvision.models.inception_v3(
        weights=None, num_classes=CLASSES_OF_FID, aux_logits=False,
        init_weights=False)
    net.Mixed_5b = BlockA(192, pool_features=32)
    net.Mixed_5c = BlockA(256, pool_features=64)
    net.Mixed_5d = BlockA(288, pool_features=64)
    net.Mixed_6b = BlockC(768, channels_7x7=128)
    net.Mixed_6c = BlockC(768, channels_7x7=160)
    net.Mixed_6d = BlockC(768, channels_7x7=160)
    net.Mixed_6e = BlockC(768, channels_7x7=192)
    net.Mixed_7b = BlockE(1280, average)
    net.Mixed_7c = BlockE(2048, maximum)
    return net


class Features(torch.nn.Module):
    """Features and logits of a network with torchvision's names."""

    def __init__(self, net, mean, deviation):
        super().__init__()
        self.net = net
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("deviation",
                             torch.tensor(deviation).view(1, -1, 1, 1))

    def forward(self, images):
        x = (images / 255 - self.mean) / self.deviation
        net = self.net
        for name in ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3"):
            x = getattr(net, name)(x)
        x = F.max_pool2d(x, 3, stride=2)
        x = net.Conv2d_4a_3x3(net.Conv2d_3b_1x1(x))
        x = F.max_pool2d(x, 3, stride=2)
        for name in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e", "7a",
                     "7b", "7c"):
            x = getattr(net, "Mixed_" + name)(x)
        features = x.mean((2, 3))
        return features, net.fc(features)


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
        return any("/code/" in name for name in archive.namelist())


def network(path):
    if is_torchscript(path):
        return Detector(torch.jit.load(path, map_location="cpu").eval())
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of many kinds, all of the file
        stop(f"{path} is no file of weights: {error}")
    if not isinstance(state, dict) or "fc.weight" not in state:
        stop(f"{path} has no tensor fc.weight: it is none of the files that "
             "--help lists")
    classes = state["fc.weight"].shape[0]
    if classes == CLASSES_OF_FID:
        net, mean, deviation = fid_network(), [0.5], [0.5]
    else:
        net = torchvision.models.inception_v3(
            weights=None, num_classes=classes, init_weights=False,
            aux_logits=any(k.startswith("AuxLogits.") for k in state))
        mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    # Files of before 2018 lack this counter, which nothing here reads.
    for name, value in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state.setdefault(name, value)
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        stop(f"{path}: {error}")
    return Features(net, mean, deviation)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, metavar="FILE")
    parser.add_argument("--out", required=True, metavar="FILE")
    options = parser.parse_args()
    if not os.path.isfile(options.weights):
        stop(f"{options.weights} is missing")
    module = network(options.weights).eval()
    images = (torch.arange(2 * 3 * 299 * 299) % 256).float().view(
        2, 3, 299, 299)
    with torch.no_grad():
        traced = torch.jit.trace(module, images)
        features, logits = traced(images[:1])
        # One of the batch alone gives what it gives among others.
        if not torch.allclose(features, module(images)[0][:1], rtol=1e-3,
                              atol=1e-3):
            stop("the traced network depends on the size of a batch")
    traced.save(options.out)
    print(f"{options.out}: {features.shape[1]} features, "
          f"{logits.shape[1]} classes")


if __name__ == "__main__":
    main()
