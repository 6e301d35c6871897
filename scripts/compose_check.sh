#!/usr/bin/env bash
# Start compose.yaml for real, and have documents built: after image_check.sh, with the
# image that it made, as root on Debian. The engine is Debian's, started here in network
# and process namespaces of its own that end with it. It reaches no registry, so the two
# images of others are played by tests/stand_ins under the names that the file asks for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$PWD/build/compose
images=$PWD/build/image
storage=overlay
[[ -d $images/overlay ]] || storage=vfs

say() { printf 'compose-check: %s (%s s)\n' "$*" "$SECONDS"; }
refuse() {
  say "refused: $*" >&2
  exit 1
}

if ! command -v dockerd >/dev/null; then
  say 'an engine'
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    docker.io >/dev/null
fi
mkdir -p "$work"

# The compose of Debian 12 is too old for `name:`; that of Debian 13 runs on both.
if [[ ! -x $work/plugins/docker-compose ]]; then
  say 'compose'
  mkdir -p "$work"/apt/{lists,cache/archives}/partial "$work/plugins"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
    sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' | head -1) || true
  printf 'deb [signed-by=%s] %s trixie main\n' "$keys" "$mirror" >"$work/apt/sources.list"
  newer=(-o "Dir::Etc::sourcelist=$work/apt/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache"
    -o APT::Sandbox::User=root)
  apt-get "${newer[@]}" update -qq
  (cd "$work/apt" && apt-get "${newer[@]}" download -qq docker-compose >/dev/null)
  dpkg-deb --extract "$work"/apt/docker-compose_*.deb "$work/apt/unpacked"
  cp "$work"/apt/unpacked/usr/libexec/docker/cli-plugins/docker-compose "$work/plugins/"
fi

export DOCKER_HOST=unix://$work/engine.sock DOCKER_CONFIG=$work/config DOCKER_BUILDKIT=0
mkdir -p "$DOCKER_CONFIG"
printf '{"cliPluginsExtraDirs": ["%s"]}\n' "$work/plugins" >"$DOCKER_CONFIG/config.json"
umask 022

say 'the engine'
rm -rf "$work"/{run,engine.pid,engine.sock}
unshare --net --mount --pid --fork --kill-child --mount-proc bash -euc '
  ip link set lo up
  exec dockerd --data-root "$1/root" --exec-root "$1/run" --pidfile "$1/engine.pid" \
    --host "unix://$1/engine.sock"
' - "$work" >"$work/engine.log" 2>&1 &
engine=$!
cleanup() {
  docker compose --profile cli down --volumes --timeout 5 >/dev/null 2>&1 || true
  kill "$(pgrep -P "$engine")" 2>/dev/null || true
  wait "$engine" 2>/dev/null || true
}
trap cleanup EXIT
for _ in {1..60}; do
  docker info >/dev/null 2>&1 && break
  if ! kill -0 "$engine" 2>/dev/null; then
    # A machine that lets nobody make namespaces says nothing about compose.yaml.
    tail -5 "$work/engine.log" >&2
    say 'SKIPPED: no engine starts on this machine'
    exit 0
  fi
  sleep 1
done
docker version --format '{{.Server.Version}}' >/dev/null || refuse 'the engine does not answer'

load() { # load IMAGE TAG
  local digest
  digest=$(buildah --root "$images/$storage" --runroot "$images/run" \
    --storage-driver "$storage" inspect --type image --format '{{.FromImageID}}' "$1")
  [[ $(docker image inspect --format '{{.Id}}' "$2" 2>/dev/null) == "sha256:$digest" ]] && return
  rm -f "$work/image.tar"
  buildah --root "$images/$storage" --runroot "$images/run" --storage-driver "$storage" \
    push --quiet "$1" "docker-archive:$work/image.tar:$2" >/dev/null
  docker load --quiet --input "$work/image.tar" >/dev/null
  rm "$work/image.tar"
}
say 'the image, and what plays the others'
load localhost/vectorless-rag vectorless-rag:latest
load localhost/vectorless-rag-again stand-in-base:latest
for stand_in in postgres seaweedfs; do
  name=$(sed -nE "s/^ +image: (.*$stand_in:.*)/\1/p" compose.yaml | head -1)
  docker build --quiet --build-arg BASE=stand-in-base --target "$stand_in" --tag "$name" \
    tests/stand_ins >/dev/null 2>"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
done

papers=$work/papers
rm -rf "$papers"
mkdir "$papers"
PYTHONPATH=src:tests .venv/bin/python - "$papers" <<'PYTHON'
import sys
from pathlib import Path

from pdfs import pdf

lines = "\n".join("A line that says a little about fruit." for _ in range(30))
for title in ("Apples", "Birches", "Cedars", "Dates", "Elms", "Figs", "Grapes", "Hops"):
    pages = [f"1 {title}\n{lines}", f"2 End of {title}\n{lines}"]
    pdf(Path(sys.argv[1]) / f"{title}.pdf", pages)
PYTHON

# What docs/image.md tells a person to type.
export POSTGRES_PASSWORD=of-this-check S3_SECRET=of-this-check-too PAPERS=$papers
say 'docker compose up --detach --wait'
docker compose up --detach --wait >"$work/up.log" 2>&1 || {
  cat "$work/up.log" >&2
  docker compose logs >&2
  refuse 'it does not come up'
}
docker compose ps --format '{{.Service}} {{.State}} {{.Health}}' | sort
cli() { docker compose run --rm cli "$@" 2>>"$work/cli.log"; }
say 'store doctor'
cli store doctor
say 'submit /papers'
cli submit /papers --run night
for _ in {1..150}; do
  states=$(cli jobs ls --json | .venv/bin/python -c '
import collections, json, sys
print(dict(collections.Counter(json.loads(line)["state"] for line in sys.stdin)))')
  [[ $states == "{'built': 8}" ]] && break
  sleep 2
done
say "jobs: $states"
[[ $states == "{'built': 8}" ]] || { docker compose logs worker >&2; refuse 'not all are built'; }
for number in 1 2; do
  begun=$(docker compose logs --no-log-prefix --index "$number" worker | grep -c job_begun || true)
  say "worker $number began $begun"
  [[ $begun -gt 0 ]] || refuse 'a worker has nothing to do'
done
cli show /papers/Apples.pdf
cli audit verify
cli ledger verify
say 'docker compose stop worker'
docker compose stop worker >/dev/null 2>&1
ended=$(docker compose ps --all --format '{{.ExitCode}}' worker | sort -u)
[[ $ended == 0 ]] || refuse "a worker ended with $ended"
say 'docker compose down'
docker compose down --volumes >/dev/null 2>&1
say good
