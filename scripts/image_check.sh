#!/usr/bin/env bash
# Build the Dockerfile without a Docker engine, and try the image: buildah on a base
# that debootstrap makes here. Needs root on Debian. The mirror, the certificates and
# pip's settings are those of this machine, read now.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$PWD/build/image
python=$PWD/.venv/bin/python
sample=tests/samples/sp-intro.pdf
base=localhost/vectorless-rag-base
image=localhost/vectorless-rag

say() { printf 'image-check: %s (%s s)\n' "$*" "$SECONDS"; }
engine() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

mounted=''
cleanup() {
  [[ -z $mounted ]] || engine umount "$mounted" >/dev/null 2>&1 || true
  [[ -z $mounted ]] || engine rm "$mounted" >/dev/null 2>&1 || true
}
trap cleanup EXIT

if ! command -v buildah >/dev/null || ! command -v debootstrap >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    buildah debootstrap >/dev/null
fi
mkdir -p "$work"

if ! engine inspect --type image "$base" >/dev/null 2>&1; then
  say 'a base with Python'
  mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
    sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' | head -1) || true
  rm -rf "$work/base"
  debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv \
    bookworm "$work/base" "$mirror" >"$work/debootstrap.log"
  cp /etc/ssl/certs/ca-certificates.crt "$work/base/etc/ssl/certs/"
  printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$work/base/etc/pip.conf"
  if index=$("$python" -m pip config get global.index-url 2>/dev/null); then
    printf 'index-url = %s\n' "$index" >>"$work/base/etc/pip.conf"
  fi
  container=$(engine from scratch)
  engine add --quiet "$container" "$work/base" / >/dev/null
  engine commit --quiet "$container" "$base" >/dev/null
  engine rm "$container" >/dev/null
  rm -rf "$work/base"
fi

say 'the image'
mapfile -t labels < <("$python" scripts/image_labels.py)
engine build --isolation chroot --quiet --build-arg "BASE=$base" \
  "${labels[@]}" --tag "$image" . >"$work/build.log" 2>&1 ||
  { tail -60 "$work/build.log" >&2; exit 1; }

say 'what it promises'
mounted=$(engine from "$image")
root=$(engine mount "$mounted")
data=$work/data
rm -rf "$data"
install -d -o 10001 -g 10001 "$data"
cp "$sample" "$data/paper.pdf"

# As the image's user, on a read-only root, with no network at all.
inside() {
  unshare --net --mount --pid --fork bash -euc '
    root=$1 data=$2; shift 2
    mount --bind "$root" "$root"
    mount -o remount,ro,bind "$root"
    mount --bind "$data" "$root/data"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    exec chroot --userspec=10001:10001 "$root" /usr/bin/env -i HOME=/data \
      PATH=/opt/vectorless-rag/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 \
      VECTORLESS_RAG_BUILD_DIR=/opt/pageindex VECTORLESS_RAG_DATA_DIR=/data \
      bash -c '\''cd /data && exec tini -- "$@"'\'' - "$@"
  ' - "$root" "$data" "$@"
}
inside vectorless-rag doctor
inside vectorless-rag upstream verify
inside vectorless-rag ingest paper.pdf
inside vectorless-rag audit verify
inside vectorless-rag ledger verify

for leftover in gcc pip git; do
  ! find "$root/usr/bin" "$root/opt" -name "$leftover" -type f | grep . ||
    { say "the image holds $leftover"; exit 1; }
done
[[ -s $root/opt/vectorless-rag/sbom.cdx.json ]]
tree() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["subject"])' "$1"; }
built=$(tree "$root/opt/pageindex/build-record.json")
here=$(tree build/pageindex/build-record.json)
[[ $built == "$here" ]] || { say 'the image holds another patched tree than build/'; exit 1; }
say "good: $(du -sh --apparent-size "$root" 2>/dev/null | cut -f1)"
