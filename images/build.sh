#!/bin/sh
# build.sh [--print] [NAME...]: build the images of this folder, each on the one before it where it needs that.
# Needs buildah or podman, the network, and the bases by digest:
#   UBI=registry.example.com/ubi9/ubi@sha256:...  CUDA=...  INTEL=...  PYTHON=...  images/build.sh
# --print shows the commands and runs none. An image whose base is not given is passed over, and said so.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
registry=${REGISTRY:-registry.example.com/training}
print=no
[ "${1-}" != --print ] || { print=yes; shift; }
[ "$#" -gt 0 ] || set -- openmpi openmpi4 mpich intel-mpi pytorch horovod deepspeed

builder=
for program in buildah podman; do
  [ -n "$builder" ] || ! command -v "$program" >/dev/null || builder=$program
done
[ "$print" = yes ] && builder=${builder:-buildah}
[ -n "$builder" ] || { echo "build.sh: neither buildah nor podman is here: nothing was built (--print shows the commands)" >&2; exit 3; }

missing=0
for name; do
  case $name in
  openmpi) base=${UBI-} needs=UBI ;;
  # With CUDA where it is given: Horovod and DeepSpeed build on it.
  openmpi4) base=${CUDA:-${UBI-}} needs='CUDA or UBI' ;;
  mpich) base=${MPICH_BASE:-${UBI-}} needs='MPICH_BASE or UBI' ;;
  intel-mpi) base=${INTEL-} needs=INTEL ;;
  pytorch) base=${PYTHON-} needs=PYTHON ;;
  horovod | deepspeed) base=${OPENMPI4:-$registry/openmpi4:latest} needs=OPENMPI4 ;;
  *) echo "build.sh: there is no image $name" >&2; exit 2 ;;
  esac
  if [ -z "$base" ]; then
    echo "build.sh: $name is passed over: $needs names no base" >&2
    missing=1
    continue
  fi
  if [ -f "$folder/$name/requirements.in" ] && [ ! -f "$folder/$name/requirements.txt" ] && [ "$print" = no ]; then
    echo "build.sh: $name is passed over: make requirements.txt from requirements.in first (pip-compile --generate-hashes)" >&2
    missing=1
    continue
  fi
  set -- "$builder" build --build-arg "BASE=$base" -t "$registry/$name:latest" -f "$folder/$name/Containerfile" "$folder/$name"
  if [ "$print" = yes ]; then echo "$*"; else "$@"; fi
done
exit "$missing"
