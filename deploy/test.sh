#!/usr/bin/env bash
# From a bare Debian 12 to all tests passed. The same that CI runs.
#
#   deploy/test.sh               the release build and all its tests, what
#                                fuzzing has kept under sanitizers (corpora), and
#                                where nvcc is there the build for GPUs (cuda)
#   deploy/test.sh release asan  these presets; there are also tsan, and clang,
#                                whose thread-safety analysis is its test
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in -h|--help) sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//'; exit 0;; esac
presets=("$@")
if [ ${#presets[@]} = 0 ]; then
  presets=(release corpora)
  if compgen -G '.deps/cuda-*/complete' >/dev/null || command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
    presets+=(cuda)
  else
    echo "test: there is no nvcc, so preset cuda is not built (deploy/setup.sh --for cuda)"
  fi
fi

deploy/setup.sh --for tests
deploy/digits.sh
if [ ! -e data/emoji-32/batches.meta.txt ]; then need_data=1; else need_data=0; fi

# Runs a program of preset cuda, whose exit code 3 says that it found no GPU: a
# failure where the driver lists one.
on_gpu() {
  local program=$1 code=0
  shift
  "build/cuda/bin/$program" "$@" || code=$?
  case $code in
    0) ;;
    3)
      if [[ $(nvidia-smi -L 2>/dev/null) == 'GPU '* ]]; then
        echo "test: $program found no GPU, and nvidia-smi -L lists one" >&2
        exit 1
      fi
      echo "   no GPU here: $program did not run";;
    *) exit $code;;
  esac
}

for preset in "${presets[@]}"; do
  began=$SECONDS
  echo "== $preset: build"
  mkdir -p build
  log=build/$preset.log
  # Of preset cuda only what release has not: the library, what opens it, and
  # gpu_step, whose libraries have graph_memory.cc in place of the source without
  # CUDA.  The other programs of --pack have no source of their own for CUDA;
  # building them takes five more minutes.
  targets=()
  [ "$preset" != cuda ] || targets=(--target gossamer_cuda gpu_kernels gpu_step device_test)
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset" "${targets[@]}"; } >"$log" 2>&1; then
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
  if [ "$preset" = cuda ]; then
    build/cuda/bin/device_test --gtest_brief=1
    on_gpu gpu_kernels --gtest_brief=1
    on_gpu gpu_step --width 8 --batch 4 --steps 1 --bits
    continue
  fi
  ctest --preset "$preset" -j2 --no-tests=error
  echo "   tested in $((SECONDS - began)) s"
done
echo "all presets passed: ${presets[*]}"
