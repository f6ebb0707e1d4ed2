#!/bin/bash
#PBS -N hgroup
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /dev/null
#PBS -m n
#PBS -r y
#PBS -J 0-1%1
#PBS -l select=1:ncpus=10:mpiprocs=1
#PBS -l walltime=01:30:00

# shellcheck disable=SC2016  # user text in single quotes stays as it is

set -u
index=${PBS_ARRAY_INDEX:?is not set: this script is a job array}
attempts=()
while IFS= read -r -d '' attempt; do attempts+=("$attempt"); done <'/home/user/it'"'"'s a group/attempts'
if [ -z "${attempts[index]:-}" ]; then
  printf 'harness: no attempt %s in %s on %s\n' "$index" '/home/user/it'"'"'s a group/attempts' "$(uname -n)" >&2
  exit 94
fi
exec bash "${attempts[index]}/job.sh"
