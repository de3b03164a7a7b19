# The answers in e-divisive.txt: `pip install apache-otava==0.8.0`, then
# `python e-divisive.py < e-divisive.txt` prints the file again.
import sys

import numpy as np
from otava.change_point_divisive.calculator import PairDistanceCalculator
from otava.change_point_divisive.detector import ChangePointDetector
from otava.change_point_divisive.significance_test import PermutationsSignificanceTester

for line in sys.stdin:
    if line.startswith("#"):
        print(line, end="")
        continue
    name, values = line.split(":")[:2]
    series = np.array([float(value) for value in values.split()])
    first = PairDistanceCalculator(series).get_candidate_change_point(slice(None, None))
    tester = PermutationsSignificanceTester(
        max_pvalue=0.01, permutations=200, calculator=PairDistanceCalculator, seed=1
    )
    detector = ChangePointDetector(significance_tester=tester, calculator=PairDistanceCalculator)
    found = " ".join(str(point.index) for point in detector.get_change_points(series=series))
    print(f"{name}:{values}: {first.index}: {first.qhat!r}: {found}".rstrip())
