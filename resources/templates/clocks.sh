#!/bin/sh
{remarks}
#
# usage: sh THIS_FILE set|reset [GPU]     GPU is an index or a UUID, 0 by default. Needs root.
set -eu
gpu=${{2:-0}}

smi() {{ nvidia-smi -i "$gpu" "$@"; }}

case "${{1:-}}" in
set)
{set_lines}
    ;;
reset)
{reset_lines}
    ;;
*)
    echo "usage: $0 set|reset [GPU]" >&2
    exit 2
    ;;
esac
