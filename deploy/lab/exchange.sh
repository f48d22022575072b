#!/usr/bin/env bash
# Prints a table of what a blocking exchange costs over long links, beside plain
# TCP, or, behind certificates, beside OpenSSL on plain TCP.
#
# Four hosts in a ring, each sends 64 KiB and 4 MiB to both neighbours and
# waits for theirs; round trips of 20, 100 and 200 ms, without a limit of rate
# and at 100 Mbit/s, with the pauses that a training step would make; in the
# clear and behind certificates. `bound` is 0.5 RTT + 1.25 (TCP - 0.5 RTT) +
# 4 ms. Needs root, as gossamer lab does.
#
#   deploy/lab/exchange.sh                              about twenty minutes
#   TCP=stock PAUSES=0,0.3,2,10 ROUNDS=6 deploy/lab/exchange.sh
#   RTTS=0 RATES=unlimited SIZES="65536 9033232" ROUNDS=40 deploy/lab/exchange.sh
#   RTTS=0 RATES=unlimited SIZES=9033232 TLS=yes deploy/lab/exchange.sh --tls-gate 0
#   RTTS=100 RATES=unlimited SIZES=65536 TLS=no deploy/lab/exchange.sh --congestion bbr
#   RTTS=100 RATES=100mbit SIZES=9033232 deploy/lab/exchange.sh --codec innov-int4
#   RTTS=100 RATES=unlimited SIZES=4194304 LOSS=0.001 deploy/lab/exchange.sh --lanes 4
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -h|--help) sed -n '2,17p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac

bin=build/release/bin
work=$(mktemp -d /dev/shm/gossamer-exchange.XXXXXX)
trap 'rm -rf "$work"' EXIT
"$bin/gossamer" certs init --run benchmark --ca "$work/ca" >"$work/log"
"$bin/gossamer" certs issue --ca "$work/ca" --fleet 4 --out "$work/certs" >"$work/log"

# RTT_MS RATE BYTES TLS: one row for each pause.
measure() {
  printf 'name: "exchange"\ntcp: "%s"\nlink { rtt: "%sms" rate: "%s" loss: %s }\n' \
    "${TCP:-wan}" "$1" "$2" "${LOSS:-0}" >"$work/scenario"
  rm -rf "$work/meet" "$work/out"
  certs=; [ "$4" = no ] || certs="--certs $work/certs"
  if ! timeout 600 "$bin/gossamer" lab --scenario "$work/scenario" --hosts 4 \
      --out "$work/out" --exec "$bin/wan_exchange_benchmark --meet $work/meet \
      --json --rtt-ms $1 --bytes $3 --rounds ${ROUNDS:-10} \
      --pauses ${PAUSES:-0,0.3} $certs $extra" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    exit 1
  fi
  python3 - "$work/out/rank-0.log" "$2" "$4" <<'PY'
import json, sys
line = next(l for l in open(sys.argv[1]) if l.startswith('{"exchange"'))
for c in json.loads(line)["exchange"]:
    within = "within" if c["edge_ms"] <= c["bound_ms"] else "over"
    print(f'| {c["rtt_ms"]:g} | {sys.argv[2]} | {c["bytes"]} | {c["pause_seconds"]:g}'
          f' | {sys.argv[3]} | {c["raw_ms"]:.1f} | {c["edge_ms"]:.1f}'
          f' | {c["bound_ms"]:.1f} | {within} |')
PY
}

extra=$*
echo "| RTT ms | rate | bytes | pause s | TLS | TCP ms | edge ms | bound ms | |"
echo "| ---: | --- | ---: | ---: | --- | ---: | ---: | ---: | --- |"
for rtt in ${RTTS:-20 100 200}; do
  for rate in ${RATES:-unlimited 100mbit}; do
    for bytes in ${SIZES:-65536 4194304}; do
      for tls in ${TLS:-no yes}; do
        measure "$rtt" "$rate" "$bytes" "$tls"
      done
    done
  done
done
