#!/bin/bash
# Puts what scripts/gpu-check.sh and scripts/gpu-programs.sh need into .bundle/: programs, tests, benchmarks and the libraries that a bare
# machine may lack, so that a GPU machine needs neither a build nor a network.
#
#   scripts/make-bundle.sh [build folder, default build]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
jobs=$(nproc)

[ -f "$build/build.ninja" ] || cmake -G Ninja -S . -B "$build"
targets=(kelpie test_gpu gpu_bench)
peers=()
if [[ $(ninja -C "$build" -t targets all) == *$'\ngpu_peers:'* ]]; then
  targets+=(gpu_peers)
  peers=("$build/bench/gpu_peers" "$build/bench/gpu_peer_spmv" "$build/bench/gpu_peer_types" "$build/bench/gather_floor" "$build/bench/quotients" "$build/bench/segment_sorts")
fi
if [[ $(ninja -C "$build" -t targets all) == *$'\nprogram_peers:'* ]]; then
  targets+=(program_peers)
  for source in bench/programs/*_peer.cu; do peers+=("$build/bench/$(basename "$source" .cu)"); done
  peers+=("$build/bench/launch_costs")
fi
ninja -C "$build" -j "$jobs" "${targets[@]}"

rm -rf .bundle
mkdir -p .bundle/bin .bundle/lib .bundle/core
for program in "$build/driver/kelpie" "$build/tests/codegen/test_gpu" "$build/gpu_bench" "${peers[@]}"; do
  strip -o ".bundle/bin/$(basename "$program")" "$program"
done
# Libraries of the system's core go apart: they serve only where the machine's own are too old.
for program in .bundle/bin/*; do
  ldd "$program" | awk '/=> \// {print $3} /^[[:space:]]*\/lib.*ld-linux/ {print $1}'
done | sort -u | while read -r library; do
  case "$(basename "$library")" in
    libcuda.so* | libnvrtc* | libcusparse* | libnvJitLink* | libcublas*) ;;
    ld-linux* | libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libstdc++* | libgcc_s*)
      cp -L "$library" .bundle/core/ ;;
    *) cp -L "$library" .bundle/lib/ ;;
  esac
done
du -sh .bundle
