#!/bin/bash
#PBS -N h8ga738mcg1
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/groups/g1/
#PBS -m n
#PBS -r y
#PBS -J 0-5
#PBS -q volta_gpu
#PBS -P volta_pilot
#PBS -l select=1:ncpus=20:mpiprocs=1:ngpus=1:mem=163840mb
#PBS -l walltime=00:30:00

# shellcheck disable=SC2016  # user text in single quotes stays as it is

set -u
index=${PBS_ARRAY_INDEX:?is not set: this script is a job array}
attempts=()
while IFS= read -r -d '' attempt; do attempts+=("$attempt"); done </home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/groups/g1/attempts
if [ -z "${attempts[index]:-}" ]; then
  printf 'harness: no attempt %s in %s on %s\n' "$index" /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/groups/g1/attempts "$(uname -n)" >&2
  exit 94
fi
exec bash "${attempts[index]}/job.sh"
