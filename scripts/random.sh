#!/usr/bin/env bash
# Compares random CUDA C++ programs under `margay exec` with the same text compiled for the host: random.sh MARGAY FOLDER COUNT [FROM].
# NVIDIA's compiler comes from PyPI into the given folder; nothing of it is distributed with margay.
set -euo pipefail
margay=$(realpath "${1:?margay}") folder=$(realpath "${2:?folder}") count=${3:?count}
own=$folder/cuda13 # the one that scripts/programs.sh installs too
if [ ! -e "$own/ready" ]; then
    python3 -m venv "$own"
    "$own/bin/pip" install -q nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl nvidia-nvvm
    touch "$own/ready"
fi
toolkit=$(find "$own" -type d -path '*nvidia/cu13' | head -n 1)
chmod +x "$toolkit"/bin/* "$toolkit"/nvvm/bin/*
exec python3 "$(dirname "$(realpath "$0")")/../tests/random/run.py" "$margay" "$toolkit" --count "$count" --from "${4:-$RANDOM}"
