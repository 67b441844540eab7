#!/usr/bin/env bash
# Installs what is missing, builds, and trains a small convolutional network on real digits: on two pservers and two
# trainers, then on one machine, and compares the two. Arguments go to tools/demo/demo.py (--help).
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
exec .venv/bin/python -u tools/demo/demo.py "$@"
