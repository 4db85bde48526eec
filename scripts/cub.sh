#!/usr/bin/env bash
# Builds the programs of tests/cub with NVIDIA's compiler and CUB, and runs each RUNS times on fresh random data under `margay exec`:
# cub.sh ORACLE-FOLDER MARGAY RUNS [PROGRAM...]. Exits with 1 if a result is wrong.
# Headers and the library that is linked with come from PyPI too, beside the compiler (scripts/oracle.sh).
set -euo pipefail
folder=$(realpath "${1:?folder of the compiler}") margay=${2:?margay} runs=${3:?runs}
shift 3
sources=$(dirname "$(realpath "$0")")/../tests/cub
[ -d "$folder/python" ] && "$folder/python/bin/pip" install -q nvidia-cuda-cccl nvidia-cuda-runtime
bin=$(realpath "$folder/bin")
toolkit=$(dirname "$bin")
mkdir -p "$folder/cub/lib"
ln -sfn "$(find "$toolkit/lib" -name 'libcudart.so.*' | sort | tail -n 1)" "$folder/cub/lib/libcudart.so"
include=$(dirname "$(dirname "$(find "$toolkit/" -path '*/cub/cub.cuh' | head -n 1)")")
[ -n "$include" ] || { echo "the packages contain no cub.cuh" >&2; exit 1; }

# Two of them are built in halves: a compiler's memory is finite.
build() {
    local program=$1 source=${1%_narrow} flags=""
    case $program in *_narrow) flags=-DNARROW ;; esac
    source=${source%_wide}.cu
    [ "$folder/cub/$program" -nt "$sources/$source" ] && [ "$folder/cub/$program" -nt "$sources/check.cuh" ] && return
    echo "building $program"
    PATH=$bin:$PATH nvcc -O2 -std=c++17 -cudart shared -gencode arch=compute_90,code=compute_90 $flags \
        -I "$include" -L "$folder/cub/lib" "$sources/$source" -o "$folder/cub/$program"
}

wrong=0
for program in ${*:-scan reduce select_narrow select_wide sort_narrow sort_wide other}; do
    build "$program"
    "$margay" exec -- "$folder/cub/$program" "$runs" || wrong=1
done
exit $wrong
