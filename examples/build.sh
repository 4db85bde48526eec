#!/bin/sh
# Makes the .ptx files of this folder from the .cu files beside them. Needs nvcc (its path as argument or on the PATH) and is
# run by hand: the results are kept in the repository, so nobody needs nvcc to use the examples.
set -eu
cd "$(dirname "$0")"
nvcc=${1:-nvcc}
for name in saxpy matmul reduce histogram structs recursion dispatch; do
  "$nvcc" -ptx -arch=sm_80 "$name.cu" -o "$name.ptx"
done
# Without contraction to fma, so that any IEEE arithmetic gives the same picture.
"$nvcc" -ptx -arch=sm_80 -fmad=false mandelbrot.cu -o mandelbrot.ptx
# With line information, for the fault's CUDA line.
"$nvcc" -ptx -arch=sm_80 -lineinfo fault.cu -o fault.ptx
sed -i 's|"/.*/fault.cu"|"fault.cu"|' fault.ptx
