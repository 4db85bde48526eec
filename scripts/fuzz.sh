#!/usr/bin/env bash
# fuzz.sh SECONDS [CARGO-FEATURES]: fuzzes for a number of seconds. If `cargo +nightly fuzz` works, the libFuzzer targets take half of
# the time and the harness's own loop the rest; otherwise the loop takes all of it.
set -euo pipefail
time=$1
shift
cargo=${CARGO:-cargo}
only=()
if $cargo +nightly fuzz --version >/dev/null 2>&1; then
    each=$((time / 6))
    for target in parse format check; do
        (cd crates/proof/fuzz && mkdir -p "corpus/$target" && cp -n ../../core/syntax/tests/*.ptx "corpus/$target" &&
            $cargo +nightly fuzz run "$target" -- -dict=ptx.dict -max_len=4096 -max_total_time="$each")
    done
    time=$((time - 3 * each))
    only=(--engines-only)
else
    echo "no cargo-fuzz with a nightly compiler: using only the harness's own loop"
fi
$cargo run --release -q -p margay-harness "$@" --bin fuzz -- --seconds "$time" "${only[@]}"
