#!/usr/bin/env bash
# From a bare Debian 12 to all tests passed. The same that CI runs.
#
#   deploy/test.sh               the release build and all its tests, and what
#                                fuzzing has kept under sanitizers (corpora)
#   deploy/test.sh release asan  these presets; there are also tsan, and clang,
#                                whose thread-safety analysis is its test
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in -h|--help) sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac
presets=("$@")
[ ${#presets[@]} -gt 0 ] || presets=(release corpora)

deploy/setup.sh --for tests
deploy/digits.sh
if [ ! -e data/emoji-32/batches.meta.txt ]; then need_data=1; else need_data=0; fi

# Debian's libraries are not instrumented: what OpenSSL, Abseil and gRPC free or
# copy in their own frames is not looked at.
export TSAN_OPTIONS="suppressions=$PWD/deploy/tsan.suppressions:ignore_noninstrumented_modules=1:${TSAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$PWD/deploy/lsan.suppressions:print_suppressions=0:${LSAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
for preset in "${presets[@]}"; do
  began=$SECONDS
  echo "== $preset: build"
  mkdir -p build
  log=build/$preset.log
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "test: the $preset build failed; the whole log is in $log" >&2
    exit 1
  fi
  echo "   built in $((SECONDS - began)) s"
  if [ "$preset" = release ] && [ "$need_data" = 1 ]; then
    build/release/bin/gossamer-models render-emoji --out data/emoji-32 --background white
  fi
  if [ "$preset" = clang ]; then continue; fi  # the analysis is the test
  began=$SECONDS
  echo "== $preset: test"
  ctest --preset "$preset" -j2 --no-tests=error
  echo "   tested in $((SECONDS - began)) s"
done
echo "all presets passed: ${presets[*]}"
