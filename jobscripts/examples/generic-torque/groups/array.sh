#!/bin/bash
#PBS -N hsxslw2k2g1
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /home/user/dl-batch-harness/results/quickstart-generic-torque/groups/g1/
#PBS -m n
#PBS -r n
#PBS -t 0-5
#PBS -q batch
#PBS -l nodes=1:ppn=2
#PBS -l mem=3072mb
#PBS -l walltime=00:05:00

# shellcheck disable=SC2016  # user text in single quotes stays as it is

set -u
index=${PBS_ARRAYID:?is not set: this script is a job array}
attempts=()
while IFS= read -r -d '' attempt; do attempts+=("$attempt"); done </home/user/dl-batch-harness/results/quickstart-generic-torque/groups/g1/attempts
if [ -z "${attempts[index]:-}" ]; then
  printf 'harness: no attempt %s in %s on %s\n' "$index" /home/user/dl-batch-harness/results/quickstart-generic-torque/groups/g1/attempts "$(uname -n)" >&2
  exit 94
fi
exec bash "${attempts[index]}/job.sh"
