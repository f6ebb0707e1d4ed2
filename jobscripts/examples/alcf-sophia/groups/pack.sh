#!/bin/bash
#PBS -N hsu49ruyzg1
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/groups/g1/scheduler.log
#PBS -m n
#PBS -r n
#PBS -q by-gpu
#PBS -A my-project
#PBS -l select=1
#PBS -l walltime=03:37:00
#PBS -l filesystems=home:eagle
#PBS -k doe

# shellcheck disable=SC2016,SC2317,SC2329  # user text in single quotes stays as it is; traps call functions

set -u
child=
stopped=
begun=
stop() {
  stopped=1
  interrupted=1
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}
trap stop TERM USR1 INT

# $1 seconds, $2 attempt directory
attempt() {
  [ -z "$stopped" ] || return
  # --foreground: the signal goes to the script alone, which passes it on to its launcher
  timeout --foreground --kill-after=30 "$1" bash "$2/job.sh" &
  child=$!
  [ -z "$stopped" ] || kill -TERM "$child" 2>/dev/null
  while :; do
    interrupted=
    wait "$child"
    status=$?
    [ -n "$interrupted" ] || break
  done
  child=
  [ "$status" = 94 ] || ! [ -e "$2/job.sh" ] || begun=1
}

attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/runs/5c889d01c34a1fb0/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/runs/6ef404a72401c14c/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/runs/b71d192ae9ab43d9/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/runs/75530544dbef2868/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/runs/5e882d46ab548308/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/runs/c1469324f1257db8/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-alcf-sophia/runs/5c889d01c34a1fb0/r3a1
[ -z "$stopped" ] || exit 1
# no attempt can be seen or written here: that is no end of a pack
[ -n "$begun" ] || exit 94
