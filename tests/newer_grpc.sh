#!/usr/bin/env bash
# Builds gossamer without torch against the gRPC of Debian experimental, and runs
# the attacks on it and the tests of the transport.
#
#   tests/newer_grpc.sh FOLDER              twenty minutes, the second time three
#   tests/newer_grpc.sh FOLDER 'COMMAND'    runs this in the tree instead
#
# FOLDER gets a root file system of Debian sid, 2 GB with the build, in which the
# tree is /gossamer, read-only, and its programs are in /build/bin.  Needs root,
# debootstrap, and an apt source of this machine whose mirror has sid, too.
set -euo pipefail
case ${1:-} in -h|--help|'') sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac
cd "$(dirname "$0")/.."
root=$(realpath -m -- "$1")
tests=(transport_socket_tuning transport_chunking transport_conformance transport_grpc
       peer_limits membership topology_service process_parts run_config checkpoint fuzz_replay)

inside() {  # COMMAND: runs it in the root, with mounts that end with it.
  unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --bind -o ro . "$1/gossamer"
    exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=1 bash -euo pipefail -c "cd /gossamer; $2"' inside "$root" "$1"
}

if [ ! -e "$root/complete" ]; then
  mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list || true
             sed -n 's/^URIs:/deb/p' /etc/apt/sources.list.d/*.sources || true; } 2>/dev/null |
           sed 's/\[[^]]*\]//' | awk '$1 == "deb" && $2 ~ /\/debian\/?$/ && !n++ {print $2}')
  echo "newer_grpc: making $root (about two minutes)"
  mkdir -p "$root"
  debootstrap --variant=minbase sid "$root" "$mirror" >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; exit 1; }
  mkdir -p "$root/gossamer"
  cp -L /etc/resolv.conf "$root/etc/"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"  # no package starts a service
  chmod 755 "$root/usr/sbin/policy-rc.d"
  printf "deb $mirror %s main\n" sid experimental >"$root/etc/apt/sources.list"
  apt-config dump Acquire | grep -v IndexTargets >"$root/etc/apt/apt.conf.d/90machine"
  # All else is of sid, with whose libraries experimental's gRPC is linked.
  printf 'Package: src:grpc src:protobuf\nPin: release a=experimental\nPin-Priority: 900\n' \
    >"$root/etc/apt/preferences.d/grpc"
  packages=$(sed -n '/^packages=(/,/)$/p' deploy/setup.sh | sed 's/packages=(//; s/)$//' | tr '\n' ' ')
  inside "apt-get update -qq
    apt-get install -y -qq --no-install-recommends $packages libgtest-dev libgmock-dev openssl etcd-server >/dev/null"
  touch "$root/complete"
fi

if [ $# -gt 1 ]; then inside "$2"; exit; fi
inside "dpkg-query -W libgrpc++-dev libprotobuf-dev libabsl-dev g++
  cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DGOSSAMER_TORCH=OFF \
    -DGOSSAMER_BENCHMARKS=OFF >/build.log
  ninja -C /build ${tests[*]/%/_test} gossamer gossamer-peer gossamer-topology >>/build.log ||
    { tail -n 40 /build.log >&2; exit 1; }
  for t in ${tests[*]}; do echo \$t; /build/bin/\${t}_test --gtest_brief=1 2>&1 | tail -n 1; done
  python3 tests/integration/flood_test.py /build/bin
  python3 tests/integration/processes_test.py /build/bin -k certificates -k hosts_limit -k hellos"
