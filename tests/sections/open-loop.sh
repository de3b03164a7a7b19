# open-loop.sh: on a real file an open loop starts as many I/Os as are offered, whatever completes.
source "$FATHOM_ROOT/tests/lib.sh"
require jq

run_fathom prepare data --size 64m
check "a file is prepared" status_is 0

reaches "2000 per second, uniform: achieved within 0.1 % of what fell due" 0.999 1 \
  measure 'ledger | (.completed + .completed_in_warm_up) / .due' \
  data -b 4k --rate 2k --arrivals uniform --warm-up 1s -d 10s
check "2000 per second, uniform: due is exactly what was offered" \
  between "$(trial 'ledger.due')" 21999 22001

# The standard error of a Poisson count is its square root.
reaches "2000 per second, Poisson: achieved within 0.1 % of what fell due" 0.999 1 \
  measure 'ledger | (.completed + .completed_in_warm_up) / .due' \
  data -b 4k --rate 2k --arrivals poisson --warm-up 1s -d 10s --seed 1
check "2000 per second, Poisson: offered within 3 standard errors" \
  between "$(trial 'ledger.due')" 21555 22445

reaches "20 MiB/s by two workers: achieved within 1 %" 19.8 20.2 \
  measure 'bytes / seconds / 1048576' data -b 64k --rate 20MiB/s \
  --arrivals uniform --read-share 50% --overwrite --warm-up 0s -d 4s -w 2
