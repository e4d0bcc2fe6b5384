"""Every knob of the engine as one immutable value, and the two presets."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from carbo.errors import SettingsError
from carbo.inference.priors import Priors
from carbo.space.graphs import Scale

if TYPE_CHECKING:
    from carbo.inference.gibbs import Sampling

KernelName = Literal["product", "orders"]
Acquisition = Literal["ei", "ucb", "mes", "kg", "thompson"]
Sampler = Literal["auto", "slice"]
Warp = Literal["auto", "none"]
Adjacency = Literal["auto", "always", "none"]
Reference = Literal["observed", "posterior"]
Search = Literal["local", "local-or-anneal", "local-and-anneal", "local-then-anneal"]


HIGHEST = 6
"""Largest order of interaction that the order kernel computes without losing digits."""
STANDARD = Priors(level="standard", noise="half-cauchy", beta="normal", beta_mean=-2.0, beta_sd=1.5, relevance="pooled")
"""The default preset's priors."""


@dataclass(frozen=True)
class Settings:
    """How suggestions are made. `dataclasses.replace(carbo.PAPER, acquisition="ucb")` gives a variant.

    kernel          "product" (the paper's) or "orders" (weighted by order of interaction)
    highest_order   of the "orders" kernel; product_term adds the full product to it
    warp            "auto": where the data ask for it, and all parameters are sampled at once (see `sampler`), the model
                    sees the logarithm of the worse half of the values (`selection`); "none": never
    adjacent        categories next to each other in the space (stages, stations, layers, positions) have parts of their
                    own in the "orders" kernel (`windows`) "auto": where the data ask for it, "always": from the
                    start, "none": never; and never where parameters are sampled one at a time (see `sampler`)
    graph_scale     "connectivity": beta means the same for any number of values; "published": the plain Laplacian
    priors          see carbo.priors.Priors
    sampler         "slice": one parameter at a time (Neal 2003; slice_width, doublings); "auto": all at once where
                    that is possible (kernel "orders" without product_term, priors of level "standard"), by
                    Hamiltonian trajectories of at most `leapfrogs` steps, and "slice" elsewhere
    samples         posterior samples a suggestion; burn_in sweeps or trajectories of a new chain
    learn_from, predict_from    most observations that the kernel's parameters are learned from, and that predictions
                    are made from; where there are more, those nearest to the best and a random rest (`subset`).
                    From 1,000 on, predictions average over fewer samples too, and the search scores fewer rows.
                    None: all of them, whatever it takes
    acquisition     "ei" (expected improvement, ranked by its logarithm), "kg" (`knowledge_gradient`),
                    "ucb", "mes", "thompson", or a function
                    (mu, sd, best) -> scores (N,), larger is better, of arrays (S, N), (S, N), (S,): S posterior
                    samples' means and standard deviations at N points, standardised; small means are good
    kappa           weight of the standard deviation in "ucb"
    reference       improvement counts from the best value "observed", or from the best "posterior" mean at an
                    evaluated point, which noise does not flatter
    search          "local" (breadth-first), or the paper's three mixtures with simulated annealing
    leaps           may a climber leap 2, 4, 8, ... levels along a path or cycle, or only step to the next?
    random_starts, spray_starts, spray_distance, climbers   where the search starts, and how many starts climb
    patience        after this many evaluations in a row without a better value, every other suggestion is a neighbour
                    of the best point, the one of largest acquisition, while any is left that is not likely to fail: a
                    model that is sure of something wrong would never look there. 0: never
    doubt           once the model expects so many improvements among the evaluations after the last one, given all the
                    others, two of three suggestions are changes, and pairs of changes, of the point where improvements
                    ended (`stall`); not where that is less than one in ten of them, nor in spaces scored
                    whole. 0: never
    exhaustive      spaces of at most this many points are scored whole
    initial         points drawn at random before the model is asked
    replicate       may a point be suggested again, every other time at most? For noisy functions
    threads         of the linear algebra; None: one, or from 600 observations on as many as the library takes
    """

    kernel: KernelName = "orders"
    highest_order: int = 3
    product_term: bool = False
    warp: Warp = "auto"
    adjacent: Adjacency = "auto"
    graph_scale: Scale = "connectivity"
    priors: Priors = STANDARD
    sampler: Sampler = "auto"
    leapfrogs: int = 10
    samples: int = 10
    burn_in: int = 100
    learn_from: int | None = 400
    predict_from: int | None = 2_000
    slice_width: float = 1.0
    doublings: int = 10
    acquisition: Acquisition | Callable[..., Any] = "ei"
    kappa: float = 2.0
    reference: Reference = "posterior"
    search: Search = "local"
    leaps: bool = True
    random_starts: int = 2_000
    spray_starts: int = 200
    spray_distance: int = 2
    climbers: int = 20
    patience: int = 4
    doubt: float = 4.0
    exhaustive: int = 4_096
    initial: int = 20
    replicate: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        _one_of("kernel", self.kernel, get_args(KernelName))
        _one_of("sampler", self.sampler, get_args(Sampler))
        _one_of("warp", self.warp, get_args(Warp))
        _one_of("adjacent", self.adjacent, get_args(Adjacency))
        _one_of("graph_scale", self.graph_scale, get_args(Scale))
        _one_of("reference", self.reference, get_args(Reference))
        _one_of("search", self.search, get_args(Search))
        if not callable(self.acquisition):
            _one_of("acquisition", self.acquisition, get_args(Acquisition), "or a function (mu, sd, best) -> scores")
        least = {"highest_order": 1, "samples": 1, "burn_in": 0, "leapfrogs": 1, "doublings": 0, "random_starts": 1,
                 "spray_starts": 0, "spray_distance": 1, "climbers": 1, "patience": 0, "exhaustive": 0,
                 "initial": 1}  # fmt: skip
        for key, low in least.items():
            object.__setattr__(self, key, _whole(key, getattr(self, key), low))
        for key in ("threads", "learn_from", "predict_from"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, _whole(key, getattr(self, key), 1))
        self._check_others()

    def _check_others(self) -> None:
        for key in ("product_term", "leaps", "replicate"):
            if not isinstance(getattr(self, key), bool):
                raise SettingsError(f"setting {key!r}: expected True or False, got {getattr(self, key)!r}")
        for key in ("slice_width", "kappa"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise SettingsError(f"setting {key!r}: expected a number > 0, got {value!r}")
        if isinstance(self.doubt, bool) or not isinstance(self.doubt, int | float) or not 0 <= self.doubt < math.inf:
            raise SettingsError(f"setting 'doubt': expected a number >= 0, got {self.doubt!r}")
        if self.highest_order > HIGHEST:
            raise SettingsError(
                f"setting 'highest_order': expected at most {HIGHEST}, beyond which rounding spoils the kernel, "
                f"got {self.highest_order}; product_term=True adds all orders at once"
            )
        if not isinstance(self.priors, Priors):
            raise SettingsError(f"setting 'priors': expected a carbo.priors.Priors, got {self.priors!r}")

    @property
    def warps(self) -> bool:
        return self.warp == "auto" and self.sampling.leapfrogs > 0

    @property
    def adjoins(self) -> bool:
        return self.adjacent != "none" and self.sampling.leapfrogs > 0

    @property
    def sampling(self) -> Sampling:
        from carbo.inference.gibbs import Sampling  # here, for the sake of commands that only read settings

        smooth = self.kernel == "orders" and not self.product_term and self.priors.level == "standard"
        leapfrogs = self.leapfrogs if self.sampler == "auto" and smooth else 0
        return Sampling(self.samples, self.burn_in, self.slice_width, self.doublings, leapfrogs)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an acquisition that is a function cannot be written and becomes None."""
        values = dataclasses.asdict(dataclasses.replace(self, acquisition="ei"))
        return {**values, "acquisition": None if callable(self.acquisition) else self.acquisition}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """The inverse of to_dict. Raises SettingsError for a name it does not know."""
        return DEFAULT.changed(values)

    @classmethod
    def from_saved(cls, values: Mapping[str, Any]) -> Settings:
        """Settings that this or an earlier version of carbo wrote with to_dict, read with the tables SINCE and GONE.

        Raises SettingsError for a setting that is missing or unknown, and for a deleted setting that had another value
        than the one that is left.
        """
        named = {**SINCE, **_dotted(values)}
        for name in GONE.keys() & named.keys():
            if not implied(name, named[name]):
                raise SettingsError(f"setting {name!r}: it is gone; expected {GONE[name]!r}, the only value left, got "
                                    f"{named[name]!r}; go on with the version of carbo that saved it")  # fmt: skip
            del named[name]
        missing = sorted(_dotted(DEFAULT.to_dict()).keys() - named.keys())
        if missing:
            raise SettingsError(f"saved settings: expected {missing[0]!r} among them, got none of that name")
        return DEFAULT.changed(_nested(named))

    def changed(self, values: Mapping[str, Any]) -> Settings:
        """These settings with some values changed; "priors" may be a mapping of some priors."""
        given = {key: value for key, value in values.items() if _known("setting", key, self)}
        if given.get("acquisition", "") is None:
            raise SettingsError("setting 'acquisition': expected a name, got None: it was a function, which cannot be "
                                "saved; pass the settings with that function again")  # fmt: skip
        priors = given.get("priors")
        if isinstance(priors, Mapping):
            some: dict[str, Any] = {k: v for k, v in priors.items() if _known("prior", k, self.priors)}
            some |= {k: tuple(v) for k, v in some.items() if isinstance(v, list)}
            given["priors"] = dataclasses.replace(self.priors, **some)
        return dataclasses.replace(self, **given)


SINCE: dict[str, Any] = {
    "threads": None,
    "leaps": False,
    "sampler": "slice",
    "leapfrogs": 10,
    "warp": "none",
    "patience": 0,
    "learn_from": None,
    "predict_from": None,
    "adjacent": "none",
    "doubt": 0.0,
}
"""Settings that were added later, with the value that stands for "not there yet": saved settings that do not name the
setting have this value. Priors have dotted names, such as "priors.beta_sd". Add every new setting here."""

GONE: dict[str, Any] = {}
"""Settings that were deleted, with the value that the code now always has. Priors have dotted names. Move every deleted
setting here; no name is in both tables."""


def implied(name: str, value: Any) -> bool:
    """Whether saved settings mean the same when this setting is left out. A prior is named with a dot."""
    plain = tuple(value) if isinstance(value, list) else value
    return any(name in table and plain == table[name] for table in (SINCE, GONE))


def _dotted(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, each prior by its dotted name. SettingsError for values that are no settings."""
    priors = values.get("priors") if isinstance(values, Mapping) else None
    if not isinstance(priors, Mapping):
        raise SettingsError(f"saved settings: expected an object with an object 'priors' in it, got {values!r:.60}")
    own = {key: value for key, value in values.items() if key != "priors"}
    return own | {f"priors.{key}": value for key, value in priors.items()}


def _nested(named: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of _dotted."""
    own = {key: value for key, value in named.items() if not key.startswith("priors.")}
    return own | {"priors": {key[7:]: value for key, value in named.items() if key.startswith("priors.")}}


def _known(what: str, key: str, of: Any) -> bool:
    names = sorted(f.name for f in dataclasses.fields(of))
    if key not in names:
        raise SettingsError(f"{what} {key!r}: no such {what}; expected one of {', '.join(names)}")
    return True


def _whole(key: str, value: Any, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise SettingsError(f"setting {key!r}: expected a whole number >= {low}, got {value!r}")
    return int(value)


def _one_of(key: str, value: object, allowed: tuple[str, ...], more: str = "") -> None:
    if value not in allowed:
        raise SettingsError(
            f"setting {key!r}: expected one of {', '.join(allowed)} {more}".rstrip() + f", got {value!r}"
        )


DEFAULT = Settings()
"""The best we know: orders of interaction up to three, relevances whose spread the data tell, log EI."""

PAPER = Settings(
    kernel="product",
    warp="none",
    adjacent="none",
    sampler="slice",
    graph_scale="published",
    priors=Priors(),
    learn_from=None,
    predict_from=None,
    reference="observed",
    leaps=False,
    random_starts=20_000,
    spray_starts=20,
    patience=0,
    doubt=0.0,
)
"""COMBO as published: product kernel, Horseshoe on beta, EI over 10 slice samples, 20,020 starts, 20 climbers."""

PRESETS = {"default": DEFAULT, "paper": PAPER}


def preset(name: str) -> Settings:
    """The settings of that name. Raises SettingsError for any other."""
    _one_of("preset", name, tuple(PRESETS))
    return PRESETS[name]
