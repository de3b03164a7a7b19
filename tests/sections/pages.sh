# pages.sh: every kind of report in a browser, on a desk and on a phone, light and dark: nothing that axe-core
# finds, no label that is cut off or covers another, and inputs that answer.
source "$FATHOM_ROOT/tests/lib.sh"
require chromium npm

# The rules of accessibility, from npm.
AXE=axe-core@4.11.0
timeout 120 npm pack --silent "$AXE" >/dev/null 2>&1 || cannot_run "npm cannot fetch $AXE"
tar -xzf axe-core-*.tgz package/axe.min.js

# A report of each kind.
short=(--duration 1s --seed 1)
run_fathom quick sim:ssd "${short[@]}" --out quick.jsonl
run_fathom run sim:ssd --read-share 70% --rate 20k "${short[@]}" --out run.jsonl
run_fathom run sim:ssd --read-share 70% --rate 20k --duration 1s --seed 2 --out again.jsonl
run_fathom sweep sim:ssd --axis queue-depth=1..12 --axis block-size=4k,16k,64k --yes -d 200ms --out sweep.jsonl
run_fathom peak sim:ssd "${short[@]}" --official 2s --yes --out peak.jsonl
run_fathom map sim:grid --seed 1 --yes --out map.jsonl
run_fathom sustain sim:ssd "${short[@]}" --at-least 5s --rounds 6 --yes --out sustain.jsonl
run_fathom ab 'sim:ssd -q 4' 'sim:ssd -q 8' "${short[@]}" --yes --out ab.jsonl
run_fathom study multi-stream sim:array,disks=1 sim:array,disks=4 -d 200ms --warm-up 0 --repeats 1 --yes \
  --out study.jsonl

# A page with axe-core and the checks in it, in a frame of a screen's width. The policy of the page allows no
# other script, so it is left out here.
framed() { # NAME WIDTH
  {
    sed '/http-equiv="Content-Security-Policy"/d' "$1.html"
    echo "<script>"
    cat package/axe.min.js
    echo "</script><script>"
    cat "$FATHOM_ROOT/tests/pages/check.js"
    echo "</script>"
  } >"$1-checked.html"
  cat >"$1-frame.html" <<HTML
<!DOCTYPE html><html lang="en"><head><meta name="color-scheme" content="light dark"><title>$1</title></head><body>
<pre id="found"></pre><iframe src="$1-checked.html" title="$1" width="$2" height="2000"></iframe>
<script>addEventListener('message', (event) => { document.getElementById('found').textContent = event.data; });</script>
</body></html>
HTML
}

# What the checks found: their lines are in $out.
looked_at() { # NAME WIDTH [OPTIONS OF CHROMIUM]
  framed "$1" "$2"
  timeout --kill-after=5 180 chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=90000 \
    --user-data-dir="$FATHOM_BED/chromium" --window-size=1300,2000 "${@:3}" --dump-dom \
    "file://$FATHOM_BED/$1-frame.html" 2>/dev/null | sed -n '/<pre id="found">/,/<\/pre>/p' |
    sed -e 's/.*<pre id="found">//; s/<\/pre>.*//; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' >"$out"
  cat "$out"
}
all_is_well() { grep -qx end "$out" && ! grep -v -e ': ok$' -e '^end$' "$out"; }

mkdir results
cp run.jsonl again.jsonl results
run_fathom compare run.jsonl again.jsonl --html compare.html
run_fathom history results --html history.html

check_page() { # NAME SCREEN COLORS
  local width=1200 options=()
  [[ $2 = desk ]] || width=390
  [[ $3 = light ]] || options=(--force-dark-mode)
  looked_at "$1" "$width" "${options[@]}"
  check "$1, $2, $3" all_is_well
}
for name in quick run sweep peak map study sustain ab compare history; do
  [[ -e $name.html ]] || run_fathom report "$name.jsonl" --html "$name.html"
  check "$name: there is a page" test -s "$name.html"
  check_page "$name" phone light
  check_page "$name" desk dark
done
for name in quick run sweep peak map study; do
  check_page "$name" desk light
  check_page "$name" phone dark
done
