#!/usr/bin/env bash
# Fuzzes every target and prints a row for each.
#
#   tests/fuzz/run.sh [EXECUTIONS [TARGET ...]]     default 1,000,000 of each
#
# Needs: cmake --preset fuzz && cmake --build --preset fuzz.  No single
# allocation may exceed the target's own cap (fuzz.h), which the program checks
# after each input; the whole may not exceed 1 GiB, and an input may not take
# more than 10 s.  An input that breaks a target is left in build/fuzz/broken;
# once the target is mended it belongs into tests/fuzz/seeds.  SECONDS_EACH ends
# a target earlier.
#
# A row names its commit, with + if the tree has changes.  The script builds
# first, and all rows are of that one program.  AddressSanitizer keeps less of
# freed memory and its stacks here than by default, so run the program without
# these options on an input in build/fuzz/broken.
set -uo pipefail
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=16:malloc_context_size=2}
cd "$(dirname "$0")/../.."

executions=${1:-1000000}
shift || true
mkdir -p build/fuzz/corpus build/fuzz/broken
cmake --build --preset fuzz >build/fuzz/build.log 2>&1 ||
  { echo "run.sh: see build/fuzz/build.log; it needs: cmake --preset fuzz" >&2; exit 2; }
commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=unknown
[ -z "$(git status --porcelain 2>/dev/null)" ] || commit+=+
program=$(mktemp build/fuzz/program-XXXXXX)
trap 'rm -f "$program"' EXIT
install -m 755 build/fuzz/bin/gossamer-fuzz "$program"
declare -A limit
targets=()
while read -r name mib; do
  limit[$name]=$mib
  targets+=("$name")
done < <("$program" --targets)
[ $# -eq 0 ] || targets=("$@")

status=0
printf '| target | commit | executions | seconds | edges | broken |\n'
printf '| --- | --- | --- | --- | --- | --- |\n'
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  log=build/fuzz/$target.log
  mkdir -p "$corpus"
  seeds=()
  for folder in tests/fuzz/seeds/$target tests/golden/wire/$target; do
    [ -d "$folder" ] && seeds+=("$folder")
  done
  began=$SECONDS
  broken=no
  "$program" --target="$target" -runs="$executions" -max_len=4096 \
    -max_total_time="${SECONDS_EACH:-0}" -malloc_limit_mb="${limit[$target]:-2}" -rss_limit_mb=1024 \
    -timeout=10 -print_final_stats=1 -artifact_prefix="build/fuzz/broken/$target-" \
    "$corpus" "${seeds[@]}" >"$log" 2>&1 || { broken="yes: $log"; status=1; }
  done_runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(grep -aoE 'cov: [0-9]+' "$log" | tail -1 | cut -d' ' -f2)
  printf '| %s | %s | %s | %s | %s | %s |\n' "$target" "$commit" "${done_runs:-?}" \
    $((SECONDS - began)) "${edges:-?}" "$broken"
done
exit $status
