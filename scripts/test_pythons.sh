#!/usr/bin/env bash
# The provider-free tests on every Python that is given, or found: python3.11 to
# python3.14 on the path, and those of pyenv. Each has an environment of its own under
# build/pythons, from the same hashed requirements. For root on Debian, versions that
# are not found come with the Debian that has them, each in a root of its own.
#
#   scripts/test_pythons.sh [PYTHON|MINOR…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A debian=([11]=bookworm [13]=trixie [14]=forky)
suite=@tests/provider-free.txt
status=0

on() { # on PYTHON
  local version place
  version=$("$1" -c 'import platform; print(platform.python_version())')
  place=$PWD/build/pythons/$version
  if [[ ! -e $place/.ready || requirements/dev.txt -nt $place/.ready ]]; then
    rm -rf "$place"
    "$1" -m venv "$place" &&
      "$place/bin/python" -m pip install --quiet --disable-pip-version-check \
        --require-hashes -r requirements/dev.txt &&
      touch "$place/.ready" || return 1
  fi
  echo "=== Python $version ($SECONDS s)"
  # Two Pythons do not share hypothesis's examples, nor anything but the source.
  PYTHONPATH=$PWD/src "$place/bin/python" -m pytest -q -n 2 "$suite"
}

in_debian() { # in_debian RELEASE
  echo "=== the Python of $1 ($SECONDS s)"
  scripts/fresh_root.sh "$1" 'make setup' ".venv/bin/python -m pytest -q -n 2 $suite"
}

[[ $# -gt 0 ]] || set -- 11 12 13 14
shopt -s nullglob
for wanted in "$@"; do
  here=("${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$wanted".*/bin/python3)
  if [[ -x $wanted ]]; then
    on "$wanted" || status=1
  elif [[ ${#here[@]} -gt 0 ]]; then
    on "${here[-1]}" || status=1
  elif program=$(command -v "python3.$wanted"); then
    on "$program" || status=1
  elif [[ -n ${debian[$wanted]-} && $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
    in_debian "${debian[$wanted]}" || status=1
  else
    echo "test-pythons: no Python 3.$wanted here" >&2
  fi
done
exit $status
