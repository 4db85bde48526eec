#!/usr/bin/env bash
# Prints the newest version of LLVM that margay can be built over and whose headers the system has; nothing if there is none.
for version in 22 21 20 19; do
  if command -v "llvm-config-$version" >/dev/null; then
    echo "$version"
    exit
  fi
done
