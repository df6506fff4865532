#!/bin/sh
# What the tests need of the system, as root on Debian or Ubuntu: Qt's libraries, as in the README's test line, and what
# else they would be skipped without (CI says so of each).
set -eu
cd "$(dirname -- "$0")/../.."
qt=$(grep -o 'apt-get install -y .*' README.md | head -n 1 | sed 's/apt-get install -y //; s/ *&&.*//; s/`.*//')
apt-get update -q
# shellcheck disable=SC2086
apt-get install -y -q $qt sudo gcc g++ gfortran libc6-dev python3 openssh-server openssh-client
