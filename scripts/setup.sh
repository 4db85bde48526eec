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

# LLVM 22 for the SIMD engine, where the system's packages have it. Everything else builds and works without it.
if ! command -v llvm-config-22 >/dev/null && command -v apt-get >/dev/null; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  if ! apt-cache show llvm-22-dev >/dev/null 2>&1; then
    $sudo apt-get update -q || true
  fi
  if apt-cache show llvm-22-dev >/dev/null 2>&1; then
    echo "installing llvm-22-dev (for the SIMD engine) with apt-get"
    $sudo apt-get install -y -q --no-install-recommends llvm-22-dev || echo "llvm-22-dev could not be installed"
  fi
fi
command -v llvm-config-22 >/dev/null || echo "without LLVM 22: building without the SIMD engine"
