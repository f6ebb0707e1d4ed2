#!/bin/bash
#PBS -N h8ga738mcg1
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/groups/g1/scheduler.log
#PBS -m n
#PBS -r n
#PBS -q volta_gpu
#PBS -P volta_pilot
#PBS -l select=1:ncpus=20:mpiprocs=1:ngpus=1:mem=163840mb
#PBS -l walltime=03:37:00

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

attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/runs/f97d6cf8aa4f6383/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/runs/601b9e1eff500723/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/runs/2f0130f8ce44b17b/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/runs/ca9e0a6ea207f1c2/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/runs/ba3459e147f7f25d/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/runs/9c00c75116e4166f/r0a1
attempt 1802 /home/user/dl-batch-harness/results/afrl_batch_interval-nus-volta/runs/f97d6cf8aa4f6383/r3a1
[ -z "$stopped" ] || exit 1
# no attempt can be seen or written here: that is no end of a pack
[ -n "$begun" ] || exit 94
