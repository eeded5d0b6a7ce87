#!/usr/bin/env bash
# Runs both commands of the README in a fresh clone with nothing cached, and says how long each took.
# Usage: ci/fresh-clone.sh [REPOSITORY]   (default: the clone that this file is in, at its current commit)
# KEEP_PACKAGES=1 keeps cargo's downloaded packages, to leave the network's share out of the times.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
repository=${1:-$here}
folder=$(mktemp -d "${TMPDIR:-/tmp}/rtrace-fresh.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# No cache of an earlier build: neither the build folder nor the tools.
unset CARGO_TARGET_DIR RTRACE_TOOLS
export XDG_CACHE_HOME="$folder/cache"
if [ -z "${KEEP_PACKAGES:-}" ]; then
  # An empty home for cargo; its settings, which may say where packages come from, stay.
  settings=${CARGO_HOME:-$HOME/.cargo}
  mkdir "$folder/cargo-home"
  if [ -e "$settings/config.toml" ]; then
    ln -s "$settings/config.toml" "$folder/cargo-home/config.toml"
  fi
  export CARGO_HOME="$folder/cargo-home"
fi

timed() {
  echo "\$ $*"
  local start=$SECONDS status=0
  "$@" || status=$?
  echo "# ended with status $status after $((SECONDS - start)) s"
  return "$status"
}

git clone --quiet "$repository" "$folder/rtrace"
cd "$folder/rtrace"
echo "# fresh clone of $(git rev-parse --short HEAD), empty build folder"
timed cargo xtask run record -- sh -c 'for i in 1 2 3; do sleep 0.1; done'
timed cargo xtask run report
timed cargo xtask test
echo "# again, with everything built"
timed cargo xtask run record -- true
