#!/usr/bin/env bash
# From a bare Debian 12 to four peers that have learnt to draw faces.
#
# Installs what is missing, builds the programs, renders the emoji-32 pictures
# and trains a WGAN-GP on them by gossip: one gossamer-topology and four
# gossamer-peer processes on loopback. Idempotent: what is there is kept.
#
#   deploy/quickstart.sh                    all of it, about ten minutes on two cores
#   deploy/quickstart.sh --set seed=2       any option of `gossamer train` may follow
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in -h|--help) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac

step() { printf '\n== %s\n' "$*"; }
took() { printf '   (%d s)\n' $((SECONDS - began)); }

began=$SECONDS
step "1/4 install system packages and libtorch (1.5 minutes on a bare machine)"
deploy/setup.sh
took

began=$SECONDS
step "2/4 build the programs (5 minutes the first time)"
log=build/quickstart.log
mkdir -p build
if ! { cmake --preset quickstart && cmake --build --preset quickstart \
       --target gossamer gossamer-topology gossamer-peer gossamer-models; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "quickstart: the build failed; the whole log is in $log" >&2
  exit 1
fi
took

began=$SECONDS
step "3/4 render emoji-32 into data/emoji-32 (10 seconds)"
build/release/bin/gossamer-models render-emoji --out data/emoji-32 --background white
took

step "4/4 train: four peers on a ring, faces on white (2 minutes)"
n=1
while [ -e "runs/quickstart-$n" ]; do n=$((n + 1)); done
exec build/release/bin/gossamer train --config deploy/configs/quickstart.textproto \
  --data data/emoji-32 --name "quickstart-$n" "$@"
