#!/usr/bin/env bash
# Puts OpenCL runtimes for the CPU into the given folder, for comparison: Intel's from PyPI, and PoCL if the system has it.
# Nothing of them is distributed with margay, and nothing but `make bench-opencl` uses them.
set -euo pipefail
folder=$(realpath -m "${1:?folder}")
python=$(command -v python3) || { echo "python3 is needed: apt-get install python3-venv" >&2; exit 1; }
"$python" -m venv "$folder/python"
"$folder/python/bin/pip" install -q intel-opencl-rt intel-cmplr-lib-rt
ln -sfn "$folder/python/lib" "$folder/lib"
mkdir -p "$folder/vendors"
echo "$folder/lib/libintelocl.so" > "$folder/vendors/intel.icd"
if [ -f /etc/OpenCL/vendors/pocl.icd ]; then
    cp /etc/OpenCL/vendors/pocl.icd "$folder/vendors/"
else
    echo "PoCL is not installed: apt-get install pocl-opencl-icd" >&2
fi
