#!/usr/bin/env bash
# Refuse what must not be committed: machine paths, registry hosts, keys, leftovers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
refuse() { # refuse WHY PATTERN [PATHSPEC...]
  local why=$1 pattern=$2
  shift 2
  if git grep -nIE "$pattern" -- . ':!tests/samples' ':!scripts/check_tree.sh' "$@"; then
    printf 'check_tree: %s\n' "$why" >&2
    status=1
  fi
}

refuse 'a path of one machine' '(^|[^[:alnum:]_.])/(work|farm|root|Users)/'
refuse 'a registry host' '(files\.)?pythonhosted\.org|pypi\.org|deb\.debian\.org|registry\.npmjs'
refuse 'a secret' '(sk-[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|BEGIN [A-Z ]*PRIVATE KEY)'
refuse 'unfinished business' '\b(TODO|FIXME|XXX)\b' ':!docs' ':!CONTRIBUTING.md'
[[ $status -eq 0 ]] && echo 'check_tree: clean'
exit $status
