"""The paper's printed numbers: mean ± standard error of the best value after the whole budget.

The numbers are those of the supplement, which has four decimals. The main text rounds the same numbers, with three
exceptions on contamination control. SMAC has 21.61 ± 0.04 for lambda = 0 (the supplement: 21.4644 ± 0.0312) and
21.68 ± 0.04 for 1e-2 (21.6512 ± 0.0403). BOCS-SDP has an error of 0.03 for lambda = 0 (the supplement: 0.0246).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

RUNS, NAS_RUNS = 25, 4
COMBO = "COMBO"
DECIMALS = 4


class Printed(NamedTuple):
    """A printed number; smaller is better."""

    mean: float
    error: float
    """Standard error of the mean."""
    runs: int = RUNS


@dataclass(frozen=True)
class Column:
    """A problem as a column of tables."""

    problem: str
    title: str
    printed: Mapping[str, Printed] = field(default_factory=dict)
    """The paper's name of a method -> its number; {} where the paper has none."""
    variant: bool = False
    """Whether this is a problem with another graph or other data: shown only where it was run, and never ranked."""
    shown_with: str = ""
    """A related problem, whose printed numbers are shown in the same table; "" for none."""
    note: str = ""
    short: str = ""
    """A short title."""


class Block(NamedTuple):
    """The columns of one table."""

    name: str
    title: str
    columns: tuple[Column, ...]


COUNTERPARTS = {
    COMBO: "paper",
    "COMBO/GM": "combo-gm",
    "SA": "annealing",
    "SMAC": "smac",
    "TPE": "tpe-hyperopt",
    "BOCS-SDP": "bocs-sdp",
    "BOCS-SA3": "bocs-sa3",
    "RS": "random",
    "RE": "evolution",
}
"""The paper's name of a method -> the name of the same method in the laboratory."""


def _column(problem: str, titles: tuple[str, str], numbers: str, runs: int = RUNS, note: str = "") -> Column:
    """`titles`: long and short; `numbers`: lines of method, mean and standard error."""
    lines = [line.split() for line in numbers.strip().splitlines()]
    printed = {method: Printed(float(mean), float(error), runs) for method, mean, error in lines}
    return Column(problem, titles[0], printed, note=note, short=titles[1])


def _variant(column: Column, problem: str, titles: tuple[str, str], note: str) -> Column:
    return Column(problem, titles[0], column.printed, variant=True, note=note, short=titles[1])


_BINARY = (
    _column("contamination-0", ("Contamination λ=0", "cont. 0"), """
        SMAC      21.4644  0.0312
        TPE       21.6408  0.0437
        SA        21.4704  0.0366
        BOCS-SDP  21.3748  0.0246
        COMBO     21.2752  0.0292
    """),
    _column("contamination-1e-4", ("Contamination λ=1e-4", "cont. 1e-4"), """
        SMAC      21.5011  0.0329
        TPE       21.6868  0.0406
        SA        21.4871  0.0372
        BOCS-SDP  21.3792  0.0296
        COMBO     21.2784  0.0314
    """),
    _column("contamination-1e-2", ("Contamination λ=1e-2", "cont. 1e-2"), """
        SMAC      21.6512  0.0403
        TPE       21.8440  0.0422
        SA        21.6120  0.0385
        BOCS-SDP  21.5232  0.0269
        COMBO     21.4436  0.0293
    """),
    _column("ising-0", ("Ising λ=0", "Ising 0"), """
        SMAC       0.1516  0.0404
        TPE        0.4039  0.1087
        SA         0.0953  0.0331
        BOCS-SDP   0.1049  0.0308
        COMBO      0.1030  0.0351
    """),
    _column("ising-1e-4", ("Ising λ=1e-4", "Ising 1e-4"), """
        SMAC       0.2192  0.0522
        TPE        0.4437  0.0952
        SA         0.1166  0.0353
        BOCS-SDP   0.0586  0.0125
        COMBO      0.0812  0.0279
    """),
    _column("ising-1e-2", ("Ising λ=1e-2", "Ising 1e-2"), """
        SMAC       0.3501  0.0447
        TPE        0.6091  0.1071
        SA         0.3342  0.0636
        BOCS-SDP   0.3001  0.0389
        COMBO      0.3166  0.0420
    """),
)  # fmt: skip
_BRANIN = _column("branin", ("Branin", "Branin"), """
        SMAC       0.6962  0.0705
        TPE        0.7578  0.0844
        SA         0.4659  0.0211
        COMBO      0.4113  0.0012
""", note="the paper's starting points are not on record: ours are drawn the same way from another seed")  # fmt: skip
_PEST = _column("pest-control", ("Pest control", "pest"), """
        SMAC      14.2614  0.0753
        TPE       14.9776  0.0446
        SA        12.7154  0.0918
        COMBO     12.0012  0.0033
""", note="every evaluation is noisy, and the best *observed* value counts, as in the paper; the default preset, told "
          "so, may evaluate points again. The paper's own runs took the five choices as ordered, here they are "
          "categories. The best setting known, the third pesticide at all stations but the last, is worth 12.0085, the "
          "same with the fourth 12.0493; single evaluations scatter by 0.0233, so that means of a few runs differ "
          "by luck. The paper preset ends at the fourth's in all its runs and sees it once; the printed "
          "12.0012 is what the least of thirty draws of it would be, or one draw of the third's. See Noise in "
          "[experiments.md](experiments.md)")  # fmt: skip
_OTHER = (
    _BRANIN,
    _variant(_BRANIN, "branin-published", ("Branin (paper's graph)", "Branin (paper)"),
             "paths whose edges weigh 50, as in the paper"),
    _PEST,
    _variant(_PEST, "pest-control-path", ("Pest control (path graphs)", "pest (path)"),
             "the five choices in a row, as in the paper"),
)  # fmt: skip
_MAXSAT = (
    _column("maxsat28", ("wMaxSAT28", "SAT28"), """
        SMAC      -20.0530  0.6735
        TPE       -25.2010  0.8750
        SA        -31.8060  1.1929
        BOCS-SDP  -29.4865  0.5348
        BOCS-SA3  -34.7915  0.7814
        COMBO     -37.7960  0.2662
    """),
    _column("maxsat43", ("wMaxSAT43", "SAT43"), """
        SMAC      -57.4217  1.7614
        TPE       -52.3856  1.9898
        SA        -75.7582  2.3048
        BOCS-SDP  -51.1265  1.6903
        BOCS-SA3  -61.0186  2.2812
        COMBO     -85.0155  2.1390
    """, note="the paper's BOCS-SA3 had not finished its 270 evaluations after 168 hours"),
    _column("maxsat60", ("wMaxSAT60", "SAT60"), """
        SMAC     -148.6020  1.0135
        TPE      -137.2104  2.8296
        SA       -187.5506  1.4962
        BOCS-SDP -153.6722  2.0096
        COMBO/GM -152.0745  8.5167
        COMBO    -195.6527  0.0000
    """, note="with standardised weights the all-false point is the best one: the relocated form and raw weights say "
              "more"),
)  # fmt: skip
_NAS = (
    _column("nas-cifar10", ("Architecture search, CIFAR-10", "NAS"), """
        RS         0.1969  0.0011
        BOCS-SDP   0.1978  0.0017
        RE         0.1895  0.0016
        COMBO      0.1846  0.0005
    """, runs=NAS_RUNS, note="4 runs in the paper; RE with 500 evaluations instead of 260: 0.1888 ± 0.0019"),
    Column("nas-digits", "Architecture search, digits", variant=True, shown_with="nas-cifar10", short="NAS digits",
           note="scikit-learn's 8×8 digits, which take seconds to learn, through the same network; the paper's numbers "
                "are of CIFAR-10, another data set, and not to be compared with ours"),
)  # fmt: skip

BLOCKS = (
    Block("binary", "Binary problems", _BINARY),
    Block("other", "Ordinal and categorical problems", _OTHER),
    Block("maxsat", "Weighted MaxSAT", _MAXSAT),
    Block("nas", "Neural architecture search", _NAS),
)
"""The paper's tables."""
COLUMNS = {column.problem: column for block in BLOCKS for column in block.columns}
