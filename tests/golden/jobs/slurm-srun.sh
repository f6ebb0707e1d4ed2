#!/bin/bash
#SBATCH --job-name=hj2lndrdar0a1
#SBATCH --output='/home/user/it'"'"'s here/r0a1/scheduler.log'
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --partition=volta_gpu
#SBATCH --account=volta_pilot
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=10
#SBATCH --threads-per-core=1
#SBATCH --gres=gpu:4
#SBATCH --mem=393216M
#SBATCH --time=01:30:00

# shellcheck disable=SC2016,SC2317,SC2329  # user text in single quotes stays as it is; traps call functions

set -u
umask 022
attempt_dir='/home/user/it'"'"'s here/r0a1'

# ---- evidence: exit.json is written on every way out ----

job_id="${SLURM_JOB_ID:-}"
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
  [ -z "$staged" ] || srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpu-bind=none --mpi=none rm -rf -- "$staged"
}

# ---- environment ----

cd "$attempt_dir" || fail "cannot enter the attempt directory"
# Schedulers set thread counts for one process per node; the ranks set their own.
unset OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS
# Where a site has sbatch hand no environment on, Slurm would keep from the launcher's daemons what is set here, too.
unset SLURM_EXPORT_ENV
export PATH='/opt/my env/bin':"$PATH"  # the launcher that belongs to this interpreter
export PYTHONPATH=/home/user/dl-batch-harness"${PYTHONPATH:+:$PYTHONPATH}"
if [ "$EUID" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

launcher=srun
command -v "$launcher" >/dev/null || fail "no $launcher on $(uname -n): see modules and mpi.command in the cluster's file"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"  # passed to other nodes, so it must be set

# ---- staging: the data set to this job's own directory on each node ----

read -r -d '' stage <<'STAGE'
set -u
trap 'kill -- "-$(jobs -p)" 2>/dev/null; wait; exit 143' TERM
from=$1 to=$2 facts=$3/stage.$(uname -n).json
# $1 as a JSON string; control characters become spaces
json_string() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//[[:cntrl:]]/ }"
}

measure() { find -L "$1" -type f -printf '%s\n' | awk '{ bytes += $1 } END { printf "%.0f %d\n", bytes, NR }'; }
mkdir -p "$to" && cd "$from" || exit
read -r bytes files <<<"$(measure .)"
free=$(df -Pk "$to" | awk 'NR == 2 { print $4 }')
if [ "$((free * 1024))" -lt "$bytes" ]; then
  printf 'harness: %s is %s bytes, %s has %s KiB free\n' "$from" "$bytes" "$to" "$free" >&2
  exit 1
fi
# every file of the copy against its MD5 sum where harness data left a list of them, else against the source's bytes
verify() {
  if [ -f harness-files.tsv ]; then
    awk -F '\t' '{ print $1 "  " $3 }' harness-files.tsv | (cd "$to" && xargs -d '\n' -r -n 32 -P 8 \
      bash -c 'printf "%s\n" "$@" | md5sum --check --quiet' verify)
  else
    find -L . -type f -print0 | xargs -0 -r -n 32 -P 8 \
      bash -c 'to=$1; shift; for file; do cmp -- "$file" "$to/$file" || exit; done' verify "$to"
  fi
}
begin=$(date +%s%N)
find -L . -type d -print0 | (cd "$to" && xargs -0 mkdir -p) || exit
set -m  # copies and checks are each a process group of their own, so that all of them can be stopped
find -L . -type f -print0 | xargs -0 -r -n 32 -P 8 cp -pL --parents -t "$to" &
set +m
wait $! || exit
set -m
[ "$bytes $files" = "$(measure "$to")" ] && verify >&2 &
set +m
if ! wait $!; then
  printf 'harness: %s differs from %s after staging\n' "$to" "$from" >&2
  exit 1
fi
elapsed=$(($(date +%s%N) - begin))
printf '{"from_path":%s,"to_path":%s,"seconds":%d.%09d,"bytes":%s,"files":%s,"verified":true}\n' "$(json_string "$from")" \
  "$(json_string "$to")" $((elapsed / 1000000000)) $((elapsed % 1000000000)) "$bytes" "$files" >"$facts.new" &&
  mv -f "$facts.new" "$facts"
STAGE
staged=/scratch/"${USER:?is not set in the job}"/data/mnist.hj2lndrdar0a1
export HARNESS_DATA_DIR=$staged
supervise srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpu-bind=none --mpi=none bash -c "$stage" stage \
  /hpctmp/"${USER:?is not set in the job}"/data/mnist "$staged" "$attempt_dir" || fail 'staging failed'

# ---- launch ----

[ "$cause" = term ] || message=
supervise "$launcher" --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=10 --cpu-bind=cores --distribution=block:cyclic --kill-on-bad-exit=1 --mpi=pmix \
  env PYTHONPATH="$PYTHONPATH" '/opt/my env/bin/python' -m harness.runtime "$attempt_dir"/point.json
status=$?
[ "$cause" = term ] || cause='exit'
exit "$status"
