#!/usr/bin/env bash
# The provider-free tests on every Python that is given, or found: python3.11 to
# python3.14 on the path, and those of pyenv. Each has an environment of its own under
# build/pythons, from the same hashed requirements.
#
#   scripts/test_pythons.sh [PYTHON…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found=("$@")
if [[ ${#found[@]} -eq 0 ]]; then
  shopt -s nullglob
  for minor in 11 12 13 14; do
    here=("${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python3)
    if [[ ${#here[@]} -gt 0 ]]; then
      found+=("${here[-1]}")
    elif program=$(command -v "python3.$minor"); then
      found+=("$program")
    else
      echo "test-pythons: no Python 3.$minor here" >&2
    fi
  done
fi

status=0
for python in "${found[@]}"; do
  version=$("$python" -c 'import platform; print(platform.python_version())')
  place=$PWD/build/pythons/$version
  if [[ ! -e $place/.ready || requirements/dev.txt -nt $place/.ready ]]; then
    rm -rf "$place"
    "$python" -m venv "$place"
    "$place/bin/python" -m pip install --quiet --disable-pip-version-check \
      --require-hashes -r requirements/dev.txt
    touch "$place/.ready"
  fi
  echo "=== Python $version ($SECONDS s)"
  # Two Pythons do not share hypothesis's examples, nor anything but the source.
  PYTHONPATH=src "$place/bin/python" -m pytest -q -n 2 @tests/provider-free.txt || status=1
done
exit $status
