#!/usr/bin/env bash
# Fuzzes for a number of seconds; what follows are features for cargo. libFuzzer's targets take half of the time where `cargo
# +nightly fuzz` works; the harness's loop, which needs nothing, takes the rest, and all of the front end where it does not.
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
    echo "no cargo-fuzz with a nightly compiler: the harness's own loop does all of it"
fi
$cargo run --release -q -p margay-harness "$@" --bin fuzz -- --seconds "$time" "${only[@]}"
