#!/usr/bin/env bash
# Installs missing packages, builds, trains a small convolutional network on handwritten digits with two pservers and
# two trainers, then on one machine, and compares the results. Passes its arguments to tools/demo/demo.py (--help).
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
exec .venv/bin/python -u tools/demo/demo.py "$@"
