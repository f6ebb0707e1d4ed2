#!/bin/bash
#PBS -N h2mzhciu5r0a1
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /home/user/dl-batch-harness/results/dell_pipeline_order-nus-volta/runs/551a410f1f122280/r0a1/scheduler.log
#PBS -m n
#PBS -r n
#PBS -q volta_gpu
#PBS -P volta_pilot
#PBS -l select=2:ncpus=40:mpiprocs=4:ngpus=4:mem=327680mb
#PBS -l place=scatter
#PBS -l walltime=00:30:00

# shellcheck disable=SC2016,SC2317,SC2329  # user text in single quotes stays as it is; traps call functions

set -u
umask 022
attempt_dir=/home/user/dl-batch-harness/results/dell_pipeline_order-nus-volta/runs/551a410f1f122280/r0a1

# ---- evidence: exit.json is written on every way out ----

job_id="${PBS_JOBID:-}"
started_unix_s=
cause=setup
message='the job script ended before the launcher was started'
staged=
child=

# $1 as a JSON string; control characters become spaces
json_string() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//[[:cntrl:]]/ }"
}

write_exit() {
  local now
  now=$(date +%s.%N)
  printf '{"code":%d,"cause":"%s","started_unix_s":%s,"ended_unix_s":%s,"host":%s,"job_id":%s,"message":%s}\n' \
    "$1" "$cause" "${started_unix_s:-$now}" "$now" "$(json_string "$(uname -n)")" "$(json_string "$job_id")" \
    "$(json_string "$message")" >"$attempt_dir/.exit.json.new" &&
    mv -f "$attempt_dir/.exit.json.new" "$attempt_dir/exit.json"
}

finish() {
  local code=$?
  trap '' TERM USR1 INT
  # A script that ends with 0 without having seen the launcher return 0 is no success.
  [ "$cause" = exit ] || [ "$code" != 0 ] || code=1
  write_exit "$code"
  remove_staged
  exit "$code"
}

stop() {
  interrupted=1
  cause=term
  message="told to stop by SIG$1"
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}
listen() {
  trap 'stop TERM' TERM
  trap 'stop USR1' USR1
  trap 'stop INT' INT
}
listen

# A signal to all of the job's processes must not leave a claim of ours that looks like another job's.
if ! (trap '' TERM USR1 INT && exec mkdir "$attempt_dir/started") 2>/dev/null; then
  [ -d "$attempt_dir/started" ] && exit 93
  [ "$cause" = term ] && exit 143
  printf 'harness: %s cannot be written on %s; put results on a file system that compute nodes share\n' \
    "$attempt_dir" "$(uname -n)" >&2
  exit 94
fi
trap finish EXIT
exec </dev/null >"$attempt_dir/stdout" 2>"$attempt_dir/stderr"
started_unix_s=$(date +%s.%N)

fail() {
  [ "$cause" = term ] || message=$1
  printf 'harness: %s\n' "$1" >&2
  exit 1
}

# Runs a command in the background, since bash defers traps while a command runs in the foreground.
supervise() {
  local status
  [ "$cause" != term ] || return 143
  "$@" &
  child=$!
  [ "$cause" != term ] || kill -TERM "$child" 2>/dev/null
  while :; do
    interrupted=
    wait "$child"
    status=$?
    [ -n "$interrupted" ] || break
  done
  child=
  return "$status"
}

remove_staged() {
  [ -z "$staged" ] || mpirun -np 2 --map-by ppr:1:node --bind-to none --hostfile "$attempt_dir"/hosts rm -rf -- "$staged"
}

# ---- environment ----

cd "$attempt_dir" || fail "cannot enter the attempt directory"
# Schedulers set thread counts for one process per node; the ranks set their own.
unset OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS
# Where a site has sbatch hand no environment on, Slurm would keep from the launcher's daemons what is set here, too.
unset SLURM_EXPORT_ENV
export PYTHONPATH=/home/user/dl-batch-harness"${PYTHONPATH:+:$PYTHONPATH}"
if [ "$EUID" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

launcher=mpirun
command -v "$launcher" >/dev/null || fail "no $launcher on $(uname -n): see modules and mpi.command in the cluster's file"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"  # passed to other nodes, so it must be set

# one line per node, in the order of the allocation
awk '!seen[$0]++' "$PBS_NODEFILE" | while read -r host; do printf '%s slots=4\n' "$host"; done >hosts

# ---- launch ----

[ "$cause" = term ] || message=
supervise "$launcher" -np 8 --map-by socket:PE=10 --bind-to core --hostfile "$attempt_dir"/hosts -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH \
  singularity exec --nv --bind /home/user/dl-batch-harness --bind "$attempt_dir" --bind /hpctmp/"${USER:?is not set in the job}"/chestxray14.tfrecord --nv --bind /hpctmp,/scratch /hpctmp/containers/dl-batch-harness.sif \
  env PYTHONPATH="$PYTHONPATH" python3 -m harness.runtime "$attempt_dir"/point.json
status=$?
[ "$cause" = term ] || cause='exit'
exit "$status"
