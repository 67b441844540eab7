#!/usr/bin/env bash
# Installs missing packages, builds, and runs the tests: ctest, then pytest, then the C++ tests with sanitizers.
#
#   tools/test.sh                  the tests that every change must pass (CI runs this)
#   tools/test.sh --all            also slow and fuzz tests, and all programs through each of their formats
#   tools/test.sh --no-sanitizers  without the sanitizer build
#
# Exit code: 0 if everything passed.
set -uo pipefail
cd "$(dirname "$0")/.."

all=0
sanitizers=1
for argument in "$@"; do
  case "$argument" in
    --all) all=1 ;;
    --no-sanitizers) sanitizers=0 ;;
    -h | --help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' tools/test.sh; exit 0 ;;
    *) echo "test: unknown argument $argument; known: --all, --no-sanitizers" >&2; exit 2 ;;
  esac
done

# stage TEXT: ends the previous stage, records its time for the final table, and begins another.
stages=()
stage_name=
stage_began=0
stage() {
  if [[ -n "$stage_name" ]]; then
    local took=$((SECONDS - stage_began))
    stages+=("$(printf '%4d:%02d  %s' $((took / 60)) $((took % 60)) "$stage_name")")
  fi
  stage_name=$1
  stage_began=$SECONDS
  if [[ -n "$1" ]]; then echo "== $1"; fi
}

stage "packages and the release build"
tools/setup.sh --tests || exit 1

failed=()
jobs=$(( $(nproc) * 3 / 2 ))  # many tests mostly wait for other processes
if (( all )); then labels=(); else labels=(-LE 'slow|fuzz'); fi

stage "ctest: the release build"
ctest --test-dir build/release --output-on-failure -j "$jobs" "${labels[@]}" || failed+=("ctest")

stage "pytest"
# Files run in parallel; the tests of one file, in order.
pytest=(.venv/bin/python -m pytest -q -n "$jobs" --dist loadfile)
marks=()
if (( ! all )); then marks=(-m 'not slow'); fi
"${pytest[@]}" "${marks[@]}" tests/python || failed+=("pytest")

corpus=${PENSTOCK_CORPUS-../shared/corpus}
if [[ -d $corpus ]]; then
  # As in a clone without the corpus. (CTest has the label "selection" for this.)
  stage "pytest: tests that read the corpus, without it"
  PENSTOCK_CORPUS='' "${pytest[@]}" -m 'corpus and not slow' tests/python ||
    failed+=("pytest without the corpus")
fi

if (( all )); then
  stage "ctest and pytest: each program printed, parsed and serialized in between"
  export PENSTOCK_VERIFY=roundtrip
  ctest --test-dir build/release --output-on-failure -j "$jobs" -L quick || failed+=("ctest, round trips")
  "${pytest[@]}" -m 'not slow' tests/python || failed+=("pytest, round trips")
  unset PENSTOCK_VERIFY

  stage "fuzz targets, a minute each"
  { cmake --preset fuzz >/dev/null && cmake --build --preset fuzz -- --quiet &&
    ctest --test-dir build/fuzz --output-on-failure -j "$jobs" -L fuzz; } || failed+=("fuzz")
fi

if (( sanitizers )); then
  stage "the sanitizer build"
  export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/lsan.supp:print_suppressions=0
  if cmake --preset dev -DPENSTOCK_CUDA=OFF >/dev/null && cmake --build build/dev -- --quiet; then
    stage "ctest: AddressSanitizer and UndefinedBehaviorSanitizer"
    ctest --test-dir build/dev --output-on-failure -j "$jobs" -L quick -LE 'slow|fuzz|style|selection' ||
      failed+=("sanitizers")
  else
    failed+=("the sanitizer build")
  fi
fi

stage ""
echo "== minutes and seconds"
printf '%s\n' "${stages[@]}" "$(printf '%4d:%02d  in all' $((SECONDS / 60)) $((SECONDS % 60)))"

if (( ${#failed[@]} )); then
  echo "test: FAILED: ${failed[*]}"
  exit 1
fi
echo "test: everything passed"
