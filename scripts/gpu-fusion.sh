#!/bin/bash
# What fusion's cost model is worth: profiles for calibration, predicted against measured times of kernels that take a
# millisecond or more, and the programs on which the best schedule beats the greedy one. Three and a half minutes at most.
#
#   scripts/gpu-fusion.sh KELPIE OUTPUT [TARGET [ELEMENTS]]
#
# KELPIE is the command, OUTPUT a folder for raw data and for prediction.txt and programs.txt.
cd "$(dirname "$0")/.." || exit 1
if [ $# -lt 2 ]; then
  echo "usage: scripts/gpu-fusion.sh KELPIE OUTPUT [TARGET [ELEMENTS]]" >&2
  exit 2
fi
kelpie=$1 output=$2 target=${3:-cuda} elements=${4:-134217728}
mkdir -p "$output/reports"
begin=$SECONDS
failed=0

CALIBRATE_ONLY_MEASURE=1 timeout 60 scripts/calibrate.sh "$target" "$kelpie" "$output/calibration" || failed=1

programs=$(mktemp -d)
trap 'rm -r "$programs"' EXIT
# The latest programs first: fewer of the others had a part in the model. Those that compile for seconds come last.
for program in bench/prediction/{twentyeighth/*,twentyseventh/*,twentysixth/*,twentyfifth/*,twentyfourth/*,twentysecond/*,twentyfirst/*,twentieth/*,nineteenth/*,eighteenth/*,seventeenth/*,sixteenth/*,fifteenth/*,thirteenth/{box_filter,dragon},eleventh/*,twelfth/{rectangle_union,globs,range_tree},tenth/*,ninth/*,eighth/*,seventh/*,sixth/*,*,held-out/{walk,pages,pixels,nearest,deal,exact},unseen/*,twentythird/*}.nesl; do
  [ $((SECONDS - begin)) -gt 110 ] && echo "no time for $program" && continue
  name=${program#bench/prediction/} name=${name%.nesl} name=${name//\//-}
  # The latest tell how large they should be. Programs of another size keep theirs: they have an array of n * n elements, or loop for long.
  large=
  [ "$target" = cuda ] && large=$(sed -nE 's/^.*% large n: ([0-9]+) %.*$/\1/p' "$program" | head -1)
  size='1000000|1048576|4000000'
  [ -n "$large" ] && size='[0-9]+'
  sed -E "s/^n = ($size);/n = ${large:-$elements};/" "$program" >"$programs/$name.nesl"
  # shellcheck disable=SC2086 # the command can be several words
  timeout 20 $kelpie fusion --run --target="$target" --format=json --profile "$output/reports/$name.prof" -o "$output/reports/$name.json" "$programs/$name.nesl" ||
    { failed=1 && echo "$program ended with status $?"; }
done
python3 scripts/prediction_table.py "$output"/reports/*.json | tee "$output/prediction.txt"
timeout 90 python3 scripts/fusion_programs.py "$kelpie" --target "$target" --elements $((elements / 4)) --runs 8 --turns 1 |
  tee "$output/programs.txt"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
exit $failed
