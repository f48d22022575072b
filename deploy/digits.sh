#!/usr/bin/env bash
# Fetches scikit-learn's digits (1,797 images of 8x8, from its PyPI package) to
# data/digits/digits.csv, for algorithm datalens. Idempotent; the file is pinned.
#
#   deploy/digits.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in -h|--help) sed -n '2,5p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac

VERSION=1.7.2
SUM=09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22  # of digits.csv.gz
out=${1:-data/digits}
if [ -e "$out/digits.csv" ]; then
  echo "digits: $out/digits.csv is there"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" download -q --disable-pip-version-check --no-deps \
  --only-binary :all: -d "$work" "scikit-learn==$VERSION"
(cd "$work" && python3 -m zipfile -e scikit_learn-*.whl wheel)
packed=$work/wheel/sklearn/datasets/data/digits.csv.gz
echo "$SUM  $packed" | sha256sum --check --quiet
mkdir -p "$out"
gunzip -c "$packed" > "$out/digits.csv.part"
mv "$out/digits.csv.part" "$out/digits.csv"
echo "digits: 1,797 images in $out/digits.csv"
