#!/bin/bash
#SBATCH --job-name=hi1liu5grg1
#SBATCH --output=/home/user/dl-batch-harness/results/quickstart-generic-slurm/groups/g1/%a.log
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --array=0-5
#SBATCH --partition=normal
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --threads-per-core=1
#SBATCH --mem=3072M
#SBATCH --time=00:05:00

# shellcheck disable=SC2016  # user text in single quotes stays as it is

set -u
index=${SLURM_ARRAY_TASK_ID:?is not set: this script is a job array}
attempts=()
while IFS= read -r -d '' attempt; do attempts+=("$attempt"); done </home/user/dl-batch-harness/results/quickstart-generic-slurm/groups/g1/attempts
if [ -z "${attempts[index]:-}" ]; then
  printf 'harness: no attempt %s in %s on %s\n' "$index" /home/user/dl-batch-harness/results/quickstart-generic-slurm/groups/g1/attempts "$(uname -n)" >&2
  exit 94
fi
exec bash "${attempts[index]}/job.sh"
