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
refuse() {
  say "refused: $*" >&2
  exit 1
}

if ! command -v buildah >/dev/null || ! command -v debootstrap >/dev/null; then
  say 'buildah and debootstrap'
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    buildah debootstrap >/dev/null
fi
mkdir -p "$work"/{lower,upper,scratch,merged}

# Where the kernel can lay folders over each other, no layer is copied.
storage=vfs
if mount -t overlay overlay "$work/merged" 2>/dev/null \
  -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/scratch"; then
  umount "$work/merged"
  storage=overlay
fi
engine() {
  buildah --root "$work/$storage" --runroot "$work/run" --storage-driver "$storage" "$@"
}

containers=()
cleanup() {
  for container in "${containers[@]}"; do
    engine umount "$container" >/dev/null 2>&1 || true
    engine rm "$container" >/dev/null 2>&1 || true
  done
}
trap cleanup EXIT

if ! engine inspect --type image "$base" >/dev/null 2>&1; then
  say 'a base with Python'
  mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
    sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' | head -1) || true
  rm -rf "$work/base"
  debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv \
    bookworm "$work/base" "$mirror" >"$work/debootstrap.log" ||
    { tail -5 "$work/debootstrap.log" >&2; exit 1; }
  rm -rf "$work/base"/var/{cache/apt/archives,lib/apt/lists}/*
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

# Docker's own format: the other one drops HEALTHCHECK.
build() {
  engine build --isolation chroot --format docker --layers --build-arg "BASE=$base" "$@" . 2>&1 |
    while IFS= read -r line; do printf '%5d s  %s\n' "$SECONDS" "$line"; done
}
# What each step took, where it took any time.
steps() {
  awk '/ STEP [0-9]+\/[0-9]+: / {
         if (step != "" && $1 - began > 1) printf "%6d s  %.90s\n", $1 - began, step
         began = $1; step = $0; sub(/^ *[0-9]+ s +(\[[0-9\/]+\] )?STEP [0-9\/]+: /, "", step)
       }
       { last = $1 }
       END { if (last - began > 1) printf "%6d s  %.90s\n", last - began, step }' "$1"
}

# SUITE=… runs others; by default, of the tests that CI runs outside too, those that
# can end otherwise with another Python, another system library or another user.
suite=${SUITE:-$(printf 'tests/%s ' acceptance/test_offline.py \
  test_confinement.py test_launch.py test_process.py test_source.py test_files.py \
  test_wire.py test_canon.py test_recipe.py test_tree.py test_offline_answers.py)}

say "the image, on $storage"
mapfile -t labels < <("$python" scripts/image_labels.py)
build "${labels[@]}" --build-arg "SUITE=$suite" --tag "$image" >"$work/build.log" ||
  { tail -60 "$work/build.log" >&2; exit 1; }
steps "$work/build.log"
say 'the same commit again'
build --target build --build-arg AGAIN=1 --tag "$image-again" >"$work/again.log" ||
  { tail -60 "$work/again.log" >&2; exit 1; }

say 'what it promises'
mount_image() {
  container=$(engine from "$1")
  containers+=("$container")
  mounted=$(engine mount "$container")
}
mount_image "$image"
root=$mounted
mount_image "$image-again"
again=$mounted
data=$work/data
rm -rf "$data"
install -d -o 10001 -g 10001 "$data"
cp "$sample" "$data/paper.pdf"

# What the image says of itself, and is run by.
engine inspect --type image "$image" >"$work/image.json"
mapfile -t entry < <("$python" - "$work/image.json" <<'PYTHON'
import json, sys

config = json.load(open(sys.argv[1]))["Docker"]["config"]
assert config["User"] == "10001:10001", config["User"]
assert config["Healthcheck"]["Test"][:2] == ["CMD", "vectorless-rag"], config["Healthcheck"]
assert config["Entrypoint"] == ["tini", "--", "vectorless-rag"], config["Entrypoint"]
labels = config["Labels"]
for name in (
    "org.opencontainers.image.revision", "vectorless-rag.upstream",
    "vectorless-rag.patch-sha256", "vectorless-rag.runtime-sha256",
):
    assert labels[name], name
print(*config["Env"], sep="\n")
PYTHON
)
[[ ${#entry[@]} -gt 0 ]] || refuse 'the image says something else of itself'

# As the image's user, with its environment, on a read-only root, with no network.
inside() {
  unshare --net --mount --pid --fork bash -euc '
    root=$1 data=$2; shift 2
    mount --bind "$root" "$root"
    mount -o remount,ro,bind "$root"
    mount --bind "$data" "$root/data"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    exec chroot --userspec=10001:10001 "$root" /usr/bin/env -i --chdir=/data "$@"
  ' - "$root" "$data" "${entry[@]}" HOME=/ tini -- "$@"
}
inside vectorless-rag doctor
inside vectorless-rag upstream verify
inside vectorless-rag ingest paper.pdf
inside vectorless-rag audit verify
inside vectorless-rag ledger verify
if inside touch /opt/written 2>/dev/null; then refuse 'its root can be written'; fi

for leftover in gcc cc pip pip3 git pytest; do
  found=$(find "$root/usr/bin" "$root/usr/local/bin" "$root/opt" -name "$leftover" \
    \( -type f -o -type l \) -print -quit)
  [[ -z $found ]] || refuse "the image holds $leftover: ${found#"$root"}"
done
ours=("$root"/opt/vectorless-rag/lib/python3*/site-packages/vectorless_rag "$root/opt/pageindex")
found=$(find "${ours[@]}" "$root/source" -name 'test*' -print -quit 2>/dev/null || true)
[[ -z $found ]] || refuse "the image holds tests: ${found#"$root"}"
found=$(find "$root/root/.cache" "$root/var/cache/apt/archives" -type f -size +0 -print -quit 2>/dev/null || true)
[[ -z $found ]] || refuse "the image holds a cache: ${found#"$root"}"
bill=opt/vectorless-rag/sbom.cdx.json
"$python" - "$root/$bill" <<'PYTHON'
import json, sys

bill = json.load(open(sys.argv[1]))
names = {component["name"] for component in bill["components"]}
assert bill["bomFormat"] == "CycloneDX" and {"vectorless-rag", "pypdf", "litellm"} <= names
PYTHON
cmp "$root/$bill" "$again/$bill" || refuse 'a second build has another bill of materials'
tree() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["subject"])' "$1"; }
record=pageindex/build-record.json
built=$(tree "$root/opt/$record")
[[ $built == "$(tree "$again/opt/$record")" ]] || refuse 'a second build has another patched tree'
[[ $built == "$(tree "build/$record")" ]] || refuse 'build/ has another patched tree'
say "good: $(du -sh --apparent-size "$root" 2>/dev/null | cut -f1)"
