#!/bin/sh
# Fetch what an AppImage begins with, as the AppImage project publishes it, and check its sum: `appimage_runtime.sh FILE`.
# Which release that is, and its SHA-256, stand in pyproject.toml.
set -eu
whole=$(sed -n 's/^appimage-runtime = "\(.*\)"$/\1/p' "$(dirname -- "$0")/../../pyproject.toml")
case $whole in *OWNER*) echo "pyproject.toml: appimage-runtime is a placeholder, see RELEASING.md" >&2 && exit 2 ;; esac
curl -fsSL -o "$1" "${whole%#sha256=*}"
echo "${whole#*#sha256=}  $1" | sha256sum --check
