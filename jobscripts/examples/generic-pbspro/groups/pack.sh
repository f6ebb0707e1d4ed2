#!/bin/bash
#PBS -N h4y5ufr18g1
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /home/user/dl-batch-harness/results/quickstart-generic-pbspro/groups/g1/scheduler.log
#PBS -m n
#PBS -r n
#PBS -q workq
#PBS -l select=1:ncpus=2:mpiprocs=1:mem=3072mb
#PBS -l walltime=00:36:00

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

attempt 302 /home/user/dl-batch-harness/results/quickstart-generic-pbspro/runs/612acf4d4730ebf0/r0a1
attempt 302 /home/user/dl-batch-harness/results/quickstart-generic-pbspro/runs/8dbd2efdf0ef02f0/r0a1
attempt 302 /home/user/dl-batch-harness/results/quickstart-generic-pbspro/runs/3bba02bc2ddbb9ff/r0a1
attempt 302 /home/user/dl-batch-harness/results/quickstart-generic-pbspro/runs/d74733394d77f3ec/r0a1
attempt 302 /home/user/dl-batch-harness/results/quickstart-generic-pbspro/runs/d74733394d77f3ec/r1a1
attempt 302 /home/user/dl-batch-harness/results/quickstart-generic-pbspro/runs/612acf4d4730ebf0/r1a1
[ -z "$stopped" ] || exit 1
# no attempt can be seen or written here: that is no end of a pack
[ -n "$begun" ] || exit 94
