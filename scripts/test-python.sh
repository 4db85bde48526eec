#!/usr/bin/env bash
# test-python.sh TARGET [TESTS]: installs the wheel of TARGET/wheel into a clean virtual environment and runs python/tests there, in a
# folder without the sources and without LLVM's tools in PATH. Tests whose packages are not available are skipped with a message.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(realpath "$1"/wheel/*.whl)
shift
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
python3 -m venv "$room/environment"
"$room/environment/bin/pip" install -q "$wheel[test]"
"$room/environment/bin/pip" install -q cuda-bindings || echo "skipped: tests/test_bindings.py, whose package is not available from PyPI here"
cp -r python/tests "$room/tests"
# Pages and recipes, whose commands are tested too.
cp -r docs action.yml "$room"
mkdir "$room/python" && cp python/Dockerfile "$room/python"
cd "$room"
export PATH=$room/environment/bin:/usr/local/bin:/usr/bin:/bin
export MARGAY_WHEEL=$wheel
unset PYTHONPATH MARGAY_LLVM
exec_tests=("$@")
[ ${#exec_tests[@]} -gt 0 ] || exec_tests=(tests)
python -m pytest -p no:cacheprovider "${exec_tests[@]}"
