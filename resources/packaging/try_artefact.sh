#!/bin/sh
# Install one artefact on a bare Debian or Ubuntu, as root in a container or a chroot, and run the demonstration:
# `try_artefact.sh FILE`. The Debian package takes wattridge-cuda from beside it.
set -eu
file=$(readlink -f -- "$1")
export DEBIAN_FRONTEND=noninteractive APPIMAGE_EXTRACT_AND_RUN=1 WATTRIDGE_DATA=/tmp/wattridge-data
packages() { { apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; } >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }; }
case "$file" in
*.whl | *.tar.gz)
    packages python3-venv
    python3 -m venv /tmp/venv
    /tmp/venv/bin/python -m pip install -q --disable-pip-version-check "$file"
    program=/tmp/venv/bin/wattridge
    ;;
*.deb)
    packages "$file" "$(dirname -- "$file")"/wattridge-cuda_*.deb
    program=wattridge
    ;;
*.tar.xz)
    packages xz-utils
    tar -xf "$file" -C /opt
    program=/opt/wattridge/wattridge
    ;;
*.AppImage)
    cp "$file" /opt/wattridge.AppImage
    chmod 755 /opt/wattridge.AppImage
    program=/opt/wattridge.AppImage
    ;;
*)
    echo "$file: no artefact" && exit 2
    ;;
esac
"$program" --version
"$program" demo --no-window --max-evaluations 20 >/tmp/demo.txt
test -s /tmp/demo.txt
"$program" doctor program data cuda >/tmp/doctor.txt || { cat /tmp/doctor.txt; exit 1; }
cat /tmp/doctor.txt
