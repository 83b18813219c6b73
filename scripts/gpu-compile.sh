#!/bin/bash
# How long the kernels of programs take to compile where nothing is cached: of the examples, and of functions of bench/programs called from a
# file of one form.
#
#   scripts/gpu-compile.sh KELPIE    (a command, blanks between its words)
cd "$(dirname "$0")/.." || exit 1
if [ $# -ne 1 ]; then
  echo "usage: scripts/gpu-compile.sh KELPIE" >&2
  exit 2
fi
read -ra kelpie <<<"$1"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export KELPIE_CACHE=$folder/cache
compile() { # NAME FILE
  rm -rf "$KELPIE_CACHE"
  printf '%-28s %s\n' "$1" "$("${kelpie[@]}" build --arch sm_90 "$2")"
}
for file in examples/*.nesl; do compile "$file" "$file"; done
while read -r program call; do
  echo "load \"$PWD/bench/programs/$program\"; $call;" >"$folder/form.nesl"
  compile "$(sed -E "s,^[a-z0-9_]+\\(([a-z0-9_]+).*,\\1," <<<"$call") ($program)" "$folder/form.nesl"
done <<'CALLS'
quicksort digest(quicksort(input(1000)))
quicksort digest_rows(quicksort_rows(rows(10, 10)))
batcher_sort digest(batcher_sort(input(1024)))
quickhull digest(quickhull(disc(1000)))
breadth_first_search digest(breadth_first_search(random_graph(100, 1000)))
components digest(components(random(100, 1000)))
triangles digest(triangles(random(100, 1000)))
kmeans digest(kmeans(input(1000, 8)))
nbody digest(nbody(input(100)))
barnes_hut digest(barnes_hut(uniform(1000)))
delaunay digest(delaunay(square(1000)))
mandelbrot digest(mandelbrot(input(100)))
jacobi digest(jacobi(input(50)))
conjugate_gradients digest(conjugate_gradients(input(50)))
string_search digest(string_search(input(10000)))
histogram digest(by_key(input(1000)))
vectors digest_dot(dot(vectors(1000)))
vectors digest_norm2(norm2(vector(1000)))
vectors digest_prices(black_scholes(options(1000)))
CALLS
