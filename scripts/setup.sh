#!/usr/bin/env bash
# Installs through apt what a fresh Debian or Ubuntu with Rust lacks, and says so. Does nothing where nothing is missing.
set -euo pipefail

if ! command -v cargo >/dev/null; then
  echo "margay needs Rust 1.88 or later: see https://rustup.rs" >&2
  exit 1
fi

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]}, and there is no apt-get: install them yourself" >&2
    exit 1
  fi
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  echo "installing ${missing[*]} (a C linker, which Rust needs) with apt-get"
  $sudo apt-get update -q
  $sudo apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

# LLVM for the SIMD engine: the newest that the system's packages have. Everything else builds and works without it.
here=$(dirname "$0")
if [ -z "$("$here/llvm.sh")" ] && command -v apt-get >/dev/null; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  newest() { for v in 22 21 20 19; do if apt-cache show "llvm-$v-dev" >/dev/null 2>&1; then echo "$v"; return; fi; done; }
  version=$(newest)
  if [ -z "$version" ]; then
    $sudo apt-get update -q || true
    version=$(newest)
  fi
  if [ -n "$version" ]; then
    echo "installing llvm-$version-dev (for the SIMD engine) with apt-get"
    $sudo apt-get install -y -q --no-install-recommends "llvm-$version-dev" || echo "llvm-$version-dev could not be installed"
  fi
fi
[ -n "$("$here/llvm.sh")" ] || echo "no LLVM 19 to 22 here: building without the SIMD engine"
