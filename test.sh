#!/usr/bin/env bash
# Builds everything and runs all tests: the unit tests, then the NESL conformance cases where they are at hand, on
# each way of running that needs no GPU. The last line counts them.
set -u
source "$(dirname "${BASH_SOURCE[0]}")/scripts/setup.sh"

cd "$root" || exit 2
build_targets "$build/test.stamp" all
passed=0
failed=0

# The last line of the form "N passed, M failed" is added to the totals.
count() {
  local line
  line=$(grep -Eo '[0-9]+ passed, [0-9]+ failed' "$1" | tail -1)
  if [ -z "$line" ]; then
    echo "no result: counted as a failure"
    failed=$((failed + 1))
    return
  fi
  passed=$((passed + ${line%% passed*}))
  line=${line##*, }
  failed=$((failed + ${line%% failed*}))
}

log=$build/test.log
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" 2>&1 | tee "$log"
skipped=$(grep -Ec '\*\*\*Skipped' "$log") # they need what is not here, such as a GPU
# "93% tests passed, 2 tests failed out of 30"
sed -En 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$log" |
  while read -r bad all; do echo "$((all - bad - skipped)) passed, $bad failed"; done >"$log.count"
count "$log.count"

for cases in tests/conformance ../shared/conformance; do
  [ -f "$cases/nesl.jsonl" ] || continue
  for target in reference interp cpu; do
    echo "conformance, target $target"
    python3 "$cases/run_conformance.py" --batch 40 "$build/driver/kelpie run --int=32 --target=$target" "$cases/nesl.jsonl" |
      tee "$log"
    count "$log"
  done
  break
done

[ "$skipped" -eq 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
