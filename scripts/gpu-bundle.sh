# shellcheck shell=bash
# Sourced in the project's folder, $here, by scripts that run the programs of .bundle/ on a GPU machine: finds the toolkit's
# libraries, and tells how a program of the bundle is called. Ends the script, with status 2, where there is no bundle or no GPU.
if [ ! -x .bundle/bin/kelpie ]; then
  cat >&2 <<EOF
$(basename "$0"): there is no .bundle/ with the programs to run. Where Kelpie is built, this makes it:
    scripts/make-bundle.sh build
Then copy the project's folder, .bundle/ included, to the machine with the GPU, and call scripts/$(basename "$0") there.
EOF
  exit 2
fi
if ! nvidia-smi >/dev/null 2>&1; then
  echo "$(basename "$0"): nvidia-smi finds no NVIDIA GPU on this machine" >&2
  exit 2
fi
# Where the toolkit's libraries are, for NVRTC and cuSPARSE.
for library in libnvrtc.so.13 libcusparse.so.12; do
  found=$(ldconfig -p | awk -v l="$library" '$1 == l {print $NF; exit}')
  [ -n "$found" ] || found=$(find /usr/local /opt /usr/lib -name "$library" 2>/dev/null | head -1)
  [ -n "$found" ] && extra="${extra:+$extra:}$(dirname "$found")"
done
# shellcheck disable=SC2154 # $here is set by who sources this
export LD_LIBRARY_PATH="$here/.bundle/lib${extra:+:$extra}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

run=()
if ! .bundle/bin/kelpie --version >/dev/null 2>&1; then
  # The machine's C library is older than the one the programs were built with: bring ours.
  loaders=("$here"/.bundle/core/ld-linux*)
  run=("${loaders[0]}" --library-path "$here/.bundle/core:$LD_LIBRARY_PATH")
fi
program() { echo "${run[@]}" "$here/.bundle/bin/$1"; }
