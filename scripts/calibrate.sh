#!/bin/bash
# Measures what the cost model of fusion counts with (fusion/cost_constants.cpp) on this machine, and writes it there.
#
#   scripts/calibrate.sh interp|cpu|cuda [KELPIE [OUTPUT]]
#
# KELPIE is the command to calibrate (default: build/driver/kelpie). The constants are printed, the profiles they come
# from are kept in the folder OUTPUT (default: build-calibration). With CALIBRATE_ONLY_MEASURE=1 the source is left alone;
# scripts/calibrate.py reads the profiles again.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?interp, cpu or cuda}
kelpie=${2:-build/driver/kelpie}
output=${3:-build-calibration}
mkdir -p "$output"
case $target in
  interp) bits=18 big=$((1 << 25)) repetitions=4 ;;
  cpu) bits=23 big=$((1 << 25)) repetitions=${CALIBRATE_REPETITIONS:-8} ;;
  cuda) bits=26 big=$((1 << 27)) repetitions=4 ;;
  *) echo "calibrate.sh: no target $target" >&2 && exit 2 ;;
esac
program=$(mktemp -d)/calibration.nesl
trap 'rm -r "$(dirname "$program")"' EXIT
cp bench/calibration.nesl "$program"
for ((k = 0; k < repetitions; ++k)); do
  echo "n = $((1 << bits)); calibrate(n, $((bits / 2)), $big, 1000, 7);" >>"$program"
done
for width in 64 32; do
  OMP_WAIT_POLICY=passive "$kelpie" run --target="$target" --fusion=none --int=$width --float=$width \
    --profile="$output/$target-$width.json" "$program" >"$output/$target-$width.out"
done
if [ -z "${CALIBRATE_ONLY_MEASURE:-}" ]; then
  python3 scripts/calibrate.py "$output/$target-64.json" "$output/$target-32.json" --write fusion/cost_constants.cpp
fi
