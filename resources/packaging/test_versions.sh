#!/bin/sh
# The tests with the oldest, the newest or the coming versions of what the project depends on: `test_versions.sh
# oldest|newest|pre-release [PYTEST ARGUMENTS]`, with the Python that is first on the PATH. The environment lies in build.
set -eu
cd "$(dirname -- "$0")/../.."
how=$1
shift
environment=$PWD/build/tests-$how
python3 -m venv "$environment"
"$environment/bin/python" -m pip install -q --disable-pip-version-check uv
case $how in
oldest) set -- --resolution lowest-direct -- "$@" ;; # of what pyproject.toml names; theirs in turn as they fit
newest) set -- --resolution highest -- "$@" ;;
pre-release) set -- --prerelease allow --upgrade -- "$@" ;;
*) echo "$how: oldest, newest or pre-release" && exit 2 ;;
esac
options=""
while [ "$1" != "--" ]; do options="$options $1" && shift; done
shift
# shellcheck disable=SC2086
"$environment/bin/uv" pip install --quiet --python "$environment/bin/python" $options ".[test,check,cuda]"
"$environment/bin/uv" pip freeze --quiet --python "$environment/bin/python"
QT_QPA_PLATFORM=offscreen PATH="$environment/bin:$PATH" "$environment/bin/python" -m pytest -n 4 --dist loadfile "$@"
