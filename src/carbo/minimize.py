"""`minimize` runs the whole optimisation in one call, like scipy.optimize and scikit-optimize."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from carbo.checks import limit_initial, resolve
from carbo.errors import DataError, SpaceExhausted
from carbo.settings import Settings
from carbo.space.space import Params, Space

if TYPE_CHECKING:  # modules that take long to import are imported in functions: `import carbo` stays fast
    from scipy.optimize import OptimizeResult

    from carbo.optimizer import Optimizer

    Callback = Callable[[OptimizeResult], Any]


def minimize(  # noqa: PLR0913
    fun: Callable[[Params], Any],
    space: Space,
    budget: int,
    *,
    seed: int | None = None,
    preset: str = "default",
    settings: Settings | Mapping[str, Any] | None = None,
    initial: int | Iterable[Mapping[str, Any]] | None = None,
    known: Iterable[tuple[Mapping[str, Any], Any]] = (),
    callback: Callback | Sequence[Callback] | None = None,
    catch: type[Exception] | tuple[type[Exception], ...] = (),
    replicate: bool | None = None,
) -> OptimizeResult:
    """Minimise fun(params) -> number over a space, with `budget` evaluations.

    fun         a function of a dict of names and values. It returns a number; None, NaN or infinity is a failed
                evaluation
    space       the search space, a `carbo.Space`
    budget      number of evaluations
    seed        a whole number; the same seed gives the same run. None: a different run each time
    preset      "default" (the best settings we know) or "paper" (COMBO as published)
    settings    a `carbo.Settings`, or a dict of the settings that differ from the preset
    initial     a list of points to evaluate first, or the number of random points that come first. Default: 20 random
                points, but at most a third of the budget
    known       (params, value) pairs that were evaluated before; they cost no budget
    callback    a function, or a list of functions, called with the result so far after every evaluation. The run stops
                if it returns True or raises StopIteration
    catch       an exception, or a tuple of them, that counts as a failed evaluation if fun raises it. Other exceptions
                end the run and are raised
    replicate   if True, at most every second evaluation may repeat an evaluated point: for noisy functions

    Returns a scipy OptimizeResult:
    x           the best point, a dict; fun: its value
    nfev        number of evaluations
    x_iters     all points; func_vals: their values, NaN for a failed evaluation
    success     False if no evaluation succeeded or the run was interrupted; message: why the run ended
    space, optimizer    the space, and the `carbo.Optimizer` of the run

    A KeyboardInterrupt ends the run: minimize returns the result so far, with success False.
    """
    if isinstance(budget, bool) or not isinstance(budget, numbers.Integral) or budget < 1:
        raise DataError(f"budget: expected a whole number of evaluations >= 1, got {budget!r}; 100 is a good start")
    if not callable(fun):
        raise DataError(f"fun: expected a function of a dict of parameters, got {fun!r}")
    chosen = limit_initial(resolve(preset, settings, replicate), settings, int(budget))
    _check_catch(catch)
    optimizer = _optimizer(space, seed, chosen, initial)
    _tell_known(optimizer, known)
    callbacks = [callback] if callable(callback) else _as_callbacks(() if callback is None else callback)
    progress = _Progress(optimizer)
    message, success = f"the budget of {budget} evaluations is used up", True
    try:
        while progress.evaluations < budget:
            try:
                params = optimizer.ask()
            except SpaceExhausted:
                message = space.rows.exhaustion
                break
            optimizer.tell(params, _evaluate(fun, params, catch))
            if any(_stops(one, progress) for one in callbacks):
                message = "stopped by the callback"
                break
    except KeyboardInterrupt:
        message, success = "interrupted; the result holds all finished evaluations", False
    return progress.result(message, success)


def _optimizer(
    space: Space, seed: int | None, settings: Settings, initial: int | Iterable[Mapping[str, Any]] | None
) -> Optimizer:
    from carbo.optimizer import Optimizer

    if isinstance(initial, int | np.integer):
        return Optimizer(space, seed=seed, settings=settings.changed({"initial": initial}))
    return Optimizer(space, seed=seed, settings=settings, initial=() if initial is None else initial)


def _tell_known(optimizer: Optimizer, known: Any) -> None:
    if not isinstance(known, Iterable):
        raise DataError(f"known: expected a list of (params, value) pairs, got {known!r}")
    for pair in known:
        if not isinstance(pair, Sequence) or len(pair) != 2 or not isinstance(pair[0], Mapping):
            raise DataError(f"known: expected (params, value) pairs, got {pair!r}")
        optimizer.tell(*pair)
        if not optimizer.space.feasible(optimizer.observations.X[-1:])[0]:
            raise DataError(f"known: expected points that the constraint permits, got {pair[0]}; leave it out")


def _as_callbacks(callbacks: Any) -> list[Callback]:
    each: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(callable(one) for one in each):
        raise DataError(f"callback: expected a function of the result so far, or a list of them, got {callbacks!r}")
    return each


def _check_catch(catch: Any) -> None:
    each = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(one, type) and issubclass(one, BaseException) for one in each):
        raise DataError(f"catch: expected an exception such as TimeoutError, or a tuple of them, got {catch!r}")


def _evaluate(fun: Callable[[Params], Any], params: Params, catch: Any) -> Any:
    try:
        return fun(dict(params))
    except catch:
        return None


class _Progress:
    """The evaluations of a run so far."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer, self._before = optimizer, len(optimizer)
        self._points: list[Params] = []  # decoded once: a callback needs them after every evaluation

    @property
    def evaluations(self) -> int:
        return len(self._optimizer) - self._before

    def result(self, message: str, success: bool) -> OptimizeResult:
        from scipy.optimize import OptimizeResult

        optimizer = self._optimizer
        best = optimizer.best
        X, values = optimizer.observations
        self._points += optimizer.space.decode_many(X[len(self._points) :])
        result = OptimizeResult()
        result.update(
            x=best.params if best else None,
            fun=best.value if best else np.nan,
            nfev=self.evaluations,
            x_iters=list(self._points),
            func_vals=values.copy(),
            success=success and best is not None,
            message=message if best else f"{message}; no evaluation succeeded",
            space=optimizer.space,
            optimizer=optimizer,
        )
        return result


def _stops(callback: Callback, progress: _Progress) -> bool:
    try:
        return callback(progress.result("running", True)) is True
    except StopIteration:
        return True
