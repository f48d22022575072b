#!/usr/bin/env bash
# Unpacks the files of ILSVRC 2012 into train/CLASS and val/CLASS, which
# `gossamer data build` reads.  Idempotent: a class that is whole stays.
#
#   deploy/imagenet.sh DOWNLOADS FOLDER
#
# DOWNLOADS has, from https://image-net.org (an account is needed),
#   ILSVRC2012_img_train.tar    138 GB, 1,281,167 pictures in 1,000 archives
#   ILSVRC2012_img_val.tar      6.3 GB, 50,000 pictures without classes
#   ILSVRC2012_bbox_val_v3.tgz  2 MB, the class of each of the 50,000
# FOLDER needs 150 GB.
set -euo pipefail
case ${1:-} in -h|--help) sed -n '2,11p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac
[ $# -eq 2 ] || { echo "imagenet: takes two folders (see --help)" >&2; exit 2; }

train=$1/ILSVRC2012_img_train.tar
val=$1/ILSVRC2012_img_val.tar
boxes=$1/ILSVRC2012_bbox_val_v3.tgz
out=$2
for file in "$train" "$val" "$boxes"; do
  [ -f "$file" ] || { echo "imagenet: $file is missing (see --help)" >&2; exit 1; }
done
mkdir -p "$out/train"

echo "imagenet: unpacking the classes of $train"
# One pass over the archive of archives; a class has its name once it is whole.
export IMAGENET_TRAIN=$out/train
# shellcheck disable=SC2016
tar -xf "$train" --to-command='
  folder=$IMAGENET_TRAIN/$(basename "$TAR_FILENAME" .tar)
  if [ -d "$folder" ]; then cat > /dev/null; exit; fi
  rm -rf "$folder.part"
  mkdir "$folder.part"
  tar -xf - -C "$folder.part" && mv "$folder.part" "$folder"'

if [ ! -d "$out/val" ]; then
  echo "imagenet: sorting the pictures of $val"
  work=$out/val.part
  rm -rf "$work"
  mkdir -p "$work/pictures" "$work/boxes" "$work/val"
  tar -xf "$val" -C "$work/pictures"
  tar -xzf "$boxes" -C "$work/boxes"
  # All boxes of a picture are of its one class.
  find "$work/boxes" -name '*.xml' -print0 | sort -z | xargs -0 awk '
    FNR == 1 { named = 0 }
    !named && match($0, /<name>n[0-9]+<\/name>/) {
      picture = FILENAME
      sub(/.*\//, "", picture)
      sub(/\.xml$/, "", picture)
      print picture, substr($0, RSTART + 6, RLENGTH - 13)
      named = 1
    }' > "$work/classes"
  while read -r picture class; do
    mkdir -p "$work/val/$class"
    mv "$work/pictures/$picture.JPEG" "$work/val/$class/"
  done < "$work/classes"
  left=$(find "$work/pictures" -type f | wc -l)
  [ "$left" = 0 ] || {
    echo "imagenet: $left pictures of $val have no class in $boxes; is one of them cut?" >&2
    exit 1
  }
  mv "$work/val" "$out/val"
  rm -rf "$work"
fi

count() { find "$out/$1" -name '*.JPEG' | wc -l; }
classes() { find "$out/$1" -mindepth 1 -maxdepth 1 -type d | wc -l; }
echo "imagenet: $(count train) pictures of $(classes train) classes to train (of 1281167 and 1000)"
echo "imagenet: $(count val) pictures of $(classes val) classes held out (of 50000 and 1000)"
echo "imagenet: next: gossamer data build --from $out/train --held-out $out/val --out imagenet-128.images --resolution 128"
