#!/usr/bin/env bash
# Runs kelpie from the sources: installs missing Debian packages, builds what has changed, and hands over.
#
#   ./kelpie.sh run examples/quickhull.nesl
set -u
source "$(dirname "${BASH_SOURCE[0]}")/scripts/setup.sh"

stamp=$build/kelpie.stamp
if newer_than "$stamp" "${sources[@]}"; then build_targets "$stamp" kelpie; fi
exec "$build/driver/kelpie" "$@"
