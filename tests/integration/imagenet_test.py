#!/usr/bin/env python3
"""deploy/imagenet.sh on small archives that are made as ImageNet's are: an
archive of archives, pictures without classes, and boxes that name them."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

SCRIPT = None


def add(archive, name, content):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def box(classes):
    objects = "".join(f"\t<object>\n\t\t<name>{c}</name>\n\t</object>\n"
                      for c in classes)
    # Some of ImageNet's files name their picture "%s".
    return (f"<annotation>\n\t<filename>%s</filename>\n{objects}"
            "</annotation>\n").encode()


class ImageNetTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.downloads = os.path.join(self.folder.name, "downloads")
        self.out = os.path.join(self.folder.name, "out")
        os.mkdir(self.downloads)
        with self.archive("ILSVRC2012_img_train.tar") as train:
            for c in ("n00000001", "n00000002", "n00000003"):
                inner = io.BytesIO()
                with tarfile.open(fileobj=inner, mode="w") as pictures:
                    for i in range(3):
                        add(pictures, f"{c}_{i}.JPEG", f"{c} {i}".encode())
                add(train, f"{c}.tar", inner.getvalue())
        with self.archive("ILSVRC2012_img_val.tar") as val:
            for i in range(1, 5):
                add(val, f"ILSVRC2012_val_{i:08}.JPEG", f"val {i}".encode())
        self.boxes(4)

    def archive(self, name, mode="w"):
        return tarfile.open(os.path.join(self.downloads, name), mode)

    def boxes(self, count):
        with self.archive("ILSVRC2012_bbox_val_v3.tgz", "w:gz") as boxes:
            for i in range(1, count + 1):
                add(boxes, f"val/ILSVRC2012_val_{i:08}.xml",
                    box([f"n0000000{1 + i % 3}"] * i))

    def run_script(self):
        return subprocess.run([SCRIPT, self.downloads, self.out],
                              capture_output=True, text=True, check=False)

    def test_sorts_pictures_into_classes(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("9 pictures of 3 classes to train", done.stdout)
        self.assertIn("4 pictures of 3 classes held out", done.stdout)
        with open(f"{self.out}/train/n00000002/n00000002_1.JPEG",
                  encoding="ascii") as picture:
            self.assertEqual(picture.read(), "n00000002 1")
        self.assertEqual(
            sorted(os.listdir(f"{self.out}/val/n00000002")),
            ["ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000004.JPEG"])
        self.assertEqual(sorted(os.listdir(self.out)), ["train", "val"])

    def test_goes_on_where_it_was(self):
        os.makedirs(f"{self.out}/train/n00000001")
        os.makedirs(f"{self.out}/train/n00000002.part/rest")
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        # A class that has its name is taken for whole.
        self.assertEqual(os.listdir(f"{self.out}/train/n00000001"), [])
        self.assertEqual(len(os.listdir(f"{self.out}/train/n00000002")), 3)
        self.assertFalse(os.path.exists(f"{self.out}/train/n00000002.part"))
        again = self.run_script()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("6 pictures of 3 classes to train", again.stdout)

    def test_pictures_without_a_class_are_an_error(self):
        self.boxes(3)
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 pictures of", done.stderr)
        self.assertFalse(os.path.exists(f"{self.out}/val"))

    def test_a_missing_download_is_named(self):
        os.remove(f"{self.downloads}/ILSVRC2012_img_val.tar")
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("ILSVRC2012_img_val.tar is missing", done.stderr)


if __name__ == "__main__":
    SCRIPT = sys.argv.pop(1)
    unittest.main()
