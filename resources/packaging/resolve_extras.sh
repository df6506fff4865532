#!/bin/sh
# Every extra resolves from wheels alone for each Python and system that is supported: `resolve_extras.sh [UV]`.
set -eu
uv=${1:-uv}
cd "$(dirname -- "$0")/../.."
failed=0
for system in x86_64-unknown-linux-gnu x86_64-pc-windows-msvc; do
    for python in 3.11 3.12 3.13; do
        for extra in cuda cuda13 opencl pool model service meters all; do
            grep -q "^$extra = " pyproject.toml || continue
            if said=$("$uv" pip compile --quiet --no-header --no-annotate --only-binary :all: --python-platform "$system" \
                --python-version "$python" --extra "$extra" pyproject.toml 2>&1); then
                printf '%-26s %-5s %-8s %s packages\n' "$system" "$python" "$extra" "$(printf '%s\n' "$said" | wc -l)"
            else
                printf '%-26s %-5s %-8s FAILED\n%s\n' "$system" "$python" "$extra" "$said"
                failed=1
            fi
        done
    done
done
exit $failed
