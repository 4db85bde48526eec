#!/usr/bin/env bash
# timed.sh BINARY ARGUMENT...: runs a test binary as cargo does, and adds the seconds that each of its tests took to the file
# $MARGAY_TEST_TIMES. Rust's own harness tells times only if it is asked for what is not stable yet.
set -uo pipefail
name=$(basename "$1"); name=${name%-*}
if ! "$1" --help 2>/dev/null | grep -q -- --report-time; then
    exec "$@" # tells its times itself, or has no tests
fi
RUSTC_BOOTSTRAP=1 "$@" -Zunstable-options --report-time |
    awk -v name="$name" -v times="$MARGAY_TEST_TIMES" '
        { print; fflush() }
        /^test .* <[0-9.]+s>$/ { t = $NF; gsub(/[<>s]/, "", t); printf "%s %s %s\n", t, name, $2 >> times }'
exit "${PIPESTATUS[0]}"
