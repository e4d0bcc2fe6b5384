"""All settings as one immutable value, the two presets, and the meaning of old saved settings."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from carbo.errors import SettingsError
from carbo.inference.priors import SUPPORTS, Priors, Supports
from carbo.space.graphs import Scale

if TYPE_CHECKING:
    from carbo.inference.data import Sampling

Warp = Literal["auto", "none"]
Adjacency = Literal["auto", "always", "none"]
Reference = Literal["observed", "posterior"]

HIGHEST = 6
"""Largest order of interaction that the order kernel computes without losing digits."""
STANDARD = Priors(level="standard", beta="normal", beta_mean=-2.0, beta_sd=1.5)
"""The priors of the default preset."""


@dataclass(frozen=True)
class Settings:
    """The settings of an optimiser. `dataclasses.replace(carbo.PAPER, acquisition="ucb")` gives a variant of a preset.

    kernel          "product" (the paper's) or "orders" (a sum over orders of interaction)
    highest_order   highest order of interaction in the "orders" kernel, 1 to 6
    warp            "auto": the model may take the logarithm of the worse half of the values, if that fits the data
                    better; "none": never
    adjacent        parts of the "orders" kernel for categorical variables that stand next to each other in the space
                    (stages, layers, positions). "auto": if they fit the data better; "always": from the start; "none"
    graph_scale     "connectivity": beta means the same for any number of values; "published": the plain Laplacian
    priors          priors of the kernel's parameters, see `carbo.inference.priors.Priors`
    samples         number of posterior samples for each suggestion
    burn_in         number of sweeps or trajectories before the first sample of a new chain
    learn_from      largest number of observations from which the kernel's parameters are learned; None: all
    predict_from    largest number of observations from which predictions are made; None: all. If there are more, the
                    model uses those nearest to the best points and a random half
    acquisition     "ei" (expected improvement), "ucb" (confidence bound), or a function (mu, sd, best) -> scores (N,).
                    mu and sd (S, N) are means and standard deviations of S posterior samples at N points, and best (S,)
                    is the value to improve on, all standardised. Small means are good, large scores are good
    reference       the value to improve on: the best "observed" value, or the best "posterior" mean at an evaluated
                    point, which is better for noisy functions
    leaps           if True, the search also moves 2, 4, 8, ... levels at once along a path or cycle
    random_starts   number of random points where the search starts
    spray_starts    number of points near the best one where the search starts
    climbers        number of starts, the best ones, that climb to a local maximum of the acquisition
    doubt           the model is doubted after it has promised this many improvements that did not come. Then two of
                    three suggestions change one or two variables of the best point (docs/model.md). 0: never
    exhaustive      in spaces of at most this many points, all points are scored
    initial         number of random points before the model makes suggestions
    replicate       if True, at most every second suggestion may repeat an evaluated point: for noisy functions
    threads         number of threads of the linear algebra; None: one below 600 observations, then the library's choice
    """

    kernel: str = "orders"
    highest_order: int = 3
    warp: Warp = "auto"
    adjacent: Adjacency = "auto"
    graph_scale: Scale = "connectivity"
    priors: Priors = STANDARD
    samples: int = 10
    burn_in: int = 100
    learn_from: int | None = 400
    predict_from: int | None = 2_000
    acquisition: str | Callable[..., Any] = "ei"
    reference: Reference = "posterior"
    leaps: bool = True
    random_starts: int = 2_000
    spray_starts: int = 200
    climbers: int = 20
    doubt: float = 4.0
    exhaustive: int = 4_096
    initial: int = 20
    replicate: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        _check_one_of("warp", self.warp, get_args(Warp))
        _check_one_of("adjacent", self.adjacent, get_args(Adjacency))
        _check_one_of("graph_scale", self.graph_scale, get_args(Scale))
        _check_one_of("reference", self.reference, get_args(Reference))
        if not isinstance(self.acquisition, str) and not callable(self.acquisition):
            raise SettingsError(f"setting 'acquisition': expected a name or a function (mu, sd, best) -> scores, "
                                f"got {self.acquisition!r}")  # fmt: skip
        least = {"highest_order": 1, "samples": 1, "burn_in": 0, "random_starts": 1,
                 "spray_starts": 0, "climbers": 1, "exhaustive": 0,
                 "initial": 1}  # fmt: skip
        for key, low in least.items():
            object.__setattr__(self, key, _as_whole(key, getattr(self, key), low))
        for key in ("threads", "learn_from", "predict_from"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, _as_whole(key, getattr(self, key), 1))
        self._check_others()

    def _check_others(self) -> None:
        for key in ("leaps", "replicate"):
            if not isinstance(getattr(self, key), bool):
                raise SettingsError(f"setting {key!r}: expected True or False, got {getattr(self, key)!r}")
        if isinstance(self.doubt, bool) or not isinstance(self.doubt, int | float) or not 0 <= self.doubt < math.inf:
            raise SettingsError(f"setting 'doubt': expected a number >= 0, got {self.doubt!r}")
        if self.highest_order > HIGHEST:
            raise SettingsError(
                f"setting 'highest_order': expected at most {HIGHEST}, beyond which rounding spoils the kernel, "
                f"got {self.highest_order}"
            )
        if not isinstance(self.priors, Priors):
            raise SettingsError(f"setting 'priors': expected a Priors, got {self.priors!r}")

    @property
    def sampling(self) -> Sampling:
        """The settings `samples` and `burn_in`."""
        from carbo.inference.data import Sampling  # imported late: commands that only read settings start faster

        return Sampling(self.samples, self.burn_in)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values. An acquisition that is a function cannot be saved and becomes None."""
        values = dataclasses.asdict(dataclasses.replace(self, acquisition="ei"))
        return {**values, "acquisition": None if callable(self.acquisition) else self.acquisition}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """The inverse of to_dict. Raises SettingsError for an unknown name."""
        return DEFAULT.changed(values)

    @classmethod
    def from_saved(cls, values: Mapping[str, Any]) -> Settings:
        """Settings that this or an earlier version of carbo wrote with to_dict, read with the tables SINCE and GONE.

        Raises SettingsError for a missing or unknown setting, and for a deleted setting whose saved value is no longer
        supported.
        """
        named = {**SINCE, **flatten(values)}
        for name in GONE.keys() & named.keys():
            if not is_implied(name, named) and name not in DROPPED:
                raise SettingsError(
                    f"setting {name!r}: it is gone; expected {_remaining_value(name, named)!r}, the only value left, "
                    f"got {named[name]!r}; go on with the version of carbo that saved it"
                )
        named = {name: value for name, value in named.items() if name not in GONE}
        missing = sorted(flatten(DEFAULT.to_dict()).keys() - named.keys())
        if missing:
            raise SettingsError(f"saved settings: expected {missing[0]!r} among them, got none of that name")
        return DEFAULT.changed(unflatten(named))

    def changed(self, values: Mapping[str, Any]) -> Settings:
        """These settings with some values changed; "priors" may be a mapping of some priors."""
        given = {key: value for key, value in values.items() if _check_name("setting", key, self)}
        if given.get("acquisition", "") is None:
            raise SettingsError("setting 'acquisition': expected a name, got None: it was a function, which cannot be "
                                "saved; pass the settings with that function again")  # fmt: skip
        priors = given.get("priors")
        if isinstance(priors, Mapping):
            some: dict[str, Any] = {k: v for k, v in priors.items() if _check_name("prior", k, self.priors)}
            if isinstance(some.get("supports"), Sequence):  # JSON's lists
                some["supports"] = Supports(*map(tuple, some["supports"]))
            given["priors"] = dataclasses.replace(self.priors, **some)
        return dataclasses.replace(self, **given)


SINCE: dict[str, Any] = {
    "threads": None,
    "leaps": False,
    "warp": "none",
    "learn_from": None,
    "predict_from": None,
    "adjacent": "none",
    "doubt": 0.0,
    "priors.supports": SUPPORTS,
}
"""Settings that were added later, each with the value that means what carbo did before. Saved settings that do not name
the setting have this value. Priors have dotted names, such as "priors.beta_sd". Add every new setting here."""

GONE: dict[str, Any] = {
    "patience": 0,
    "product_term": False,
    "sampler": lambda named: "slice" if named.get("kernel") == "product" else "auto",
    "leapfrogs": 10,
    "slice_width": 1.0,
    "doublings": 10,
    "kappa": 2.0,
    "search": "local",
    "spray_distance": 2,
    "priors.beta_tau": 5.0,
    "priors.noise": lambda named: "published" if named.get("priors.level") == "published" else "half-cauchy",
    "priors.relevance": lambda named: "horseshoe" if named.get("priors.level") == "published" else "pooled",
    "priors.beta_support": SUPPORTS.beta,
    "priors.noise_support": SUPPORTS.noise,
    "priors.weight_support": SUPPORTS.weight,
    "priors.relevance_support": SUPPORTS.relevance,
}
"""Settings that no longer exist, with the only value that carbo still supports, or a function of the other saved
settings that returns this value. Priors have dotted names. Move every deleted setting here; no name is in both tables.
"""


DROPPED = ("patience",)
"""Deleted settings of which any other value is read too, and dropped. An optimiser that was saved with such a setting
goes on without it, and its suggestions may differ."""


def is_implied(name: str, named: Mapping[str, Any]) -> bool:
    """Whether saved settings, by dotted names, mean the same without the setting `name`."""
    value = _tuples_as_lists(named[name])
    if name in GONE and value == _tuples_as_lists(_remaining_value(name, named)):
        return True
    return name in SINCE and bool(value == _tuples_as_lists(SINCE[name]))


def _remaining_value(name: str, named: Mapping[str, Any]) -> Any:
    """The only value of a deleted setting that is still supported."""
    return GONE[name](named) if callable(GONE[name]) else GONE[name]


def _tuples_as_lists(value: Any) -> Any:
    """The value with lists in place of tuples, as in JSON."""
    return [_tuples_as_lists(each) for each in value] if isinstance(value, list | tuple) else value


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, each prior by its dotted name. Raises SettingsError if `values` is no dict of settings."""
    priors = values.get("priors") if isinstance(values, Mapping) else None
    if not isinstance(priors, Mapping):
        raise SettingsError(f"saved settings: expected an object with an object 'priors' in it, got {values!r:.60}")
    own = {key: value for key, value in values.items() if key != "priors"}
    return own | {f"priors.{key}": value for key, value in priors.items()}


def unflatten(named: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten`."""
    own = {key: value for key, value in named.items() if not key.startswith("priors.")}
    return own | {"priors": {key[7:]: value for key, value in named.items() if key.startswith("priors.")}}


def _check_name(what: str, key: str, of: Any) -> bool:
    names = sorted(f.name for f in dataclasses.fields(of))
    if key in GONE and key not in names:
        raise SettingsError(f"{what} {key!r}: expected one of this version, got one that was deleted; leave it out")
    if key not in names:
        raise SettingsError(f"{what} {key!r}: no such {what}; expected one of {', '.join(names)}")
    return True


def _as_whole(key: str, value: Any, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise SettingsError(f"setting {key!r}: expected a whole number >= {low}, got {value!r}")
    return int(value)


def _check_one_of(key: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SettingsError(f"setting {key!r}: expected one of {', '.join(allowed)}, got {value!r}")


DEFAULT = Settings()
"""The best settings we know: interactions up to order three, learned relevances of variables, log EI."""

PAPER = Settings(
    kernel="product",
    warp="none",
    adjacent="none",
    graph_scale="published",
    priors=Priors(),
    learn_from=None,
    predict_from=None,
    reference="observed",
    leaps=False,
    random_starts=20_000,
    spray_starts=20,
    doubt=0.0,
)
"""COMBO as published: product kernel, Horseshoe on beta, EI over 10 slice samples, 20,020 starts, 20 climbers."""

PRESETS = {"default": DEFAULT, "paper": PAPER}


def preset(name: str) -> Settings:
    """The preset of that name. Raises SettingsError for an unknown name."""
    _check_one_of("preset", name, tuple(PRESETS))
    return PRESETS[name]
