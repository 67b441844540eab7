#!/usr/bin/env bash
# Installs missing packages and builds. Then .venv/bin/python can import penstock, and .venv/bin/penstock runs.
#
#   tools/setup.sh            everything
#   tools/setup.sh --tests    also the C++ tests
#   tools/setup.sh --no-build only packages and .venv
#
# Idempotent: a repeated run changes nothing and takes a second or two. Packages come from Debian and PyPI by name.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=OFF
build=1
for argument in "$@"; do
  case "$argument" in
    --tests) tests=ON ;;
    --no-build) build=0 ;;
    -h | --help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' tools/setup.sh; exit 0 ;;
    *) echo "setup: unknown argument $argument; known: --tests, --no-build" >&2; exit 2 ;;
  esac
done

say() { printf 'setup: %s\n' "$*"; }

DEBIAN_PACKAGES=(
  ca-certificates ccache clang clang-format clang-tidy cmake g++ git iproute2 libclang-rt-dev libomp-dev ninja-build
  openssl libbenchmark-dev libdnnl-dev libeigen3-dev libgflags-dev libgloo-dev libgoogle-glog-dev
  libgoogle-perftools-dev libgrpc++-dev libgtest-dev libhwy-dev libprotobuf-dev libssl-dev lld nlohmann-json3-dev
  ocl-icd-opencl-dev protobuf-compiler protobuf-compiler-grpc python3-dev python3-venv zlib1g-dev
)
# The launcher over ssh is tested with an sshd of the tests' own. They skip what is missing.
if [[ $tests == ON ]]; then DEBIAN_PACKAGES+=(openssh-client openssh-server rsync tcsh); fi
# NumPy 2.4 no longer converts arrays of one element to numbers, which scripts of Fluid's time do everywhere.
PYTHON_PACKAGES=(
  furo mypy myst-parser 'numpy<2.4' pillow pybind11 pybind11-stubgen pytest pytest-xdist ruff scikit-build-core
  scikit-learn six sphinx sphinx-copybutton sphinx-design
)

missing=()
for package in "${DEBIAN_PACKAGES[@]}"; do
  if [[ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" != "ii " ]]; then
    missing+=("$package")
  fi
done
if (( ${#missing[@]} )); then
  as_root=()
  if [[ $EUID -ne 0 ]]; then as_root=(sudo); fi
  say "installing Debian packages: ${missing[*]}"
  log=$(mktemp)
  # RUNLEVEL: where no systemd runs, Debian then starts no service of a package, such as sshd.
  install=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}")
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" "${install[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "setup: the Debian packages above could not be installed" >&2
    exit 1
  fi
  rm -f "$log"
fi

# The system's python3 has the headers of python3-dev. PYTHON selects another one, which needs headers too.
python=${PYTHON:-/usr/bin/python3}
if [[ ! -x .venv/bin/python ]]; then
  say "making .venv with $("$python" --version 2>&1)"
  "$python" -m venv .venv
fi
if ! .venv/bin/python - "${PYTHON_PACKAGES[@]}" <<'PY'
import importlib.metadata, sys
def numbers(version):
    return [int(part) for part in version.split('.')[:2]]
def there(package):    # NAME or NAME<VERSION
    name, _, bound = package.partition('<')
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return not bound or numbers(version) < numbers(bound)
sys.exit(0 if all(there(name) for name in sys.argv[1:]) else 1)
PY
then
  say "installing Python packages into .venv: ${PYTHON_PACKAGES[*]}"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check "${PYTHON_PACKAGES[@]}"
fi
(( build )) || exit 0

say "building into build/release"
log=$(mktemp)
cmake --preset release -DPENSTOCK_TESTS=$tests -DPython_EXECUTABLE="$PWD/.venv/bin/python" >"$log" 2>&1 ||
  { cat "$log" >&2; exit 1; }
rm -f "$log"
# Ninja prints each step only on a terminal.
if [[ -t 1 ]]; then ninja_output=(); else ninja_output=(--quiet); fi
cmake --build build/release -- "${ninja_output[@]}"

# The build tree serves as the package: its Python sources are links, so a change to them needs no build.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$PWD/build/release/python" >"$site/penstock-build.pth"
ln -sf "$PWD/build/release/tools/penstock" .venv/bin/penstock
say "ready: .venv/bin/python -c 'import penstock.fluid', .venv/bin/penstock --help"
