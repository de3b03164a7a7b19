"""Writes student.csv and holm.csv: what scipy and statsmodels make of two groups of figures.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy scipy statsmodels
    /tmp/venv/bin/python agree.py

All tests are on logarithms: Welch's t, Student's t with a pooled variance and the paired t of
scipy, the two one-sided tests of statsmodels with a margin of 5 %, and the Holm procedure of
statsmodels. Of two separate groups the table has the more careful of the first two.
"""

import numpy
import scipy
import statsmodels
from scipy.stats import ttest_ind, ttest_rel
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

VERSIONS = f"# scipy {scipy.__version__}, statsmodels {statsmodels.__version__}: written by agree.py\n"
MARGIN = numpy.log(1.05)
chance = numpy.random.default_rng(19)


def numbers(values):
    return " ".join(repr(round(float(value), 6)) for value in values)


def group(count, level, scatter):
    return numpy.round(level * numpy.exp(scatter * chance.standard_normal(count)), 6)


with open("student.csv", "w") as file:
    file.write(VERSIONS + "design,a,b,p,degrees,low,high,tost_p\n")
    for sizes in [(2, 2), (3, 3), (3, 7), (5, 5), (10, 10), (20, 4), (20, 20)]:
        for scatters in [(0.01, 0.01), (0.015, 0.04), (0.1, 0.02)]:
            for ratio in [1.0, 1.02, 0.9]:
                a, b = group(sizes[0], 1000, scatters[0]), group(sizes[1], 1000 * ratio, scatters[1])
                for design in ["separate", "paired"]:
                    if design == "paired" and sizes[0] != sizes[1]:
                        continue
                    one, other = numpy.log(b), numpy.log(a)
                    if design == "paired":
                        results = [ttest_rel(one, other)]
                        tosts = [ttost_paired(one, other, -MARGIN, MARGIN)[0]]
                    else:
                        results = [ttest_ind(one, other, equal_var=pooled) for pooled in [False, True]]
                        tosts = [
                            ttost_ind(one, other, -MARGIN, MARGIN, usevar=usevar)[0]
                            for usevar in ["unequal", "pooled"]
                        ]
                    ends = [numpy.exp(result.confidence_interval(0.95)) for result in results]
                    figures = [
                        max(result.pvalue for result in results),
                        results[0].df,
                        min(low for low, _ in ends),
                        max(high for _, high in ends),
                        max(tosts),
                    ]
                    figures = ",".join(repr(float(one)) for one in figures)
                    file.write(f"{design},{numbers(a)},{numbers(b)},{figures}\n")

with open("holm.csv", "w") as file:
    file.write(VERSIONS + "p,is_rejected\n")
    for count in [1, 2, 3, 5, 7, 12]:
        for power in [1, 3, 6]:
            p = numpy.round(chance.uniform(size=count) ** power, 6)
            rejected = multipletests(p, 0.05, method="holm")[0]
            file.write(f"{numbers(p)},{' '.join(str(int(one)) for one in rejected)}\n")
