#!/bin/sh
# Runs a load and sets it against the baseline; the first run becomes the baseline.
# Exit code: 0 no regression, 1 a regression, 3 no verdict, 2 an error.
set -eu
wearmark oltp run ci-load --workload commit --rows 1000 --users 4 --warmup 0s \
    --duration "${DURATION:-5s}" --no-capture --repeat 5 --save new.json --quiet
[ -d baseline ] || { mkdir baseline; cp new.json baseline/runs.json; }
wearmark compare baseline new.json --bound "${BOUND:-0.1}" --markdown comment.md --junit report.xml
