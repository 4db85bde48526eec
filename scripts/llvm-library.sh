#!/usr/bin/env bash
# llvm-library.sh OUT: links the part of LLVM that the SIMD engine uses into one library that needs nothing but the C library: the
# X86 target, the passes, and of the C API the functions that crates/core/llvm calls. Wheels bring it.
set -euo pipefail
here=$(dirname "$0")
out=$1
version=$("$here/llvm.sh")
[ -n "$version" ] || { echo "no LLVM 19 to 22 here: \`make setup\` installs one" >&2; exit 1; }

# zlib and zstd as archives: LLVM's writer of object files can compress.
missing=()
for library in z:zlib1g-dev zstd:libzstd-dev; do
  [ -f "$(cc -print-file-name="lib${library%%:*}.a")" ] || missing+=("${library#*:}")
done
command -v g++ >/dev/null || missing+=(g++)
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]} (to link LLVM into the wheel) with apt-get"
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The list of functions is the engine's own.
functions=$(sed -n '/^forward! {/,/^}/p' "$here/../crates/core/llvm/src/code/load.rs" | grep -oE 'fn LLVM\w+' | cut -d' ' -f2 | sort -u)
if [ "$version" = 22 ]; then old=LLVMParseIRInContext; else old=LLVMParseIRInContext2; fi
functions=$(grep -vx "$old" <<<"$functions")
{ echo "MARGAY_LLVM { global:"; sed 's/$/;/' <<<"$functions"; echo "local: *; };"; } >"$scratch/exports"

# The one function of LLVM's that needs a C library newer than 2.35, by the system call behind it.
cat >"$scratch/random.c" <<'C'
#include <sys/random.h>
unsigned arc4random(void) {
  unsigned bits;
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits) {}
  return bits;
}
C
cc -O2 -fPIC -c "$scratch/random.c" -o "$scratch/random.o"

config=llvm-config-$version
# Functions with the same code are folded and unreachable ones dropped where the system has the linker that can.
linker=$(command -v ld.gold >/dev/null && echo "-fuse-ld=gold -Wl,--icf=safe" || true)
mkdir -p "$(dirname "$out")"
# shellcheck disable=SC2046,SC2086
g++ -shared -o "$out" -Wl,-soname,libmargay_llvm.so "$scratch/random.o" $(sed 's/^/-Wl,-u,/' <<<"$functions") \
  -Wl,--version-script="$scratch/exports" -Wl,--gc-sections -Wl,-O1 -Wl,-s -Wl,-z,now -Wl,-z,defs $linker -static-libstdc++ -static-libgcc \
  -L"$($config --libdir)" -Wl,--start-group $($config --link-static --libs core irreader passes x86 target executionengine) -Wl,--end-group \
  -l:libz.a -l:libzstd.a -lm -ldl
echo "$out: $(($(stat -c %s "$out") / 1000000)) MB, LLVM $($config --version)"
