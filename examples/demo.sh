#!/usr/bin/env bash
# Checks, explains and runs the examples with the given margay, and verifies every number.
# usage: examples/demo.sh path/to/margay
set -euo pipefail
margay=$(realpath "${1:?usage: examples/demo.sh path/to/margay}")
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' plain=$'\e[0m'; else bold= dim= green= plain=; fi
title() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
ok() { passed=$((passed + 1)); printf '   %sright%s: %s\n' "$green" "$plain" "$1"; }

# verify "what" FILE OPTIONS...: runs a kernel; its --expect options verify the results.
verify() {
  local what=$1; shift
  printf '%s   margay run %s%s\n' "$dim" "$*" "$plain"
  "$margay" run "$@" >"$out/log" || { cat "$out/log"; echo "demo: $what is wrong"; exit 1; }
  ok "$what"
}

# ends_with CODE "what" COMMAND...: runs a command that must exit with CODE, and shows up to LINES_SHOWN lines of its output.
ends_with() {
  local code=$1 what=$2; shift 2
  local status=0
  "$@" >"$out/log" 2>&1 || status=$?
  head -n "${LINES_SHOWN:-40}" "$out/log" | sed 's/^/   /'
  [ "$status" = "$code" ] || { echo "demo: expected exit code $code, got $status"; exit 1; }
  ok "$what"
}

title "Check modules: margay check"
ends_with 0 "every example but one passes" "$margay" check saxpy.ptx matmul.ptx reduce.ptx histogram.ptx structs.ptx \
  recursion.ptx dispatch.ptx mandelbrot.ptx fault.ptx collatz.ptx variadic.ptx
LINES_SHOWN=60 ends_with 1 "every mistake in mistakes.ptx is reported with its location" "$margay" check mistakes.ptx

title "Show how parameters are passed: margay abi"
ends_with 0 "a by-value struct, as the host lays it out and as the callee sees it" "$margay" abi structs.ptx
ends_with 0 "the same on a GPU: registers" "$margay" abi structs.ptx --abi sm

title "Run kernels: margay run"
verify "saxpy: 2.5 x + y for 1000 elements" saxpy.ptx --grid 8 --block 128 \
  --arg 1000 --arg 2.5 --arg 'f32[1000]=iota' --arg 'f32[1000]=fill:1' --expect 3=expect/saxpy.npy
verify "matmul: tiles in shared memory, barriers" matmul.ptx --grid 2,3 --block 16,16 \
  --arg 'f32[33,40]=rand:1' --arg 'f32[40,29]=rand:2' --arg 'f32[33,29]=zeros' --arg 33 --arg 29 --arg 40 \
  --expect 2=expect/matmul.npy --rtol 1e-5
verify "reduce: warp shuffles" reduce.ptx --grid 4 --block 256 --arg 10000 --arg 's32[10000]=iota' --arg 's32[1]=zeros' --expect 2=expect/reduce.npy
verify "histogram: atomics in shared and global memory" histogram.ptx --grid 4 --block 128 --shared 1024 \
  --arg 10000 --arg 'u8[10000]=rand:7' --arg 'u32[256]=zeros' --expect 2=expect/histogram.npy
verify "structs: one passed by value, one returned" structs.ptx --block 32 \
  --arg '{s8=3, f64=2.5, f32=1, f32=2, f32=3, s16=-4}' --arg 'f32[32]=iota' --arg 'f32[32,4]=zeros' --expect 2=expect/structs.npy
verify "recursion: Ackermann and the n queens, each lane at its own depth" recursion.ptx --block 32 \
  --arg 's32[32]=zeros' --arg 's32[32]=zeros' --expect 0=expect/recursion_ack.npy --expect 1=expect/recursion_queens.npy
verify "dispatch: calls through a table of function pointers" dispatch.ptx --grid 2 --block 32 \
  --arg 's32[64]=iota' --arg 's32[64]=iota' --arg 's32[64]=fill:-7' --arg 's32[64]=zeros' --expect 3=expect/dispatch.npy
verify "collatz: a loop with a different trip count per lane" collatz.ptx --block 64 --arg 'u32[64]=zeros' --expect 0=expect/collatz.npy
verify "variadic: an unsized parameter" variadic.ptx --block 32 --arg 's32[32,2]=zeros' --expect 0=expect/variadic.npy
for abi in sm sysv; do
  verify "structs again, under the $abi ABI" structs.ptx --block 32 --abi $abi \
    --arg '{s8=3, f64=2.5, f32=1, f32=2, f32=3, s16=-4}' --arg 'f32[32]=iota' --arg 'f32[32,4]=zeros' --expect 2=expect/structs.npy
done

title "Find errors: a fault with its PTX line and CUDA line"
ends_with 1 "the missing bounds check is reported with its location in fault.cu" "$margay" run fault.ptx --grid 2,8 --block 16 \
  --arg 'f32[8,24]=zeros' --arg '{s32=24, s32=8}'

title "Draw a picture"
verify "mandelbrot: the picture, byte by byte" mandelbrot.ptx --kernel picture --grid 3,4 --block 32,16 \
  --arg 'u8[64,96,3]=zeros' --arg 96 --arg 64 --arg 200 --expect 0=expect/mandelbrot_picture.npy
verify "mandelbrot: as text" mandelbrot.ptx --kernel text --grid 3,8 --block 32,4 \
  --arg "u8[30,79]=zeros:$out/mandelbrot.bin" --arg 78 --arg 30 --expect 0=expect/mandelbrot_text.npy
cat "$out/mandelbrot.bin"
picture=${PICTURE:-${TMPDIR:-/tmp}/mandelbrot.png}
"$margay" run mandelbrot.ptx --kernel picture --grid 30,48 --block 32,16 --arg "u8[640,960,3]=zeros:$picture" \
  --arg 960 --arg 640 --arg 300 --stats
printf '   the same in color, 960 x 640: %s\n' "$picture"

printf '\n%s%d results, all correct.%s\n' "$bold" "$passed" "$plain"
