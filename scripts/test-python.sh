#!/usr/bin/env bash
# test-python.sh TARGET [TESTS]: installs the wheel of TARGET/wheel into a clean virtual environment and runs python/tests there, in a
# folder without the sources and without LLVM's tools in PATH. Tests whose packages are not available are skipped with a message.
# PACKAGES names more packages to install, for the tests and pages that need them: "torch triton", "cupy-cuda13x[ctk] scipy", "numba-cuda[cu13]".
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(realpath "$1"/wheel/*.whl)
shift
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
python3 -m venv "$room/environment"
"$room/environment/bin/pip" install -q "$wheel[test]"
"$room/environment/bin/pip" install -q cuda-bindings || echo "skipped: tests/test_bindings.py, whose package is not available from PyPI here"
# shellcheck disable=SC2086 # several packages
[ -z "${PACKAGES:-}" ] || "$room/environment/bin/pip" install -q $PACKAGES
cp -r python/tests "$room/tests"
# Pages and recipes, whose commands are tested too.
cp -r docs action.yml "$room"
mkdir "$room/python" && cp python/Dockerfile "$room/python"
cd "$room"
export PATH=$room/environment/bin:/usr/local/bin:/usr/bin:/bin
export MARGAY_WHEEL=$wheel
unset PYTHONPATH MARGAY_LLVM
if [ $# -gt 0 ]; then
  python -m pytest -p no:cacheprovider "$@"
  exit
fi
python -m pytest -p no:cacheprovider --ignore tests/torch tests
# Those of torch's device run where margay's driver is.
if python -c 'import torch' 2>/dev/null; then
  margay exec -- python -m pytest -p no:cacheprovider tests/torch
fi
