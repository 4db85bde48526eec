#!/usr/bin/env bash
# Builds the programs of tests/programs with NVIDIA's compiler, as its users do, and runs them under `margay exec`: with nvcc's
# defaults (the static runtime), for separate compilation, for all architectures, with the shared runtime, and with the headers and
# runtimes of CUDA 12 and 11. The packages come from PyPI into the given folder; nothing of them is distributed with margay.
set -euo pipefail
margay=$(realpath "${1:?margay}")
mkdir -p "${2:?folder}"
folder=$(realpath "$2")
sources=$(realpath "$(dirname "$0")/../tests/programs")

# packages NAME PACKAGE...: installs into a virtual environment of its own, once.
packages() {
    local own=$folder/$1
    [ -e "$own/ready" ] && return
    python3 -m venv "$own" && "$own/bin/pip" install -q "${@:2}" && touch "$own/ready"
}
if ! { packages cuda13 nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl nvidia-nvvm &&
    packages cuda12 nvidia-cuda-nvcc-cu12 nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12 &&
    packages cuda11 nvidia-cuda-nvcc-cu11 nvidia-cuda-runtime-cu11 nvidia-cuda-cccl-cu11; }; then
    echo "skipped: NVIDIA's packages cannot be installed from PyPI here"
    exit 0
fi

# A toolkit of CUDA 13 as it comes, and of CUDA 12 and 11 by their headers and libraries beside the compiler of CUDA 13: their own
# compiler driver is not on PyPI.
toolkit13=$(find "$folder/cuda13" -type d -path '*nvidia/cu13' | head -n 1)
chmod +x "$toolkit13"/bin/* "$toolkit13"/nvvm/bin/*
older() {
    local own=$folder/toolkit$1 from part
    from=$(find "$folder/cuda$1" -type d -path '*site-packages/nvidia' | head -n 1)
    rm -rf "$own"
    mkdir -p "$own/bin" "$own/include" "$own/lib"
    ln -sfn "$toolkit13"/bin/* "$own/bin/"
    rm "$own/bin/nvcc" "$own/bin/nvcc.profile"
    cp "$toolkit13"/bin/nvcc "$toolkit13"/bin/nvcc.profile "$own/bin/" # they look for the rest beside themselves
    for part in cuda_cccl cuda_nvcc cuda_runtime; do
        [ -d "$from/$part/include" ] && cp -rsf "$from/$part/include/." "$own/include/"
    done
    cp -rsf "$from/cuda_runtime/lib/." "$own/lib/"
    ln -sfn "$toolkit13/nvvm" "$own/nvvm"
}
older 12
older 11
for own in "$toolkit13" "$folder/toolkit12" "$folder/toolkit11"; do
    library=$(find -L "$own/lib" -name 'libcudart.so.1*' | head -n 1)
    ln -sfn "$(basename "$library")" "$own/lib/libcudart.so" # what -lcudart asks for
done

failed=0
# try NAME TOOLKIT PROGRAM OPTION...: builds and runs one program in one way, on the engine that `engine` names.
try() {
    local out=$folder/programs/$1 said
    mkdir -p "$folder/programs"
    if ! "$2/bin/nvcc" -o "$out" -L"$2/lib" "${@:3}" >"$out.log" 2>&1; then
        echo "FAILED to build $1:"
        tail -n 20 "$out.log"
        failed=1
    elif said=$("$margay" exec ${engine:+--engine "$engine"} -- "$out" 2>"$out.log") && [ "$said" = ok ]; then
        echo "ok: $1"
    else
        printf 'FAILED: %s\n%s\n' "$1" "$said"
        tail -n 20 "$out.log"
        failed=1
    fi
}
for program in basics graphs textures refusals; do
    try "$program" "$toolkit13" "$sources/$program.cu"
    try "$program-shared" "$toolkit13" "$sources/$program.cu" -cudart shared
    try "$program-12" "$folder/toolkit12" "$sources/$program.cu" -arch=compute_80
    try "$program-12-shared" "$folder/toolkit12" "$sources/$program.cu" -arch=compute_80 -cudart shared
    try "$program-11-shared" "$folder/toolkit11" "$sources/$program.cu" -arch=compute_80 -cudart shared \
        -allow-unsupported-compiler -cudadevrt none # its headers name the host compilers of its time
done
try occupancy "$toolkit13" "$sources/occupancy.cu"
try separate "$toolkit13" "$sources"/separate/*.cu -rdc=true
try launches "$toolkit13" "$sources/launches.cu" -rdc=true
try updates "$toolkit13" "$sources/updates.cu" -rdc=true -arch=sm_80
engine=simd try workers "$toolkit13" "$sources/workers.cu"
try all-major "$toolkit13" "$sources/basics.cu" -arch=all-major
try per-thread "$toolkit13" "$sources/basics.cu" --default-stream per-thread
exit $failed
