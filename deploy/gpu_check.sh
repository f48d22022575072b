#!/usr/bin/env bash
# Everything of gossamer that only a GPU can show, in at most eight minutes.
#
#   deploy/gpu_check.sh [--out DIR] [--bin DIR] [--only PART[,PART]]
#   deploy/gpu_check.sh --pack FILE.tar.gz [--bin DIR]
#
# The first leaves DIR/gpu_check.json and DIR/gpu_check.md (build/gpu_check) and
# a log of each part: kernels, steps, peers, library, sanitizer.  Exit code 0:
# all that was measured is right; 1: a part failed, the others were done; 3:
# there is no GPU, and every figure is "not measured".
#
# The second puts what preset cuda has built, with the libraries of Debian that
# it needs, into a file to carry to a machine that has a GPU and nothing else
# but a Python with torch 2.11 for CUDA 13: unpack it there and run
# gossamer-gpu/gpu_check.sh.  PYTHON names that Python (python3).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ -d "$here/bin" ]; then
  bin=$here/bin scripts=$here package=$here/python
else
  bin=$here/../build/cuda/bin scripts=$here/../tests/gan_models package=$here/../runtime/library/python
fi
out=build/gpu_check pack='' only=''
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?}; shift 2;;
    --bin) bin=${2:?}; shift 2;;
    --pack) pack=${2:?}; shift 2;;
    --only) only=${2:?}; shift 2;;
    -h|--help) sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'; exit 0;;
    *) echo "gpu_check: unknown option $1 (see --help)" >&2; exit 2;;
  esac
done

if [ -n "$pack" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  to=$folder/gossamer-gpu
  mkdir -p "$to/bin" "$to/lib"
  for p in gpu_kernels gpu_step gossamer gossamer-peer gossamer-peer-networks gossamer-topology libgossamer_cuda.so \
           ../lib/libgossamer.so; do
    from=$bin/$p
    [ -e "$from" ] || { echo "gpu_check: $from is not there: build preset cuda" >&2; exit 1; }
    cp -L "$from" "$to/bin/$p"
    strip --strip-unneeded "$to/bin/$p"
    # torch and NVIDIA's libraries are that machine's, as its C library is.
    ldd "$from" | awk '$3 ~ /^\// {print $3}' |
      grep -vE '/(torch|nvidia)/|/lib(c|m|dl|rt|pthread|resolv)\.so' | xargs -r cp -Lnt "$to/lib"
  done
  strip --strip-unneeded "$to"/lib/*
  cp "$here"/gpu_check.{sh,py} "$here/gpu_library.py" "$scripts/eager_step.py" "$to/"
  mkdir "$to/python"
  cp -r "$package/gossamer" "$to/python/"
  tar -C "$folder" -czf "$pack" gossamer-gpu
  size=$(($(stat -c %s "$pack") >> 20))
  [ $size -lt 64 ] || { echo "gpu_check: $pack has $size MiB, of which 64 can be carried" >&2; exit 1; }
  echo "gpu_check: $pack, $size MiB"
  exit 0
fi

python=${PYTHON:-python3}
# The folder of torch and of the libraries of its CUDA half, if this Python has
# them.
site=$("$python" -c 'import importlib.util, os
spec = importlib.util.find_spec("torch")
print(os.path.dirname(os.path.dirname(spec.origin)) if spec else "")')
libraries=$here/lib
if [ -n "$site" ]; then
  for d in "$site"/torch/lib "$site"/nvidia/*/lib; do
    [ ! -d "$d" ] || libraries=$libraries:$d
  done
fi
mkdir -p "$out"
exec "$python" "$here/gpu_check.py" --bin "$bin" --scripts "$scripts" --package "$package" --out "$out" --only "$only" \
  --libraries "$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
