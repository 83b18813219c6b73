#!/usr/bin/env bash
# Runs COUNT (default 10000) random NESL programs on the reference and, flattened and fused by every strategy, on the
# evaluator and now and then as compiled code. Prints its seed; a second argument repeats one. Failures are shrunk.
set -eu
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

count=${1:-10000}
seed=${2:-$(date +%s)}
# shellcheck disable=SC2154 # setup.sh sets it
build_targets "$build/random.stamp" test_flatten
echo "seed $seed, $count programs"
KELPIE_RANDOM_PROGRAMS=$count KELPIE_RANDOM_SEED=$seed "$build/tests/flatten/test_flatten" --gtest_filter='*RandomPrograms*'
