#!/usr/bin/env bash
# What latency costs a round: DP-OAdam over a long link beside itself without
# one, and beside the fastest all-reduce: two tables.
#
# The synthetic game of 2,258,308 parameters, codec and overlap_steps auto;
# rounds/s of the later half of a run (steady_rounds_per_second). For CP-OAdam s
# is what a round computes, c what it waits. Needs root, as gossamer lab does,
# and the machine for itself.
#
#   deploy/lab/rounds.sh                             about twenty minutes
#   PEERS="3" STEPS="40ms" ROUNDS=600 deploy/lab/rounds.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -h|--help) sed -n '2,11p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac

bin=build/release/bin
work=$(mktemp -d /dev/shm/gossamer-rounds.XXXXXX)
trap 'rm -rf "$work"' EXIT

for algorithm in dp-oadam cp-oadam; do
  # Automatic choices take up to two hundred rounds to settle.
  rounds=${ROUNDS:-400}
  mixing='codec: "auto" overlap_steps: auto'
  if [ $algorithm = cp-oadam ]; then
    rounds=$((rounds / 4))
    mixing='all_reduce: "auto"'
  fi
  cat >"$work/$algorithm.textproto" <<CONFIG
name: "rounds"
algorithm: "$algorithm"
rounds: $rounds
mixing { $mixing }
game { synthetic { parameters: 2258308 pace: "sleep" } }
evaluation { every: 0 }
CONFIG
done

# NAME ALGORITHM PEERS STEP RTT RATE: trains, and leaves summary.json.
train() {
  printf 'name: "%s"\nlink { rtt: "%s" rate: "%s" }\n' "$1" "$5" "$6" >"$work/scenario"
  if ! timeout 600 "$bin/gossamer" lab --scenario "$work/scenario" \
      --config "$work/$2.textproto" --set peers="$3" \
      --set game.synthetic.step_time="$4" --runs "$work" --name "$1" \
      >"$work/log" 2>&1; then
    cat "$work/log" >&2
    exit 1
  fi
}
# EXPRESSION over the summaries of the runs named after it, as a, b, ...
compute() {
  python3 - "$work" "$@" <<'PY'
import json, sys
runs = [json.load(open(f"{sys.argv[1]}/{name}/summary.json")) for name in sys.argv[3:]]
print(eval(sys.argv[2], dict(zip("abc", runs)) | {"rate": lambda r: r["steady_rounds_per_second"],
      "s": lambda r: r["seconds_computing"] / r["rounds"],
      "c": lambda r: r["seconds_waiting"] / r["rounds"]}))
PY
}

echo "| peers | step | rounds/s at 200 ms, 100 Mbit/s | without delay or limit | ratio |"
echo "| ---: | ---: | ---: | ---: | ---: |"
for peers in ${PEERS:-3 4}; do
  for step in ${STEPS:-40ms 200ms}; do
    train far dp-oadam "$peers" "$step" 200ms 100mbit
    train near dp-oadam "$peers" "$step" 0ms unlimited
    compute "f'| $peers | $step | {rate(a):.2f} | {rate(b):.2f} | {rate(a)/rate(b):.2f} |'" far near
    rm -rf "$work/far" "$work/near"
  done
done
echo
echo "| step | network | DP-OAdam rounds/s | CP-OAdam rounds/s | ratio | 0.9 (s + c)/s |"
echo "| ---: | --- | ---: | ---: | ---: | ---: |"
for step in ${STEPS:-30ms 200ms}; do
  for network in "100ms 100mbit" "0ms unlimited"; do
    # shellcheck disable=SC2086
    train dp dp-oadam 4 "$step" $network
    # shellcheck disable=SC2086
    train cp cp-oadam 4 "$step" $network
    compute "f'| $step | $network | {rate(a):.2f} | {rate(b):.2f} | {rate(a)/rate(b):.2f} | {0.9*(s(b)+c(b))/s(b):.2f} |'" dp cp
    rm -rf "$work/dp" "$work/cp"
  done
done
