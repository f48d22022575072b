#!/usr/bin/env bash
# Installs what gossamer needs on Debian 12: system packages, and the pinned
# libtorch into .deps/.  Idempotent; a second run takes about a second.
#
#   deploy/setup.sh               to build and run
#   deploy/setup.sh --for tests   and also what the tests need
#   deploy/setup.sh --for cuda    and also what preset cuda needs: a compiler for
#                                 GPUs and torch's CUDA libraries, 2.9 GB of .deps/
#   deploy/setup.sh --no-torch    without libtorch (everything but gan_models)
#
# --for may be given twice.  The driver of a GPU is the machine's: see
# build/cuda/bin/gossamer doctor.
set -euo pipefail
cd "$(dirname "$0")/.."

TORCH_VERSION=2.11.0
CUDA_VERSION=13.0
for_tests=0 for_cuda=0 with_torch=1
while [ $# -gt 0 ]; do
  case $1 in
    --for)
      case ${2:-} in
        tests) for_tests=1;;
        cuda) for_cuda=1;;
        *) echo "setup: --for takes: tests or cuda" >&2; exit 2;;
      esac
      shift 2;;
    --no-torch) with_torch=0; shift;;
    -h|--help) sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//'; exit 0;;
    *) echo "setup: unknown option $1 (see --help)" >&2; exit 2;;
  esac
done

packages=(g++ cmake ninja-build ccache pkg-config python3-venv ca-certificates git
          libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
          libhwy-dev libssl-dev libsqlite3-dev libpng-dev libjpeg62-turbo-dev libfreetype-dev libharfbuzz-dev libcairo2-dev
          libeigen3-dev libspectra-dev nlohmann-json3-dev libcli11-dev fonts-noto-color-emoji unicode-data)
# Preset cuda builds gpu_kernels, which runs the kernels' tests on a GPU.
[ $for_tests = 0 ] && [ $for_cuda = 0 ] || packages+=(libgtest-dev libgmock-dev libbenchmark-dev)
[ $for_tests = 0 ] || packages+=(clang libclang-rt-14-dev iproute2 python3-dev e2fsprogs mount openssl
                                 etcd-server)  # 24 MB

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || { echo "setup: this is not a Debian machine; install by hand: ${missing[*]}" >&2; exit 1; }
  sudo=(); [ "$(id -u)" = 0 ] || sudo=(sudo)
  # The tests start their own; the package would start one for good.
  if [[ " ${missing[*]} " == *" etcd-server "* ]] && [ -d /etc/systemd/system ] && [ ! -e /etc/systemd/system/etcd.service ]; then
    echo "setup: masking etcd.service, so that it is not started (systemctl unmask etcd)"
    "${sudo[@]}" ln -s /dev/null /etc/systemd/system/etcd.service
  fi
  echo "setup: installing ${#missing[@]} Debian packages (about a minute on a bare machine)"
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The lab's tests make networks of the first, the power-loss test mounts a file
# with the others; a container or a chroot may lack the nodes.
if [ $for_tests = 1 ]; then
  sudo=(); [ "$(id -u)" = 0 ] || sudo=(sudo)
  make_node() {  # path mode type major minor
    [ ! -e "$1" ] || return 0
    echo "setup: making $1"
    "${sudo[@]}" mkdir -p "$(dirname "$1")"
    "${sudo[@]}" mknod -m "$2" "$1" "$3" "$4" "$5"
  }
  make_node /dev/net/tun 666 c 10 200
  make_node /dev/loop-control 660 c 10 237
  for i in 0 1 2 3 4 5 6 7; do make_node /dev/loop$i 660 b 7 $i; done
fi

if [ $with_torch = 1 ]; then
  venv=.deps/torch-$TORCH_VERSION
  if [ ! -e "$venv/complete" ]; then
    echo "setup: fetching libtorch $TORCH_VERSION into .deps/ (1.3 GB on disk, about 30 s)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps \
      "torch==$TORCH_VERSION" 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*'
    touch "$venv/complete"
  fi
  # In Python torch is imported with all its libraries, whose CUDA half needs
  # NVIDIA's.
  if [ $for_tests = 1 ] && [ ! -e "$venv/python-complete" ]; then
    echo "setup: fetching what torch needs in Python into .deps/ (2.7 GB on disk, about a minute)"
    "$venv/bin/pip" install -q --disable-pip-version-check "torch==$TORCH_VERSION" numpy 'scikit-build-core>=0.11,<1'
    touch "$venv/python-complete"
  fi
fi

# CUDA from PyPI's packages, each with its hash: the compiler apart, the
# libraries beside torch, whose CUDA half looks for them there.
if [ $for_cuda = 1 ]; then
  if [ "$(uname -m)" != x86_64 ]; then
    echo "setup: --for cuda knows x86-64 only; on $(uname -m) install CUDA $CUDA_VERSION and set CUDA_HOME" >&2
    exit 1
  fi
  venv=.deps/cuda-$CUDA_VERSION
  if [ ! -e "$venv/complete" ]; then
    echo "setup: fetching CUDA's compiler $CUDA_VERSION into .deps/ (250 MB on disk, about 10 s)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r deploy/cuda_compiler.txt
    touch "$venv/complete"
  fi
  venv=.deps/torch-$TORCH_VERSION
  if [ $with_torch = 1 ] && [ ! -e "$venv/cuda-complete" ]; then
    echo "setup: fetching torch's CUDA libraries into .deps/ (2.6 GB on disk, about a minute)"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r deploy/cuda_libraries.txt
    touch "$venv/cuda-complete"
  fi
fi
echo "setup: ready"
