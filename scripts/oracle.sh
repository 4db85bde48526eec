#!/usr/bin/env bash
# Installs NVIDIA's compiler (ptxas, nvcc, nvdisasm) from its packages on PyPI into the given folder. Nothing of it is
# distributed with margay, and nothing in margay's ordinary build or tests needs it.
set -euo pipefail
folder=${1:?folder}
python=$(command -v python3) || { echo "python3 is needed: apt-get install python3-venv" >&2; exit 1; }
"$python" -m venv "$folder/python"
"$folder/python/bin/pip" install -q nvidia-cuda-nvcc nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm numpy
ptxas=$(find "$folder/python" -name ptxas -type f | head -n 1)
[ -n "$ptxas" ] || { echo "the packages contain no ptxas" >&2; exit 1; }
chmod +x "$(dirname "$ptxas")"/*
ln -sfn "$(realpath "$(dirname "$ptxas")")" "$folder/bin"
"$folder/bin/ptxas" --version | tail -n 2
