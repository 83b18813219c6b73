# shellcheck shell=bash disable=SC2034 # who sources this uses the variables
# Shared by kelpie.sh and test.sh: installs what is missing and builds. Everything said goes to standard error.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
sources=(CMakeLists.txt grammar ir frontend flatten fusion codegen runtime driver)

# Debian packages; without the tests the last ones are not needed, but two lists would be two things to keep right.
packages=(g++ cmake ninja-build antlr4 libantlr4-runtime-dev libglpk-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libedit-dev libgtest-dev libgmock-dev libboost-context-dev python3)

say() { echo "kelpie: $*" >&2; }

install_missing() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "these packages are needed; install them with"
      say "    sudo apt-get install ${missing[*]}"
      exit 2
    fi
  fi
  say "installing the packages ${missing[*]}"
  "${as_root[@]}" apt-get update -qq >&2 || say "apt-get update failed; going on with the package lists there are"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 || {
    say "the packages could not be installed"
    exit 2
  }
}

# build_targets STAMP TARGET...: afterwards the stamp is as new as the newest source that was seen.
build_targets() {
  local stamp=$1
  shift
  install_missing
  mkdir -p "$build"
  (
    flock 9 # one build at a time
    touch "$stamp.begun"
    [ -f "$build/build.ninja" ] || say "configuring and building, which takes some minutes the first time"
    [ -f "$build/build.ninja" ] || cmake -G Ninja -S "$root" -B "$build" >&2 || exit 1
    ninja -C "$build" "$@" >&2 || exit 1
    mv "$stamp.begun" "$stamp"
  ) 9>"$build/.lock" || {
    say "the build failed"
    exit 2
  }
}

# newer_than STAMP PATH...: whether one of the files or folders has changed since.
newer_than() {
  local stamp=$1
  shift
  [ ! -e "$stamp" ] || [ -n "$(cd "$root" && find "$@" -newer "$stamp" -print -quit)" ]
}
