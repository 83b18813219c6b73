#!/bin/bash
# Measures the whole programs of bench/programs and their peers on a machine with an NVIDIA GPU, and compares their answers.
# About two minutes; arguments are those of bench/programs/run.py (--only quickhull nbody).
#
# Needs .bundle/ (scripts/make-bundle.sh). Results go to $OUT when set, else to build-gpu-check/.
cd "$(dirname "$0")/.." || exit 1
here=$PWD
. scripts/gpu-bundle.sh
out=${OUT:-$here/build-gpu-check}
mkdir -p "$out"

"${run[@]}" .bundle/bin/launch_costs >"$out/launch_costs.txt"
set -o pipefail
bench/programs/run.py --kelpie "$(program kelpie)" --launcher "${run[*]}" --peers .bundle/bin --results "$out/programs.json" "$@" |
  tee "$out/programs.txt"
