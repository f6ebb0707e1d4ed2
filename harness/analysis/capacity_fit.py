"""Fitting the capacity model: choice of its form, parameters, their uncertainty, and errors on held-out points.

Logarithms of rates are fitted by least squares, weighted with their own errors. Each parameter's logarithm has a wide
normal prior, so that what the data do not tell stays finite; the uncertainty is sampled by *randomise-then-optimise*
(Bardsley et al., SIAM J. Sci. Comput. 36 (2014) A1895): data and prior centres are drawn anew and the model is fitted
again, so a parameter that the data do not tell spreads over its whole prior instead of staying where it began.
Forms are compared by the squared error of predicting each point from all others, linearised: with the leverage h of a
point its residual r becomes r / (1 - h) once it is left out (PRESS; Allen, Technometrics 16 (1974) 125). It agrees with
Akaike's criterion for many points (Stone, J. R. Stat. Soc. B 39 (1977) 44) and does not break down for few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from harness.analysis.capacity import Group, Observation
from harness.analysis.capacity_lanes import Design, Floats, Form, Setting, predict

#: Relative error that every rate is given at least: what no model of this kind can promise to explain.
FLOOR = 0.01
#: A form whose criterion lies so far above the best is not believed any more; nor are more than so many.
BELIEVED, MOST_FORMS = 6.0, 8
#: Added to the criterion for each parameter: of forms that predict alike, the simpler is taken.
_SIMPLER = 0.1
SAMPLES = 120
#: Combinations of facets that are tried at most; what does not fit in refines the best of them.
MOST_BROAD = 150
_SHIFT = 1e-5
_PRECISION = 1e-6


@dataclass(frozen=True)
class Fit:
    """A form with its parameters' logarithms. ``scale``: how much larger residuals are than the data's errors say."""

    form: Form
    logs: Floats
    criterion: float
    scale: float
    residuals: Floats

    def rates(self, settings: Sequence[Setting]) -> Floats:
        """Images/s of the whole job, shape (settings,)."""
        rates: Floats = np.exp(predict(self.form, self.logs, Design.of(settings)))
        return rates

    def parameter(self, name: str) -> float | None:
        """A parameter by name; None where the form has none of this name."""
        return float(np.exp(self.logs[self.form.names.index(name)])) if name in self.form.names else None


@dataclass(frozen=True)
class Model:
    """The best fit, those nearly as good, and the errors of predicting each point from all others (relative)."""

    best: Fit
    believed: tuple[Fit, ...]
    held_out: Floats

    @property
    def held_out_median(self) -> float:
        """Median absolute relative error over the points held out."""
        return float(np.median(np.abs(self.held_out))) if len(self.held_out) else math.nan


@dataclass(frozen=True)
class _Problem:
    """Data, errors and priors of a fit; ``weight`` scales the prior's residuals."""

    form: Form
    design: Design
    logs: Floats
    errors: Floats
    centres: Floats
    widths: Floats

    def residuals(self, parameters: Floats) -> Floats:
        misfit = (predict(self.form, parameters, self.design) - self.logs) / self.errors
        return np.concatenate([misfit, (parameters - self.centres) / self.widths])

    def slopes(self, parameters: Floats) -> Floats:
        """Jacobian of the residuals, shape (residuals, parameters), by central differences in one call."""
        shifts = _SHIFT * np.eye(len(parameters))
        up = predict(self.form, parameters + shifts, self.design)
        down = predict(self.form, parameters - shifts, self.design)
        misfit = ((up - down) / (2 * _SHIFT) / self.errors).T
        return np.concatenate([misfit, np.diag(1 / self.widths)])

    def leverages(self, parameters: Floats) -> Floats:
        """How much of each residual the point itself takes away, shape (points,): the hat matrix's diagonal."""
        slopes = self.slopes(parameters)
        data = slopes[: len(self.logs)]
        inverse = np.linalg.inv(slopes.T @ slopes)
        found: Floats = np.minimum(np.einsum("ij,jk,ik->i", data, inverse, data), 1 - 1e-3)
        return found

    def solve(self, start: Floats) -> Floats:
        """The parameters' logarithms with the least squares, from ``start`` downhill."""
        solution: Floats = least_squares(
            self.residuals, start, jac=self.slopes, method="lm", ftol=_PRECISION, xtol=_PRECISION, max_nfev=60
        ).x
        return solution


def fit_group(group: Group) -> list[Fit]:
    """The fits of the forms tried, best first; empty where there are too few points for any.

    What decides which knob matters is tried in all combinations, as far as :data:`MOST_BROAD` allows; then facets of
    the best are changed one at a time, as long as that helps.
    """
    tried: dict[Form, Fit | None] = {}

    def attempt(form: Form) -> float:
        if form not in tried:
            # nothing is prepared, so nothing is shared: the same form without it is tried as well
            empty = form.shared != "no" and not form.prepares
            tried[form] = None if empty else fit(form, group.observations)
        found = tried[form]
        return found.criterion if found else math.inf

    facets = _facets(group)
    broad = [first_form(group)]
    for facet in facets[:-2]:
        wider = [changed for form in broad for changed in facet(form)]
        broad = wider if len(wider) <= MOST_BROAD else broad
    broad += [replace(form, saturation="linear", join="hard") for form in broad]
    for current in sorted(broad, key=attempt)[:2]:
        while True:
            before = attempt(current)
            for facet in facets:
                current = min(facet(current), key=attempt)
            if attempt(current) >= before:
                break
    return sorted((f for f in tried.values() if f is not None), key=lambda f: f.criterion)


def model_of(group: Group) -> Model | None:
    """The fitted model with its leave-one-out errors; None where there are too few points."""
    fits = fit_group(group)
    if not fits:
        return None
    believed = tuple(f for f in fits if f.criterion <= fits[0].criterion + BELIEVED)[:MOST_FORMS]
    return Model(fits[0], believed, held_out_errors(believed, group.observations))


def first_form(group: Group) -> Form:
    """A form with a term for each knob that was varied, to begin with."""
    settings = group.settings
    varied = {name for name in Setting.__dataclass_fields__ if len({getattr(s, name) for s in settings}) > 1}
    parallel = tuple(name for name in ("workers", "threads", "cores") if name in varied)
    computes = group.computes_on_cores and "cores" in varied
    if computes and len(parallel) > 1:
        parallel = tuple(name for name in parallel if name != "cores")
    return Form(
        parallel=() if computes and parallel == ("cores",) else parallel,
        compute="cores" if computes else "constant",
        storage="ceilings" if "storage" in varied else "same",
        exchange="ring" if len({s.ranks for s in settings}) > 1 else "none",
        inline=group.loads_inline and "workers" in varied and any(s.workers == 0 for s in settings),
        depths=tuple(group.values("prefetch")) if "prefetch" in varied else (),
        storages=tuple(group.values("storage")) if "storage" in varied else (),
    )


def _facets(group: Group) -> list[Callable[[Form], Iterator[Form]]]:
    """For each facet of the form that matters here: the form with each of its values, the most telling first."""
    first = first_form(group)
    values: dict[str, Sequence[object]] = {}
    knobs = [k for k in ("workers", "threads", "cores") if len(group.values(k)) > 1]
    if knobs:
        values["parallel"] = list(dict.fromkeys([(), *((k,) for k in knobs), tuple(knobs)]))
    if group.computes_on_cores and "cores" in knobs:
        values["compute"] = ["constant", "cores"]
    if first.depths:
        values["prefetch"] = ["none", "places", "levels", "overlap"]
    if first.storages:
        values["storage"] = ["same", "ceilings", "factors"]
    if first.exchange != "none":
        spread = {s.nodes for s in group.settings}, {s.ranks_per_node for s in group.settings}
        values["exchange"] = ["none", "ring", "ring_and_ranks", *(["nodes"] if min(map(len, spread)) > 1 else [])]
    values["shared"] = ["no", "spread", "whole"] if group.computes_on_cores and first.prepares else ["no"]
    values["burden"] = [False, True] if group.computes_on_cores and "workers" in knobs else [False]
    values["saturation"] = ["linear", "amdahl", "universal", "power"] if knobs else ["linear"]
    values["join"] = ["soft", "hard"]
    return [_facet(name, choices) for name, choices in values.items()]


def _facet(name: str, choices: Sequence[object]) -> Callable[[Form], Iterator[Form]]:
    return lambda form: (replace(form, **{name: choice}) for choice in choices)  # type: ignore[arg-type]


def fit(form: Form, observations: Sequence[Observation]) -> Fit | None:
    """The best of a few fits from different starts; None where there are fewer points than parameters."""
    if len(observations) < len(form.names):
        return None
    problem = _problem(form, observations)
    found = [problem.solve(start) for start in _starts(problem)]
    best = min(found, key=lambda logs: float(np.sum(problem.residuals(logs) ** 2)))
    return _judged(problem, best)


def _judged(problem: _Problem, logs: Floats) -> Fit:
    residuals = (predict(problem.form, logs, problem.design) - problem.logs) / problem.errors
    count, parameters = len(residuals), len(logs)
    square = float(np.sum(residuals**2))
    held_out = residuals / (1 - problem.leverages(logs))
    # the added hundredth: once the data are explained to a tenth of their errors, explaining more is no merit
    criterion = count * math.log(float(np.mean(held_out**2)) + 0.01) + _SIMPLER * parameters
    criterion = criterion if math.isfinite(criterion) else math.inf
    scale = max(1.0, math.sqrt(square / max(count - parameters, 1)))
    return Fit(problem.form, logs, criterion, scale, residuals * problem.errors)


def _problem(form: Form, observations: Sequence[Observation]) -> _Problem:
    rates = np.array([o.rate for o in observations], dtype=np.float64)
    design = Design.of([o.setting for o in observations])
    centres, widths = _priors(form, rates / design.ranks, design)
    return _Problem(form, design, np.log(rates), _errors(observations), centres, widths)


def _errors(observations: Sequence[Observation]) -> Floats:
    """Relative errors that the data claim, with the floor."""
    known = np.array([o.se_log if math.isfinite(o.se_log) else 0.0 for o in observations], dtype=np.float64)
    errors: Floats = np.hypot(np.minimum(known, 0.5), FLOOR)
    return errors


def _priors(form: Form, per_rank: Floats, design: Design) -> tuple[Floats, Floats]:
    """Centres and widths of the parameters' logarithms: where they would lie knowing only the range of the rates."""
    fastest, slowest = float(np.max(per_rank)), float(np.min(per_rank))
    cores = float(np.max(design.cores)) if form.compute == "cores" else 1.0
    known = {
        "compute": (math.log(1.5 * fastest / cores), 1.5),
        "compute_serial": (math.log(0.1), 1.5),
        "burden": (math.log(0.03), 1.5),
        "prepare": (math.log(slowest), 2.0),
        "serial": (math.log(0.03), 1.5),
        "crowding": (math.log(1e-4), 2.0),
        "returns": (math.log(0.8), 0.3),
        "ring": (math.log(0.3 / fastest), 1.5),
        "ranks": (math.log(0.01 / fastest), 1.5),
        "nodes": (math.log(0.05 / fastest), 1.5),
        "sharpness": (math.log(5.0), 1.0),
    }
    unlike = {"storage": (math.log(2 * float(np.max(per_rank * design.readers))), 2.0)}
    unlike |= {"depth": (0.0, 1.0), "latency": (0.0, 1.0)}
    pairs = [known.get(name) or unlike[name.split()[0]] for name in form.names]
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])


def _starts(problem: _Problem) -> Iterator[Floats]:
    """The prior's centres; then a nearly hard minimum with a lower ceiling, whence a knee is found more easily."""
    yield problem.centres
    nearby = problem.centres.copy()
    names = problem.form.names
    nearby[names.index("compute")] -= 0.35
    if "prepare" in names:
        nearby[names.index("prepare")] += 0.5
    yield nearby


def samples(model: Model, observations: Sequence[Observation], count: int = SAMPLES, seed: int = 0) -> list[Fit]:
    """Fits to data and priors drawn anew, of the believed forms in proportion to exp(-criterion / 2)."""
    generator = np.random.default_rng(seed)
    weights = np.exp(-0.5 * np.array([f.criterion - model.best.criterion for f in model.believed]))
    chosen = generator.choice(len(model.believed), size=count, p=weights / weights.sum())
    return [_sample(model.believed[int(which)], observations, generator) for which in chosen]


def _sample(fitted: Fit, observations: Sequence[Observation], generator: np.random.Generator) -> Fit:
    problem = _problem(fitted.form, observations)
    errors = problem.errors * fitted.scale
    about = predict(fitted.form, fitted.logs, problem.design)
    drawn = replace(
        problem,
        logs=about + errors * generator.standard_normal(len(errors)),
        errors=errors,
        centres=problem.centres + problem.widths * generator.standard_normal(len(problem.centres)),
    )
    return replace(fitted, logs=drawn.solve(fitted.logs))


def with_scatter_of_runs(model: Model, observations: Sequence[Observation]) -> Model:
    """The same, whose errors are no smaller than those of predicting points left out, where no point was repeated.

    What a run knows of itself says nothing of how runs differ, and the residuals of a model with nearly as many
    parameters as points hardly do; a point left out is missed by how its run differed, and by more.
    """
    if any(o.runs > 1 or (o.runs == 0 and math.isfinite(o.se_log)) for o in observations) or not len(model.held_out):
        return model
    # the median, made that of a normal law: one end of the grid is missed by much even where all is exact
    missed = 1.4826 * float(np.median(np.abs(np.log1p(model.held_out))))
    known = float(np.sqrt(np.mean(_errors(observations) ** 2)))
    wider = [replace(one, scale=max(one.scale, missed / known)) for one in model.believed]
    return replace(model, best=wider[model.believed.index(model.best)], believed=tuple(wider))


def held_out_errors(believed: Sequence[Fit], observations: Sequence[Observation]) -> Floats:
    """Relative error of each point's rate as predicted from all others; the form is chosen anew each time.

    A point too few for any form has the error NaN, which is left out.
    """
    errors = []
    for index, left in enumerate(observations):
        others = [o for i, o in enumerate(observations) if i != index]
        refitted = [_refitted(f, others) for f in believed if len(others) >= len(f.form.names)]
        if refitted:
            best = min(refitted, key=lambda f: f.criterion)
            errors.append(float(best.rates([left.setting])[0]) / left.rate - 1)
    return np.array(errors, dtype=np.float64)


def _refitted(fitted: Fit, observations: Sequence[Observation]) -> Fit:
    problem = _problem(fitted.form, observations)
    return _judged(problem, problem.solve(fitted.logs))
