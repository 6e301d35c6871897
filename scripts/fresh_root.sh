#!/usr/bin/env bash
# The README's two commands on a machine that has nothing: a Debian root with python3,
# venv, git and make, made by debootstrap, and a user of it. Needs root on Debian. The
# mirror, the certificates and pip's settings are those of this machine, read now.
#
#   scripts/fresh_root.sh [bookworm|trixie|forky] [COMMAND…]
#
# A newer Debian brings a newer Python: 3.11, 3.13 and 3.14. Without commands
# they are `make demo` and `make test`; the checkout is the commit of this one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

release=${1:-bookworm}
shift || true
[[ $# -gt 0 ]] || set -- 'make demo' 'make test'
root=$PWD/build/fresh/$release
home=/home/reader

mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
  sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' | head -1) || true
if [[ ! -e $root/.ready ]]; then
  if ! command -v debootstrap >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
      debootstrap >/dev/null
  fi
  rm -rf "$root"
  mkdir -p "${root%/*}"
  # Any release is made as the newest that this debootstrap knows.
  debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,git,make \
    "$release" "$root" "$mirror" /usr/share/debootstrap/scripts/sid \
    >"$root.log" || { tail -5 "$root.log" >&2; exit 1; }
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$root/etc/pip.conf"
  if index=$(.venv/bin/python -m pip config get global.index-url 2>/dev/null); then
    printf 'index-url = %s\n' "$index" >>"$root/etc/pip.conf"
  fi
  chroot "$root" useradd --create-home reader
  touch "$root/.ready"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
rm -rf "$root$home/vectorless-rag"
git clone --quiet --no-local . "$root$home/vectorless-rag"
chroot "$root" chown -R reader: "$home"

for typed in "$@"; do
  printf '\n$ %s\n' "$typed"
  began=$SECONDS
  unshare --mount --pid --fork bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot --userspec=reader:reader "$1" /usr/bin/env -i HOME="$2" LANG=C.UTF-8 \
      PATH=/usr/bin:/bin bash -c "cd ~/vectorless-rag && $3"
  ' - "$root" "$home" "$typed"
  printf '(%s s)\n' "$((SECONDS - began))"
done
