#!/bin/bash
# Checks and measures Kelpie on a machine with an NVIDIA GPU: tests against the evaluator on fresh random data,
# benchmarks with their peers, fusion's predictions and schedules, compute-sanitizer, examples on the GPU against the CPU.
# Ends with a short table.
#
# Needs .bundle/ (scripts/make-bundle.sh). Raw output goes to $OUT when set, else to build-gpu-check/. Every step has
# its own time limit, and none goes on behind the ninth minute (KELPIE_GPU_SECONDS: other seconds): then the table
# follows. What is not timed runs side by side, first.
# shellcheck disable=SC2046 # a program of the bundle can be several words
cd "$(dirname "$0")/.." || exit 1
here=$PWD
. scripts/gpu-bundle.sh

out=${OUT:-$here/build-gpu-check}
mkdir -p "$out"
export KELPIE_CACHE="${TMPDIR:-/tmp}/kelpie-gpu-check-cache"
rm -rf "$KELPIE_CACHE"
export PATH="$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer"

summary=$out/summary.txt
: >"$summary"
note() { echo "$*" | tee -a "$summary"; }
begin=$SECONDS
readonly deadline=${KELPIE_GPU_SECONDS:-525}
left() { echo $((deadline - (SECONDS - begin))); }
# step NAME LIMIT COMMAND...: runs with a time limit, keeps the output, notes how it ended.
step() {
  local name=$1 limit=$2 started=$SECONDS code
  shift 2
  [ "$limit" -gt "$(left)" ] && limit=$(left)
  if [ "$limit" -lt 3 ]; then
    note "$(printf '%-24s %s' "$name" "no time is left")"
    return 1
  fi
  timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
  code=$?
  local verdict="ok"
  [ $code -ne 0 ] && verdict="FAILED ($code)"
  [ $code -eq 124 ] && verdict="TIME LIMIT of $limit s"
  note "$(printf '%-24s %-24s %4d s' "$name" "$verdict" $((SECONDS - started)))"
  return $code
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/gpu.txt"

# A part of the tests each: most of the time they wait for the evaluator, or for one kernel to be compiled.
readonly parts=4
tests() {
  GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$1 step "test_gpu_$1" 220 $(program test_gpu) ||
    grep -m3 -A6 'Failure' "$out/test_gpu_$1.log" | cut -c1-400
}

# Small runs under compute-sanitizer: two random kernels of each kind have all skeletons; sizes leave out long sorts, which are CUB's but for one
# kernel, and take racecheck a minute.
sanitize() {
  KELPIE_KERNELS=2 KELPIE_SIZE=20000 step "$1" 180 compute-sanitizer --tool "$1" --print-limit 20 --error-exitcode 9 \
    $(program test_gpu) --gtest_filter=-*FirstError*
  grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/$1.log" | tail -1
  grep -m3 -E 'Invalid|Race reported|Barrier error|Uninitialized' "$out/$1.log" | cut -c1-160
}

# On the GPU and on the CPU.
mkdir -p "$out/examples"
examples() {
  local started=$SECONDS example name cuda cpu verdict
  for example in examples/*.nesl; do
    [ $((SECONDS - started)) -gt 90 ] && note "examples: time is up before $(basename "$example")" && break
    name=$(basename "$example" .nesl)
    timeout 20 $(program kelpie) run "$example" --target=cuda >"$out/examples/$name.cuda" 2>&1
    cuda=$?
    timeout 20 $(program kelpie) run "$example" --target=cpu >"$out/examples/$name.cpu" 2>&1
    cpu=$?
    verdict="cuda and cpu agree"
    python3 scripts/same_output.py "$out/examples/$name.cuda" "$out/examples/$name.cpu" >"$out/examples/$name.difference" 2>&1 ||
      verdict="OUTPUTS DIFFER: $(head -c 100 "$out/examples/$name.difference")"
    [ $cuda -ne 0 ] && verdict="FAILED on cuda ($cuda, on cpu $cpu)"
    note "$(printf '%-24s %s' "$name" "$verdict")"
  done
}

for ((part = 0; part < parts; ++part)); do tests $part & done
examples &
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck initcheck; do sanitize "$tool" & done
else
  note "compute-sanitizer is not installed"
fi
wait
cat "$out"/test_gpu_*.log >"$out/test_gpu.log"
grep -E 'PASSED|FAILED  \]|SKIPPED' "$out/test_gpu.log" | cut -c1-120 | head -12

step bench_kelpie 110 $(program gpu_bench) 27 || tail -3 "$out/bench_kelpie.log"
[ -x .bundle/bin/gpu_peers ] && step bench_peers 60 $(program gpu_peers) 27
[ -x .bundle/bin/gpu_peer_spmv ] && step bench_peer_spmv 40 $(program gpu_peer_spmv) 25
[ -x .bundle/bin/gpu_peer_types ] && step bench_peer_types 60 $(program gpu_peer_types) 27
[ -x .bundle/bin/gather_floor ] && step gather_floor 20 $(program gather_floor)
[ -x .bundle/bin/quotients ] && step quotients 20 $(program quotients)
[ -x .bundle/bin/segment_sorts ] && step segment_sorts 60 $(program segment_sorts)

# Of every size and segment length (bench/gpu_sweep_plot.py draws it), and beyond 2^31 elements, where memory allows.
memory=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -1)
if [ "${memory:-0}" -gt 70000 ]; then
  step sweep_kelpie 40 $(program gpu_bench) sweep 30
  [ -x .bundle/bin/gpu_peers ] && step sweep_peers 60 $(program gpu_peers) sweep 30
  if step beyond_int32 60 $(program kelpie) run bench/beyond_int32.nesl --target=cuda; then
    # Each form that is no definition gives true; one that fails ends the step.
    { grep -q '^it = T' "$out/beyond_int32.log" && ! grep -q '^it = F' "$out/beyond_int32.log"; } || note "beyond_int32: WRONG RESULT"
  fi
fi

# Of programs of which nothing is cached: "sm_90: 25 kernels compiled, 0 found compiled, 0.70 s" behind the name of each.
step compile 45 bash scripts/gpu-compile.sh "$(program kelpie)"
awk '/ compiled, / {print $(NF - 1)}' "$out/compile.log" | sort -n |
  awk '{s[NR] = $1} END {if (NR) printf "compile: %d programs, median %.2f s, longest %.2f s\n", NR, s[int((NR + 1) / 2)], s[NR]}' | tee -a "$summary"

step fusion 210 bash scripts/gpu-fusion.sh "$(program kelpie)" "$out/fusion" || tail -3 "$out/fusion.log"

echo "whole run: $((SECONDS - begin)) s"
cat "$summary"
benchmarks=("$out"/bench_*.log)
[ -e "${benchmarks[0]}" ] && python3 scripts/gpu_table.py "${benchmarks[@]}" | tee "$out/table.txt"
cat "$out"/fusion/*.txt 2>/dev/null | tee -a "$out/table.txt"
# Few files travel better than many: all but the summary and the table go into one.
cd "$out" || exit 1
others=(examples fusion gpu.txt test_gpu.log fusion.log compile.log gather_floor.log quotients.log segment_sorts.log beyond_int32.log ./*check.log ./bench_*.log ./sweep_*.log)
tar czf logs.tar.gz "${others[@]}" 2>/dev/null
rm -rf "${others[@]}" test_gpu_*.log
