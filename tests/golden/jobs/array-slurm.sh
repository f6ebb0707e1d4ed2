#!/bin/bash
#SBATCH --job-name=hgroup
#SBATCH --output='/home/user/it'"'"'s a group/%a.log'
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --array=0-1%1
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=10
#SBATCH --threads-per-core=1
#SBATCH --time=01:30:00

# shellcheck disable=SC2016  # user text in single quotes stays as it is

set -u
index=${SLURM_ARRAY_TASK_ID:?is not set: this script is a job array}
attempts=()
while IFS= read -r -d '' attempt; do attempts+=("$attempt"); done <'/home/user/it'"'"'s a group/attempts'
if [ -z "${attempts[index]:-}" ]; then
  printf 'harness: no attempt %s in %s on %s\n' "$index" '/home/user/it'"'"'s a group/attempts' "$(uname -n)" >&2
  exit 94
fi
exec bash "${attempts[index]}/job.sh"
