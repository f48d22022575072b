#!/usr/bin/env python3
"""The power fails while a peer saves checkpoints: the newest one that was reported
as saved, or a later one, is there and whole.

The test needs a real file system that loses what was not synced: ext4 in a file,
shut down without writing its journal (EXT4_IOC_SHUTDOWN) at a random moment, then
mounted again.  It runs as root, since it mounts a file system, and in a mount
namespace of its own, since a copy of the mount in another namespace would keep the
disk that was shut down.

usage: power_loss_test.py PATH_OF_CHECKPOINT_WRITER [--points N] [--seed S]
           [--finds BUG]

With --finds, in a build with planted bugs, the test is that a checkpoint is lost.
"""

import argparse
import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
WITHOUT_JOURNAL = 2
LIMIT = 60  # seconds, a bound on every wait
LONGEST = 0.25  # seconds from the first save to the end


class Disk:
    """An ext4 file system in a file."""

    def __init__(self, folder):
        self.image = os.path.join(folder, "disk")
        self.mounted = os.path.join(folder, "mounted")
        os.mkdir(self.mounted)
        subprocess.run(["truncate", "-s", "64M", self.image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.mounted],
                       check=True, timeout=LIMIT)

    def unmount(self):
        subprocess.run(["umount", self.mounted], check=True, timeout=LIMIT)

    def cut_power(self):
        fd = os.open(self.mounted, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN,
                        struct.pack("I", WITHOUT_JOURNAL))
        finally:
            os.close(fd)


def save_until_power_loss(writer, disk, folder, first, after):
    """Returns the last round that was reported as saved; first - 1 if none was.
    """
    process = subprocess.Popen([writer, "write", folder, str(first)],
                               stdout=subprocess.PIPE, text=True)
    began = process.stdout.readline()
    if not began.startswith("saved"):
        raise AssertionError(f"the writer says {began!r}")
    cut = threading.Timer(after, disk.cut_power)
    cut.start()
    saved = int(began.split()[1])
    for line in process.stdout:
        if line.startswith("saved"):
            saved = int(line.split()[1])
    cut.join()
    process.wait(timeout=LIMIT)
    return saved


def newest(writer, folder):
    out = subprocess.run([writer, "read", folder], capture_output=True,
                         text=True, check=True, timeout=LIMIT).stdout
    word, _, rest = out.strip().partition(" ")
    if word != "newest":
        raise AssertionError(f"after the loss: {out.strip()}")
    return int(rest)


def run(writer, points, seed):
    draw = random.Random(seed)
    scratch = tempfile.mkdtemp(prefix="gossamer-power-")
    disk = Disk(scratch)
    folder = os.path.join(disk.mounted, "checkpoints")
    first, total, began = 1, 0, time.time()
    try:
        for point in range(points):
            disk.mount()
            try:
                saved = save_until_power_loss(writer, disk, folder, first,
                                              draw.uniform(0, LONGEST))
            finally:
                disk.unmount()
            disk.mount()
            try:
                found = newest(writer, folder)
            finally:
                disk.unmount()
            if found < saved:
                raise AssertionError(
                    f"point {point} (--seed {seed}): round {saved} was saved, "
                    f"the newest whole one is {found}")
            total += saved - first + 1
            first = found + 1
    finally:
        shutil.rmtree(scratch)
    print(f"{points} power losses during {total} checkpoints in "
          f"{time.time() - began:.0f} s: each time the last one saved, or a "
          "later one, was there and whole")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("writer")
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--finds", metavar="BUG")
    arguments = parser.parse_args()
    if os.environ.get("POWER_LOSS_ALONE") != "1":
        os.environ["POWER_LOSS_ALONE"] = "1"
        # Mounts must not reach the machine.  In a root that is no mount, as of a
        # chroot, nothing of it can be made private.
        alone = ["unshare", "--mount"]
        with open("/proc/self/mountinfo") as mounts:
            if all(line.split()[4] != "/" for line in mounts):
                alone += ["--propagation", "unchanged"]
        os.execvp("unshare", [*alone, sys.executable, *sys.argv])
    if not arguments.finds:
        run(arguments.writer, arguments.points, arguments.seed)
        return
    os.environ["GOSSAMER_BUG"] = arguments.finds
    try:
        run(arguments.writer, arguments.points, arguments.seed)
    except AssertionError as found:
        print(f"{arguments.finds}: {found}")
        return
    sys.exit(f"{arguments.finds}: not found")


if __name__ == "__main__":
    sys.exit(main())
