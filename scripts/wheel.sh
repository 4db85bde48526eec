#!/usr/bin/env bash
# wheel.sh TARGET: packs the output of `make release` into TARGET/wheel/margay-*.whl: the command, the libraries, LLVM and the Python
# package. Installing it requires no compiler and no LLVM.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "$1")
cargo=${CARGO:-cargo}
out=$target/wheel
mkdir -p "$out"

# The tool that makes wheels.
if ! command -v maturin >/dev/null; then
  [ -x "$out/tools/bin/maturin" ] || { python3 -m venv "$out/tools" && "$out/tools/bin/pip" install -q 'maturin>=1.9,<2'; }
  PATH=$out/tools/bin:$PATH
fi

llvm=$out/libmargay_llvm.so
if [ ! -f "$llvm" ] || [ crates/core/llvm/src/code/load.rs -nt "$llvm" ] || [ scripts/llvm-library.sh -nt "$llvm" ]; then
  scripts/llvm-library.sh "$llvm"
fi

# What the package carries beside its Python files; git ignores these folders.
lib=python/margay/lib
data=python/margay.data
licenses=python/licenses
rm -rf "$lib" "$data" "$licenses" "$out"/*.whl
mkdir -p "$lib" "$data/scripts" "$data/platlib" "$licenses"
cp LICENSE-* "$licenses"
# Of what is linked into the library of LLVM, as the packages that it comes from say it.
for package in "llvm-$(scripts/llvm.sh)-dev" zlib1g-dev libzstd-dev "libstdc++-$(gcc -dumpversion | cut -d. -f1)-dev"; do
  cp "/usr/share/doc/$package/copyright" "$licenses/LICENSE-$package"
done
cp "$llvm" "$lib"
for name in libcuda libcudart libcudart12 libcudart11 libnvml libmargay_redirect; do
  strip -s "$target/release/$name.so" -o "$lib/$name.so"
done
strip -s "$target/release/margay" -o "$data/scripts/margay"
# The line that every Python process of the environment runs: nothing, unless margay asks for it.
echo 'import os; os.environ.get("MARGAY_PYTHON") and __import__("_margay_startup").begin()' >"$data/platlib/margay.pth"
cp python/_margay_startup.py "$data/platlib"

# The newest version of the C library that any file asks for is what the wheel's name must say.
export CARGO_TARGET_DIR=$target
export PYO3_NO_PYTHON=1
version=$(scripts/llvm.sh)
(cd crates/doors/python && $cargo build --release -q --no-default-features --features "llvm$version")
needs=$(objdump -T "$lib"/*.so "$data/scripts/margay" "$target/release/lib_margay.so" |
  grep -oE 'GLIBC_2\.[0-9]+' | sort -Vu | tail -1)
tag=manylinux_2_${needs#GLIBC_2.}
(cd python && CARGO=$cargo maturin build --release -q --no-default-features --features "llvm$version" \
  --compatibility "$tag" --auditwheel skip --out "$out")
wheel=$(ls "$out"/*.whl)
size=$(stat -c %s "$wheel")
echo "$wheel: $((size / 1000000)) MB"
# PyPI takes files of up to 100 MB.
[ "$size" -lt 100000000 ]
