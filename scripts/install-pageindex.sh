#!/bin/sh
# Build the patched upstream in DEST (default build/pageindex); at once if it is
# there intact. Needs Python 3.11+ and git, no installed package.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
python="$here/.venv/bin/python"
[ -x "$python" ] || python=${PYTHON:-python3}
if [ -d "$here/src" ]; then
  PYTHONPATH="$here/src${PYTHONPATH:+:$PYTHONPATH}"
  export PYTHONPATH
fi
exec "$python" -m vectorless_rag.upstream build "$@"
