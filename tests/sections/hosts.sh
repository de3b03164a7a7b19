# hosts.sh: one load on many hosts, with fathom-hosts. The hosts are network namespaces. Each has an address of
# its own, a worker of a Dask cluster with TLS, and an SSH server. They are killed and cut off.
source "$FATHOM_ROOT/tests/lib.sh"
require jq ip nsenter openssl sha256sum flock
require_root
[[ -x ${PYTHON:=/usr/bin/python3} ]] || PYTHON=$(command -v python3) || cannot_run "python3 is missing"
export PYTHON

# What the package needs stays below target, for the next time.
target=$FATHOM_ROOT/target
[[ -z ${FATHOM_FAULTS_BIN:-} ]] || target=$(dirname "$(dirname "$FATHOM_FAULTS_BIN")")
key=$({ "$PYTHON" --version && cat "$FATHOM_ROOT/python/requirements.txt"; } | sha256sum | cut -c 1-12)
venv=$target/python-$key
mkdir -p "$venv"
# Another ./test of this checkout waits until this one has it.
in_turn() { flock "$venv.lock" "$@"; }
install() {
  [[ ! -e $venv/complete ]] || return 0
  "$PYTHON" -m venv --clear "$venv" &&
    timeout 300 "$venv/bin/python" -m pip --quiet --disable-pip-version-check install \
      --requirement "$FATHOM_ROOT/python/requirements.txt" && touch "$venv/complete"
}
export -f install
export venv
in_turn bash -c install || cannot_run "the Python packages cannot be installed"
# The package's own checks run beside the rest.
# A background job of a script ignores SIGINT; the tests need it.
env --default-signal=INT,QUIT setsid flock "$venv.lock" "$FATHOM_ROOT/python/check" "$venv" >python-check.log 2>&1 &
python_check=$!
later "kill -- -$python_check 2>/dev/null"

# The network: a namespace with a bridge, where fathom and the scheduler run, and one for each host. Outside of
# them, nothing changes.
names=(host1 host2 host3 host4 host5)
network=${cgroup_name}-net
namespace() { echo "$cgroup_name-$1"; }
address() { echo "10.77.0.${1#host}"; }
center=10.77.0.100
later "remove_namespaces '$FATHOM_BED'"
ip netns add "$network" || cannot_run "no network namespace can be made here"
if ! ip -n "$network" link add bridge type bridge; then
  cannot_run "no bridge can be made here"
fi
ip -n "$network" addr add $center/24 dev bridge
ip -n "$network" link set lo up
ip -n "$network" link set bridge up
for name in "${names[@]}"; do
  ip netns add "$(namespace "$name")"
  ip -n "$network" link add "$name" type veth peer name eth0 netns "$(namespace "$name")"
  ip -n "$network" link set "$name" master bridge up
  ip -n "$(namespace "$name")" addr add "$(address "$name")/24" dev eth0
  ip -n "$(namespace "$name")" link set lo up
  ip -n "$(namespace "$name")" link set eth0 up
done
# nsenter leaves the mounts as they are; `ip netns exec` does not.
within() { # NAMESPACE COMMAND...
  local place=$1
  shift
  exec nsenter --net="/run/netns/$place" -- "$@"
}

# A certificate authority, and a certificate of it for each part of the cluster.
certificate() { # NAME
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -days 2 -CA ca.pem -CAkey ca.key -CAcreateserial -out "$1.pem"
}
{
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=fathom test" -keyout ca.key -out ca.pem
  for name in scheduler worker me; do certificate "$name"; done
} >openssl.log 2>&1
tls() { echo --tls-ca-file "$FATHOM_BED/ca.pem" --tls-cert "$FATHOM_BED/$1.pem" --tls-key "$FATHOM_BED/$1.key"; }

# The cluster. Its workers have fathom in their path, and a folder of their own.
mkdir bin
ln -s "$fathom" bin/fathom
dask() { # NAMESPACE FOLDER WORDS
  mkdir -p "$2"
  cd "$2"
  export PATH=$FATHOM_BED/bin:$PATH TMPDIR=$FATHOM_BED
  export DASK_TEMPORARY_DIRECTORY=$PWD DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
  # A busy machine keeps a sound worker from saying that it is alive.
  export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL=15s DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0
  within "$1" "$venv/bin/dask" "${@:3}" --no-dashboard >dask.log 2>&1
}
scheduler=tls://$center:8786
# shellcheck disable=SC2046  # Words of options.
(dask "$network" scheduler scheduler --host "tls://$center" --port 8786 $(tls scheduler)) &
declare -A workers=()
for name in "${names[@]}"; do
  # shellcheck disable=SC2046
  (dask "$(namespace "$name")" "$name" worker "$scheduler" --name "$name" --nthreads 1 --no-nanny $(tls worker)) &
  workers[$name]=$!
done
# Each has a target of its own, by its name, and for ssh by its address.
for name in "${names[@]}"; do
  run_fathom prepare "data-$name" --size 16m
  ln "data-$name" "data-$(address "$name")"
done
registered() { grep -q 'Registered to' "$1/dask.log"; }
for name in "${names[@]}"; do
  wait_until 120 registered "$name" || { cat "$name/dask.log" scheduler/dask.log; fail "a worker of the cluster starts" "$name"; exit; }
done

# fathom-hosts beside the bridge. Little load: several hosts are one machine here.
load=("$FATHOM_BED/data-{host}" --queue-depth 1 --think-time 2ms --warm-up 0s)
on_cluster=(--scheduler "$scheduler" --tls-ca "$FATHOM_BED/ca.pem" --tls-cert "$FATHOM_BED/me.pem" --tls-key "$FATHOM_BED/me.key")
router() { # WORDS: in place of this shell
  export PYTHONPATH=$FATHOM_ROOT/python/src FATHOM_BIN=$fathom PYTHONDONTWRITEBYTECODE=1
  within "$network" "$venv/bin/python" -m fathom_hosts "$@"
}
# To its end. Its status is in $status, and its output in $out.
fathom_hosts() {
  status=0
  echo "+ fathom-hosts $*"
  timeout --kill-after=5 240 bash -c "$(declare -f within router); router \"\$@\"" - "$@" >"$out" 2>&1 || status=$?
  shown
}
export network fathom
# In the background, as $pid.
start() {
  echo "+ fathom-hosts $* &"
  (router "$@") >"$out" 2>&1 &
  pid=$!
}
ended() {
  status=0
  wait "$pid" || status=$?
  shown
}
shown() {
  sed 's/^/  /' "$out"
  echo "  status $status"
}

# The agents of a host, by the process numbers in its namespace.
agents() { # HOST
  local process
  for process in $(ip netns pids "$(namespace "$1")"); do
    ! tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null | grep -qE '(^|/)fathom agent' || echo "$process"
  done
}
no_agent() { # HOSTS...
  local host
  for host in "$@"; do [[ -z $(agents "$host") ]] || return 1; done
}
# The coordinator's side has only the scheduler.
no_fathom() { ! ip netns pids "$network" | xargs -I{} sh -c 'tr "\0" " " </proc/{}/cmdline; echo' 2>/dev/null | grep -qE 'fathom_hosts|/fathom '; }
nothing_runs() { wait_until 120 no_agent "${names[@]}" && wait_until 120 no_fathom; }
# The result file of a host's own agent.
own() { # FOLDER HOST
  local file
  for file in "$1"/agent-*"$2"-20*.fathom.jsonl; do
    [[ ! -s $file ]] || { echo "$file"; return; }
  done
  return 1
}
# A header is written when the load begins.
all_loaded() { # FOLDER HOSTS...
  local host
  for host in "${@:2}"; do own "$1" "$host" >/dev/null || return 1; done
}
concluded() { # FOLDER HOSTS...
  local host
  for host in "${@:2}"; do
    tail -n 1 "$(own "$1" "$host")" | jq -e 'select(.line == "conclusion") | .ended' || return 1
  done
}
# What must hold of a trial, by a jq expression over the line.
of_trial() { jq -es "[.[] | select(.line == \"trial\")] | last | $2" "$1"; }
# Each host's own trial ran to its end.
finished() { # FOLDER HOSTS...
  local host
  for host in "${@:2}"; do
    of_trial "$(own "$1" "$host")" '.interrupted == false' && concluded "$1" "$host" || return 1
  done
}
equal() { echo "$1, expected $2"; [[ $1 == "$2" ]]; }

fathom_hosts check "${load[@]}" "${on_cluster[@]}"
check "check on a cluster: exit code" status_is 0
check "check on a cluster: it reaches every host, and starts nothing" says 'nothing was written, and nothing started: all hosts are ready'
check "check on a cluster: nothing was written" bash -c '! ls host*/agent-*'
check "check on a cluster: nothing is left running" nothing_runs

fathom_hosts run "${load[@]}" --duration 4s "${on_cluster[@]}" --lease 60s --out all.jsonl
check "a run on a cluster: exit code" status_is 0
check "a run on a cluster: five hosts, in their order" of_trial all.jsonl \
  '[.hosts[].host] == ["host1", "host2", "host3", "host4", "host5"] and all(.hosts[]; .lost == null)'
check "a run on a cluster: each says when it began, and how exactly that is known" of_trial all.jsonl \
  'all(.hosts[].began; .bound_ns > 0 and .after_ns >= -.bound_ns - 1e6)'
echo "they began up to $(of_trial all.jsonl '[.hosts[].began.after_ns] | (max - min) / 1e6') ms apart"
ios='[.workers[].cells[] | .read.ios + .write.ios] | add'
sum=0
for name in "${names[@]}"; do
  # Without --agent-results the file is where the worker was started.
  one=$(of_trial "$(own "$name" "$name")" "$ios") || one=0
  sum=$((sum + one))
done
check "a run on a cluster: its I/Os are those of the hosts' own results" equal "$(of_trial all.jsonl "$ios")" "$sum"
check "a run on a cluster: its report has each host" bash -c '"$fathom" report all.jsonl >report.txt && for n in 1 2 3 4 5; do grep -q "^host$n " report.txt || exit; done'
check "a run on a cluster: nothing is left running" nothing_runs

# The coordinator dies: fathom, and then fathom-hosts itself.
child() { pgrep -P "$1"; }
for victim in fathom fathom-hosts; do
  mkdir "$victim"
  start run "${load[@]}" --duration 1h "${on_cluster[@]}" --agent-results "$FATHOM_BED/$victim" --out "$victim.jsonl"
  check "$victim is killed: all hosts were under load" wait_until 120 all_loaded "$victim" "${names[@]}"
  sleep 1
  if [[ $victim = fathom ]]; then kill -9 "$(child "$pid")"; else kill -9 "$pid"; fi || true
  ended
  check "$victim is killed: exit code" status_is 137
  check "$victim is killed: all loads end by themselves, and nothing is left running" nothing_runs
  check "$victim is killed: each host's own result has a conclusion" concluded "$victim" "${names[@]}"
done

# A host is cut off. It has to end its load, and the others go on.
mkdir cut
start run "${load[@]}" --duration 20s "${on_cluster[@]}" --agent-results "$FATHOM_BED/cut" --out cut.jsonl
check "a host is cut off: all were under load" wait_until 120 all_loaded cut "${names[@]}"
sleep 2
ip -n "$network" link set host5 down
cut_ns=$(date +%s%N)
check "a host is cut off: its agent ends" wait_until 120 no_agent host5
check "a host is cut off: its own result says why" equal \
  "$(tail -n 1 "$(own cut host5)" | jq -r '.sentences[0]')" "The coordinator was silent for 5 s."
# The last interval of its own result is the end of its I/O.
last=$(of_trial "$(own cut host5)" "(.started_unix_ns + .window_ns - $cut_ns) / 1e6 | floor") || last=1000000000
name="a host is cut off: within 6 s there is no further I/O"
echo "the last I/O was $last ms after the cut"
if [[ $last -le 6000 ]]; then pass "$name"; elif [[ $last -le 60000 ]]; then
  skip "$name" "slower than that: $last ms"
else
  fail "$name" "$last ms"
fi
ended
check "a host is cut off: exit code" status_is 0
# A suspect result has exit code 0.
lost_only() { # FILE HOST
  of_trial "$1" "[.hosts[] | select(.lost != null).host] == [\"$2\"]"
}
check "a host is cut off: the result names it as lost" lost_only cut.jsonl host5
check "a host is cut off: the result has the others" of_trial cut.jsonl '.workers | length == 4'
check "a host is cut off: the others finish" finished cut host1 host2 host3 host4
check "a host is cut off: nothing is left running" nothing_runs
# It has ended already if the scheduler noticed that it was gone.
kill -9 "${workers[host5]}" 2>/dev/null || true

# A host dies, with all that runs there.
names=(host1 host2 host3 host4)
mkdir killed
start run "${load[@]}" --duration 8s "${on_cluster[@]}" --lease 60s --agent-results "$FATHOM_BED/killed" --out killed.jsonl
check "a host is killed: all were under load" wait_until 120 all_loaded killed "${names[@]}"
sleep 1
ip netns pids "$(namespace host3)" | xargs kill -9 || true
ended
check "a host is killed: exit code" status_is 0
check "a host is killed: the result names it as lost" lost_only killed.jsonl host3
check "a host is killed: the result is suspect" of_trial killed.jsonl \
  '.verdict != "sound" and any(.findings[]; .code == "host-lost" and (tostring | contains("host3")))'
check "a host is killed: the result has the others" of_trial killed.jsonl '.workers | length == 3'
check "a host is killed: the others finish" finished killed host1 host2 host4
check "a host is killed: nothing is left running" nothing_runs

# By ssh, with servers and keys of our own.
if sshd=$(command -v sshd) && command -v ssh-keygen >/dev/null; then
  names=(host1 host2)
  ssh_hosts=$(address host1),$(address host2)
  ssh-keygen -q -t ed25519 -N '' -f host_key
  ssh-keygen -q -t ed25519 -N '' -f key
  mkdir -p /run/sshd ssh
  for name in "${names[@]}"; do
    cat >"sshd-$name.conf" <<END
ListenAddress $(address "$name")
HostKey $FATHOM_BED/host_key
AuthorizedKeysFile $FATHOM_BED/key.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
AcceptEnv FATHOM_TESTBED
END
    (within "$(namespace "$name")" "$sshd" -D -e -f "$FATHOM_BED/sshd-$name.conf") >"sshd-$name.log" 2>&1 &
  done
  listens() { grep -q 'Server listening' "sshd-$1.log"; }
  for name in "${names[@]}"; do wait_until 30 listens "$name" || true; done
  ssh_options=("IdentityFile=$FATHOM_BED/key" IdentitiesOnly=yes IdentityAgent=none "UserKnownHostsFile=$FATHOM_BED/known"
    StrictHostKeyChecking=accept-new SendEnv=FATHOM_TESTBED)
  by_ssh=(--ssh "$ssh_hosts" --fathom-there "$fathom" --agent-results "$FATHOM_BED/ssh")
  flags=()
  for option in "${ssh_options[@]}"; do
    by_ssh+=(--ssh-option "$option")
    flags+=(-o "$option")
  done
  if (within "$network" timeout 60 ssh -F none -o BatchMode=yes "${flags[@]}" "$(address host1)" true); then
    fathom_hosts check "${load[@]}" "${by_ssh[@]}"
    check "check by ssh: exit code" status_is 0
    check "check by ssh: it reaches every host" says 'nothing started: all hosts are ready'
    check "check by ssh: nothing was written" bash -c '! ls ssh/*'
    fathom_hosts run "${load[@]}" --duration 3s "${by_ssh[@]}" --lease 60s --out ssh.jsonl
    check "a run by ssh: exit code" status_is 0
    check "a run by ssh: two hosts by their addresses" of_trial ssh.jsonl '[.hosts[].host] == ["10.77.0.1", "10.77.0.2"]'
    check "a run by ssh: its workers are those of both" of_trial ssh.jsonl '(.workers | length) == 2'
    check "a run by ssh: both have a result of their own" equal "$(ls ssh)" "$(basename -a "$(own ssh 1)" "$(own ssh 2)")"
    check "a run by ssh: nothing is left running" nothing_runs
  else
    cat sshd-*.log
    skip "runs by ssh" "this user cannot log in"
  fi
else
  skip "runs by ssh" "sshd is missing"
fi

# On this machine.
mkdir local
fathom_hosts sweep --local 3 sim:ssd --axis hosts=1,2..N --duration 1s --warm-up 0s --agent-results local --out sweep.jsonl
check "a sweep over hosts: exit code" status_is 0
check "a sweep over hosts: 1, 2 and 3 of them" jq -es \
  '[.[] | select(.line == "trial") | .hosts | length] | sort == [1, 2, 3]' sweep.jsonl
check "a sweep over hosts: the answer" says '^From 1 to 3 hosts throughput rises '

mkdir peak sustain
fathom_hosts peak --local 3 sim:queue,servers=4,service-time=1ms --duration 500ms --warm-up 0s --official none --agent-results peak --out peak.jsonl
check "a peak over hosts: the setting that saturates each of them" says '^Queue depth 4 on each of 3 hosts \(12 in all\) saturates their targets: '
fathom_hosts sustain --local 2 sim:queue,servers=4,service-time=1ms,size=4m --queue-depth 4 --read-share 0% --duration 1s --warm-up 0s \
  --at-least 0s --precondition 1 --agent-results sustain --out sustain.jsonl
check "rounds over hosts: they are steady together" says '^Steady throughout: IOPS of random write 4 KiB, on 2 hosts, 7,992 IOPS in'

# One of three hosts says that it has another version.
cat >other-version <<END
#!/bin/sh
if mkdir "$FATHOM_BED/taken" 2>/dev/null; then
  "$fathom" "\$@" | sed -u 's/"fathom_version":"[^"]*"/"fathom_version":"9.9.9"/'
else
  exec "$fathom" "\$@"
fi
END
chmod +x other-version
mkdir refused
fathom_hosts run --local 3 sim:ssd --fathom-there "$FATHOM_BED/other-version" --agent-results "$FATHOM_BED/refused" --out refused.jsonl
check "another version: exit code" status_is 2 3
check "another version: it is named" says 'it has fathom 9\.9\.9 .* runs here: install the same version'
check "another version: nothing begins" bash -c '! ls refused.jsonl refused/*'

status=0
wait "$python_check" || status=$?
sed 's/^/  /' python-check.log
check "python/check: layout, types and tests of the package" status_is 0
left=$(sed -n 's/^SKIPPED //p' python-check.log)
[[ -z $left ]] || skip "some tests of the package" "$(tr '\n' ' ' <<<"$left")"
