#!/usr/bin/env bash
# Prints a table of the rounds/s of gossamer on each of nine links, from a rack to
# 256 kbit/s that lose a quarter, beside the fastest all-reduce.
#
# Four peers on a ring, the synthetic game of 2,258,308 parameters, steps of
# 200 ms; codec, overlap_steps, congestion control and the number of connections
# choose themselves.
# Rounds/s are those of the later half of a run, behind them the rounds in all; a
# run that has fewer than ten says only these.  Needs root, as gossamer lab does.
#
#   deploy/lab/ladder.sh                             about twenty minutes
#   RUNGS="ocean world" FOR=120 deploy/lab/ladder.sh
#   UPLINK=100mbit deploy/lab/ladder.sh              a limit for each host, too
#   CONGESTION=cubic STEP=40ms deploy/lab/ladder.sh  as on a kernel without BBR
#   CONNECTIONS=4 deploy/lab/ladder.sh               so many an edge
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -h|--help) sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac

bin=${BIN:-build/release/bin}
work=$(mktemp -d /dev/shm/gossamer-ladder.XXXXXX)
trap 'rm -rf "$work"' EXIT

# ALGORITHM LINK: trains for FOR seconds, and prints rounds/s.
train() {
  local mixing='codec: "auto" overlap_steps: auto'
  [ "$1" != cp-oadam ] || mixing='all_reduce: "auto"'
  cat >"$work/config" <<CONFIG
name: "ladder"
algorithm: "$1"
peers: 4
rounds: 100000
mixing { $mixing liveness_limit: "600s" }
game { synthetic { parameters: 2258308 step_time: "${STEP:-200ms}" pace: "sleep" } }
evaluation { every: 0 }
resources { connections: ${CONNECTIONS:-0} congestion_control: "${CONGESTION:-auto}" }
CONFIG
  printf 'uplink: "%s"\nlink { %s }\n' "${UPLINK:-unlimited}" "$2" >"$work/scenario"
  rm -rf "$work/ladder"
  # The fleet stops as at Ctrl-C; one that cannot is killed.
  local ended=0
  timeout --signal INT --kill-after 60 "${FOR:-60}" "$bin/gossamer" lab --scenario "$work/scenario" \
    --config "$work/config" --runs "$work" --name ladder >"$work/log" 2>&1 || ended=$?
  case $ended in
    0|124|137) ;;  # by itself; at its time; killed
    *) echo "ladder: $1 on $2 ended with $ended: $(tail -n 1 "$work/log")" >&2; exit 1 ;;
  esac
  python3 - "$work/ladder/peer-1/metrics.jsonl" <<'PY'
import datetime, json, sys
try:
    with open(sys.argv[1]) as f:
        ends = [datetime.datetime.fromisoformat(json.loads(line)["finished"].replace("Z", "+00:00")) for line in f]
except OSError:
    ends = []
if len(ends) < 10:
    print(f"{len(ends)} rounds in all")
else:
    half = ends[len(ends) // 2:]
    rate = (len(half) - 1) / (half[-1] - half[0]).total_seconds()
    print(f"{rate:.2f} ({len(ends)})")
PY
}
# The codec and the overlap that peer 1 had last.
chosen() {
  python3 - "$work/ladder/peer-1/events.jsonl" <<'PY'
import json, sys
last = {}
try:
    with open(sys.argv[1]) as f:
        for line in f:
            event = json.loads(line)
            if event["kind"] in ("codec", "overlap"):
                last[event["kind"]] = event["detail"]
except OSError:
    pass
print("; ".join(last.values()) or "as they began")
PY
}

echo "| link | DP-OAdam rounds/s | chosen last | CP-OAdam rounds/s |"
echo "| --- | ---: | --- | ---: |"
for rung in ${RUNGS:-lan zone region ocean world home mobile satellite absurd}; do
  dp=$(train dp-oadam "like: \"$rung\"")
  choice=$(chosen)
  cp=$(train cp-oadam "like: \"$rung\"")
  echo "| $rung | $dp | $choice | $cp |"
done
