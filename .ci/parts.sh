# shellcheck shell=bash
# A run of parts: each is run whatever became of those before it, within the time that all have together, and has a
# verdict. Only the first two are green.
#
#   ok           ended with 0
#   unsteady     tests failed and passed when run once more, alone: a fault to be found, but not one of the change
#   failed (N)   ended with N
#   cut off      was still running when the time was over
#   left out     was not begun any more
#
# Sourced by .ci/run, which names the parts. The caller sets limit_s, and in only=() the parts that are asked for: none
# for all of them. A part that is asked for and not there is a failure.

readonly LAST_FAILED=.pytest_cache/v/cache/lastfailed
readonly GRACE_S=60 # what is cut off gets Ctrl-C, so that tests take down what they started
names=() results=() times=() unsteady=() known=()

part() { # part NAME COMMAND...
  local name=$1 started=$SECONDS result='left out'
  shift
  known+=("$name")
  is_asked_for "$name" || return 0
  if ((SECONDS < limit_s)); then
    printf '\n=== %s: %s\n' "$name" "$*"
    rm -f "$LAST_FAILED"
    within "$@"
    result=$(verdict $?)
    [[ $result == failed* ]] && passes_alone "$name" "$@" && result=unsteady
  fi
  names+=("$name") results+=("$result") times+=("$((SECONDS - started)) s")
  printf '=== %s: %s, %s\n' "$name" "$result" "${times[-1]}"
}

is_asked_for() { # is_asked_for NAME
  ((${#only[@]} == 0)) || among "$1" "${only[@]}"
}

among() { # among NAME NAMES...
  local each
  for each in "${@:2}"; do
    [[ $each == "$1" ]] && return
  done
  return 1
}

within() { # within COMMAND...: in the time that is left
  local left_s=$((limit_s - SECONDS))
  ((left_s > 0)) || return 124 # for timeout, 0 is for ever
  timeout --signal=INT --kill-after="$GRACE_S" "$left_s" "$@" </dev/null
}

verdict() { # verdict STATUS
  if (($1 == 0)); then
    echo ok
  elif (($1 == 124 || $1 == 137)) && ((SECONDS >= limit_s)); then
    echo 'cut off'
  else
    echo "failed ($1)"
  fi
}

passes_alone() { # passes_alone NAME COMMAND...: the tests that failed, once more
  local failed
  mapfile -t failed < <(grep --only-matching '"[^"]*::[^"]*"' "$LAST_FAILED" 2>/dev/null | tr -d '"')
  # So many that fail have one cause.
  ((0 < ${#failed[@]} && ${#failed[@]} <= 10 && SECONDS < limit_s)) || return
  printf '\n=== %s, what failed, alone\n' "$1"
  shift
  ARGS='--last-failed --last-failed-no-failures=none -n 0' within "$@" && unsteady+=("${failed[@]}")
}

summary() { # the table; fails if a part is red, or is not there
  local all=ok each
  for each in "${only[@]}"; do
    among "$each" "${known[@]}" || names+=("$each") results+=('no such part') times+=('0 s')
  done
  printf '\n%-24s %-12s %8s\n' part result time
  for i in "${!names[@]}"; do
    printf '%-24s %-12s %8s\n' "${names[i]}" "${results[i]}" "${times[i]}"
    [[ ${results[i]} =~ ^(ok|unsteady)$ ]] || all=failed
  done
  printf '%-24s %-12s %8s\n' all "$all" "$SECONDS s"
  ((${#unsteady[@]} == 0)) || printf '%s passed only when run again:\n' "${#unsteady[@]}"
  ((${#unsteady[@]} == 0)) || printf '  %s\n' "${unsteady[@]}"
  [[ $all == ok ]]
}
