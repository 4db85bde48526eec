#!/bin/sh
# Compiles the .cu files in this folder to .ptx. Needs nvcc (its path as an argument, or in PATH) and is run by hand: the results
# are in the repository, so using the examples does not require nvcc.
set -eu
cd "$(dirname "$0")"
nvcc=${1:-nvcc}
for name in saxpy matmul reduce histogram structs recursion dispatch; do
  "$nvcc" -ptx -arch=sm_80 "$name.cu" -o "$name.ptx"
done
# Without contraction to fma, so that all IEEE arithmetic gives the same picture.
"$nvcc" -ptx -arch=sm_80 -fmad=false mandelbrot.cu -o mandelbrot.ptx
# With line information, for the fault's CUDA line.
"$nvcc" -ptx -arch=sm_80 -lineinfo fault.cu -o fault.ptx
sed -i 's|"/.*/fault.cu"|"fault.cu"|' fault.ptx
