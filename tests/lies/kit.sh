# kit.sh: the functions with which the tables of lies are written.
#
#   lie NAME "what is not as it seems" made=FUNCTION run='ARGUMENTS' must='CODES' never='CODES'
#
# The function makes the lie for real and names the target in $target. An @ in the arguments of `fathom run`
# (or of another command: command='sweep @ ...') stands for the target. All codes of `must` have to appear. If
# one of several is enough, they are written as a|b. No code of `never` may appear: it would be a wrong
# explanation. A busy machine is normal, so its effects on a run may appear beside anything and are in no list
# of `never`. It can also have the effect of a lie once, such as repeated stalls of all I/Os. A row that is
# not firm is wrong only when it is wrong twice.
#
# Words that are not codes: sound, suspect, void (the verdict), exit-N (fathom's exit code), unchecked:CODE (a
# check that was not made, and says so), file:FUNCTION (a function of the table).
#
#   pending='why'   fathom does not know this lie yet: it is tried and reported, and is no failure
#   quiet=yes       it shows only while no other program uses the CPUs; left out on a busy machine
#   effect='CODES'  codes that a busy machine may cause too, and that the lie causes here
#   tries=1         for a lie that cannot be tried again (the default is three: effects are statistical)
#   firm=yes        a fact that any machine shows, however busy: missing it is a failure. Simulated rows
#                   are firm by themselves, because they run in virtual time. Rows that are not firm
#                   count in the score, which has its own goal.
#
# A code of `must` that is not in docs/method/verdicts.md is pending by itself.
#
# shellcheck disable=SC2034  # The tables' functions set what is used here.

# Codes that explain a run by its storage when there is nothing to explain. Foreign I/O is not among them,
# because the disk of a test machine has other users. A full file system is not either: it may really be full.
errors="io-errors short-ios device-gone lost-ios gave-up nothing-completed"
cached="page-cache cached-below memory-target"
limits="cgroup-limit rate-limited cpu-throttled"
contents="repeating-payload repeating-content data-reduction repeating-data-faster"
places="unwritten-reads allocating-writes trimmed-reads compression shared-extents many-extents"
places+=" target-replaced target-written-by-others concurrent-fathom copy-up loop-buffered"
arrays="array-degraded array-resync partial-stripes"
storage="$errors $cached $limits $contents $places $arrays misaligned barriers-off few-flushes"

rows=$FATHOM_BED/rows
: >"$rows"
known_codes=$(sed -n 's/^| `\([a-z-]*\)` |.*/\1/p' "$FATHOM_ROOT/docs/method/verdicts.md")
known() { grep -qxF -- "$1" <<<"$known_codes"; }

# Runs the undo commands that `later` noted after the first COUNT.
undo_to() { # COUNT
  local index
  for ((index = ${#undo[@]} - 1; index >= $1; index--)); do
    eval "${undo[index]}" || true
    unset "undo[index]"
  done
}

# A maker calls this if it cannot make the lie here.
unmade() {
  why_not=$1
  return 1
}

# Further variables that a maker may set: the words before fathom, a function that runs meanwhile (fathom's
# process is $fathom_pid), and further arguments of fathom.
wrap=() extra=() meanwhile='' fathom_pid=''
# The seconds after which a lie is ended.
longest=40

start_and_wait() { # WORDS OF FATHOM
  local limit=$((SECONDS + longest))
  echo "+ ${wrap[*]} fathom $*"
  "${wrap[@]}" "$fathom" "$@" >"$out" 2>&1 &
  fathom_pid=$!
  [[ -z $meanwhile ]] || $meanwhile || echo "  what happens meanwhile ended with $?"
  while kill -0 "$fathom_pid" 2>/dev/null; do
    if [[ $SECONDS -ge $limit ]]; then
      kill -CONT "$fathom_pid" 2>/dev/null
      kill -KILL "$fathom_pid" 2>/dev/null
      break
    fi
    sleep 0.02
  done
  status=0
  wait "$fathom_pid" || status=$?
  sed 's/^/  /' "$out"
  echo "  status $status"
}

# Every word about the last run, one per line, in $told. The codes that are graver than a note are in $doubts.
read_result() {
  told="exit-$status"
  doubts=
  [[ -s $result ]] || return 0
  told+=$'\n'$(jq -r '.. | objects | select(has("findings") or has("unchecked")) |
    (.findings // [] | .[].code), (.unchecked // [] | .[] | "unchecked:" + .code), (.verdict // empty)' \
    "$result" 2>/dev/null | sort -u)
  doubts=$(jq -r '.. | objects | (.findings // empty) | .[] | select(.severity != "note") | .code' \
    "$result" 2>/dev/null | sort -u | tr '\n' ' ')
}

# Whether one of a|b|c appeared.
any_of() { # WORDS
  local word
  for word in ${1//|/ }; do
    if [[ $word == file:* ]]; then
      if "${word#file:}"; then return 0; fi
    elif grep -qxF -- "$word" <<<"$told"; then
      return 0
    fi
  done
  return 1
}

# The required codes that did not appear. The next function gives the forbidden codes that did.
missing_of() {
  local word
  for word in $1; do any_of "$word" || echo -n "$word "; done
}
wrong_of() {
  local word
  for word in $1; do ! any_of "$word" || echo -n "$word "; done
}

# One try in its own folder. Everything is undone afterwards.
try_once() { # TRY
  local mark=${#undo[@]} words
  target='' wrap=() extra=() meanwhile='' why_not='' fathom_pid=''
  here=$FATHOM_BED/$name.$1
  mkdir -p "$here"
  result=$here/result.jsonl
  told='' doubts=''
  if [[ -z $made ]] || $made; then
    read -ra words <<<"${command:-run $run}"
    words=("${words[@]//@/$target}")
    words+=("${extra[@]}")
    [[ $with_out = no ]] || words+=(--out "$result")
    start_and_wait "${words[@]}"
    read_result
  else
    why_not=${why_not:-it cannot be made here}
  fi
  undo_to "$mark"
  rm -rf --one-file-system "$here"
}

selected() { [[ ${FATHOM_LIES:-.} = . || $1 =~ ${FATHOM_LIES} ]]; }

# Sets the words of a row from NAME=VALUE.
read_row() {
  local word
  made='' run='' command='' quiet='' effect='' must='' never='' pending='' tries=3 with_out=yes firm=''
  for word in "$@"; do
    case ${word%%=*} in
      made | run | command | quiet | effect | must | never | pending | tries | with_out | firm) printf -v "${word%%=*}" %s "${word#*=}" ;;
      *) echo "$name: no such word: $word"; exit 2 ;;
    esac
  done
  [[ $made != no_target ]] || firm=yes
  local each code any
  [[ -z $pending ]] || return 0
  for each in $must; do
    any=none
    for code in ${each//|/ }; do
      case $code in
        *[0-9:]* | sound | suspect | void) [[ $any != none ]] || any=word ;;
        *) if known "$code"; then any=code; elif [[ $any != code ]]; then any=unknown; fi ;;
      esac
    done
    [[ $any != unknown ]] || pending="${each//|/ or } has not come to fathom yet"
  done
}

# The outcome of a row is one line: group, name, truth, must, never, outcome, and the words that appeared.
note_row() { # OUTCOME WHAT
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$group" "$name" "$truth" "${must:--}" "${never:--}" "$1" "${2:--}" >>"$rows"
}

# The effects of other programs on any run here say nothing about a lie, unless the row lists them as effects.
busy="cpu-contention cpu-steal worker-busy generator-late generator-ceiling slow-outside-device foreign-io io-wq"
busy+=" depth-not-reached not-steady trend warm-up-too-short stall level-change"
note_effect() {
  local code told_of=
  for code in $doubts; do
    if [[ " $busy " != *" $code "* || " $effect " = *" $code "* ]]; then told_of+="$code "; fi
  done
  note_row "$([[ -n $told_of ]] && echo effect || echo passed)" "$told_of"
}

# Whether programs waited for a CPU for more than a fifth of the last ten seconds.
crowded() { awk -F'[= ]' '$1 == "some" { exit !($3 > 20) }' /proc/pressure/cpu 2>/dev/null; }

judge_row() { # MISSING WRONG
  if [[ -n $2 && -n $pending ]]; then
    skip "$name" "pending: $pending"
    note_row wrong "$2"
  elif [[ -n $2 ]]; then
    fail "$name: nothing is explained wrongly" "told: $2"
    note_row wrong "$2"
  elif [[ -z $1 && -n $pending ]]; then
    pass "$name: $(tr ' ' ',' <<<"$must") (though it is marked as pending)"
    note_row named
  elif [[ -z $1 ]]; then
    pass "$name: $(tr ' ' ',' <<<"$must")"
    note_row named
  elif [[ -n $pending ]]; then
    # The row neither passed nor failed.
    skip "$name" "pending: $pending"
    note_effect
  elif [[ -n $quiet ]] && crowded; then
    skip "$name" "other programs have the CPUs, beside which it does not show"
    note_effect
  elif [[ -n $firm ]]; then
    fail "$name: $(tr ' ' ',' <<<"$must")" "not told in $tries tries: $1(doubts: ${doubts:-none})"
    note_effect
  else
    # Other effects of the machine can hide a single lie. The score judges how many are caught.
    skip "$name" "not told in $tries tries: $1(doubts: ${doubts:-none})"
    note_effect
  fi
}

# A busy machine may complete nothing in a window of a second. Then nothing can be told.
nothing_completed() { [[ $must != *nothing-completed* ]] && grep -q nothing-completed <<<"$told"; }

# A row that could not be made, and why.
unmade() { # WHY
  skip "$name" "$1"
  note_row unmade "$1"
}

group=''
lie() { # NAME TRUTH WORDS...
  name=$1 truth=$2
  shift 2
  selected "$name" || return 0
  read_row "$@"
  local try missing=$must wrong='' wrongs=0 began=$SECONDS
  echo "== $name: $truth"
  [[ -z $pending ]] || tries=1
  for ((try = 1; try <= tries; try++)); do
    try_once $try
    if [[ -n $why_not ]]; then
      unmade "$why_not"
      return 0
    fi
    if nothing_completed; then
      echo "-- try $try: nothing completed"
      [[ $try -eq $tries ]] || continue
      unmade "nothing completed in the window"
      return 0
    fi
    missing=$(missing_of "$must") wrong=$(wrong_of "$never")
    echo "-- try $try: told $(tr '\n' ' ' <<<"$told")"
    [[ -z $wrong ]] || wrongs=$((wrongs + 1))
    # A row that is wrong once and then right counts as right, if a busy machine can be the reason.
    [[ $wrongs -lt 2 && (-z $firm || -z $wrong) && -n $missing$wrong ]] || break
  done
  if [[ -n $wrong && -z $firm && $wrongs -lt 2 && $tries -gt 1 ]]; then
    missing=$must wrong=''
  fi
  judge_row "$missing" "$wrong"
  echo "-- $name took $((SECONDS - began)) s"
}

# A run of the guest, which runs all of them in one boot. Its files are in $guest.
from_guest() { # NAME TRUTH WORDS...
  name=$1 truth=$2
  shift 2
  selected "$name" || return 0
  read_row "$@"
  result=$guest/$name.jsonl
  echo "== $name: $truth"
  if [[ ! -e $guest/$name.status ]]; then
    unmade "$why_not_in_guest"
    return 0
  fi
  status=$(cat "$guest/$name.status")
  tries=1
  [[ ! -s $guest/$name.txt ]] || sed 's/^/  /' "$guest/$name.txt"
  read_result
  echo "-- told $(tr '\n' ' ' <<<"$told")"
  if nothing_completed; then
    unmade "nothing completed in the window"
    return 0
  fi
  judge_row "$(missing_of "$must")" "$(wrong_of "$never")"
}

# A run without a lie: no void, and no code that explains it by its storage.
truth() { # NAME WHAT-IT-IS WORDS...
  local name=$1 what=$2
  shift 2
  lie "$name" "$what" "must=sound|suspect" "never=void $storage" pending= "$@"
}

# ---- The score, and its page.

count_of() { awk -F'\t' -v o="$1" -v g="$2" '(g == "truth") == ($1 == "truths") && $6 == o { n++ } END { print n + 0 }' "$rows"; }

score() {
  local named effect passed wrong unmade all
  named=$(count_of named lie) effect=$(count_of effect lie) passed=$(count_of passed lie)
  wrong=$(count_of wrong lie) unmade=$(count_of unmade lie)
  all=$((named + effect + passed + wrong))
  echo "$all lies were made: $named were caught by name, $effect only by an effect, $passed not at all, $wrong were explained wrongly; $unmade could not be made here. Of $(($(count_of named truth) + $(count_of passed truth) + $(count_of effect truth) + $(count_of wrong truth))) honest runs, $(($(count_of wrong truth))) had a false alarm."
}

# At least 90 lies are named. If some could not be made, for example without a guest, three quarters are.
enough_are_named() {
  local named made
  named=$(count_of named lie)
  made=$((named + $(count_of effect lie) + $(count_of passed lie) + $(count_of wrong lie)))
  echo "$named of $made"
  [[ $named -ge 90 ]] || [[ $(count_of unmade lie) -gt 10 && $((4 * named)) -ge $((3 * made)) ]]
}

# The rows of the page.
page_rows() { # GROUP
  awk -F'\t' -v group="$1" '
    function codes(words,    n, i, list, out) {
      if (words == "-") return ""
      n = split(words, list, " ")
      for (i = 1; i <= n; i++) { gsub(/\|/, "` or `", list[i]); out = out (i > 1 ? ", " : "") "`" list[i] "`" }
      return out
    }
    BEGIN { said["named"] = "by name"; said["wrong"] = "wrongly"; said["passed"] = "not reported" }
    $1 == group {
      outcome = $6 == "effect" ? "an effect: " $7 : $6 == "unmade" ? "not made: " $7 : said[$6]
      sub(/ $/, "", outcome)
      if (group == "truths") printf "| %s | %s | %s |\n", $2, $3, $6 == "named" ? "quiet" : "false alarm: " $7
      else printf "| %s | %s | %s | %s |\n", $2, $3, codes($4), outcome
    }' "$rows"
}

page() {
  local title
  cat "$FATHOM_ROOT/tests/lies/head.txt"
  echo
  echo "$(score)"
  awk -F'\t' '!seen[$1]++ { print $1 }' "$rows" | while read -r title; do
    echo
    echo "## ${title^}"
    echo
    if [[ $title = truths ]]; then
      echo "Runs in which nothing is wrong: none may be void, and none may be explained by its storage."
      echo
      echo '| run | what it is | reported |'
      echo '| --- | --- | --- |'
    else
      echo '| lie | what is not as it seems | code | caught |'
      echo '| --- | --- | --- | --- |'
    fi
    page_rows "$title"
  done
}
