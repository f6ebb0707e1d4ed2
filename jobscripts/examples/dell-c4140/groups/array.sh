#!/bin/bash
#SBATCH --job-name=hbesughw1g1
#SBATCH --output=/home/user/dl-batch-harness/results/afrl_batch_interval-dell-c4140/groups/g1/%a.log
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --array=0-5
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=20
#SBATCH --threads-per-core=1
#SBATCH --gres=gpu:1
#SBATCH --mem=184320M
#SBATCH --time=00:30:00

# shellcheck disable=SC2016  # user text in single quotes stays as it is

set -u
index=${SLURM_ARRAY_TASK_ID:?is not set: this script is a job array}
attempts=()
while IFS= read -r -d '' attempt; do attempts+=("$attempt"); done </home/user/dl-batch-harness/results/afrl_batch_interval-dell-c4140/groups/g1/attempts
if [ -z "${attempts[index]:-}" ]; then
  printf 'harness: no attempt %s in %s on %s\n' "$index" /home/user/dl-batch-harness/results/afrl_batch_interval-dell-c4140/groups/g1/attempts "$(uname -n)" >&2
  exit 94
fi
exec bash "${attempts[index]}/job.sh"
