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
read -ra kelpie <<<"${2:-build/driver/kelpie}"
output=${3:-build-calibration}
mkdir -p "$output"
case $target in
  interp) bits=18 big=$((1 << 25)) repetitions=4 ;;
  cpu) bits=23 big=$((1 << 25)) repetitions=${CALIBRATE_REPETITIONS:-8} ;;
  cuda) bits=26 big=$((1 << 27)) repetitions=4 ;;
  *) echo "calibrate.sh: no target $target" >&2 && exit 2 ;;
esac
programs=$(mktemp -d)
trap 'rm -r "$programs"' EXIT
for part in alone fused; do cp bench/calibration.nesl "$programs/$part.nesl"; done
for ((k = 0; k < repetitions; ++k)); do
  # Variables, so that nothing is known when the kernels are compiled.
  echo "n = $((1 << bits)); k = 7; factor = 1540483477; calibrate(n, $((bits / 2)), $big, 1000, k, factor);" >>"$programs/alone.nesl"
  echo "n = $((1 << bits)); calibrate_fused(n, $((bits / 2)));" >>"$programs/fused.nesl"
done
for width in 64 32; do
  "${kelpie[@]}" run --target="$target" --fusion=none --int=$width --float=$width \
    --profile="$output/$target-$width.json" "$programs/alone.nesl" >"$output/$target-$width.out"
done
"${kelpie[@]}" run --target="$target" \
  --profile="$output/$target-fused.json" "$programs/fused.nesl" >"$output/$target-fused.out"
if [ -z "${CALIBRATE_ONLY_MEASURE:-}" ]; then
  python3 scripts/calibrate.py "$output/$target-64.json" "$output/$target-32.json" "$output/$target-fused.json" \
    --write fusion/cost_constants.cpp
fi
