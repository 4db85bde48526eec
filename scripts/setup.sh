#!/usr/bin/env bash
# Installs missing packages with apt on a fresh Debian or Ubuntu with Rust, and reports them. Does nothing if nothing is missing.
set -euo pipefail

if ! command -v cargo >/dev/null; then
  echo "margay needs Rust 1.88 or later: see https://rustup.rs" >&2
  exit 1
fi

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]}; apt-get is not available, so install them manually" >&2
    exit 1
  fi
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  echo "installing ${missing[*]} (a C linker, which Rust needs) with apt-get"
  $sudo apt-get update -q
  $sudo apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

# LLVM for the SIMD engine: the newest that the packages have, looked for in a fresh list of them, since an old list knows only
# older versions. Everything else builds and works without LLVM.
here=$(dirname "$0")
if [ -z "$("$here/llvm.sh")" ] && command -v apt-get >/dev/null; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update -q || echo "apt-get update failed: using the old package list"
  for version in 22 21 20 19; do
    apt-cache show "llvm-$version-dev" >/dev/null 2>&1 || continue
    echo "installing llvm-$version-dev (for the SIMD engine) with apt-get"
    $sudo apt-get install -y -q --no-install-recommends "llvm-$version-dev" && break
    echo "llvm-$version-dev could not be installed"
  done
fi
[ -n "$("$here/llvm.sh")" ] || echo "no LLVM 19 to 22 here: building without the SIMD engine"
