#!/bin/bash
#SBATCH --job-name=hgroup
#SBATCH --output='/home/user/it'"'"'s a group/scheduler.log'
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=10
#SBATCH --threads-per-core=1
#SBATCH --time=01:33:00

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

attempt 5402 '/home/user/it'"'"'s here/r0a1'
attempt 62 '/home/user/it'"'"'s here/r1a1'
[ -z "$stopped" ] || exit 1
# no attempt can be seen or written here: that is no end of a pack
[ -n "$begun" ] || exit 94
