"""A sweep as its YAML file describes it: which points are measured, how often, and with what request.

``harness.config`` builds these values from a file and ``harness.plan`` expands them. Axis values are already of
their axis's type; the keys of every mapping are axis names or ``options.<name>``.
"""

from pydantic import Field

from harness.model.axes import Count, Frozen, PositiveInt, Scalar

AxisValue = Scalar | list[Scalar] | None
Values = dict[str, AxisValue]


class Expression(Frozen):
    """Text for the safe evaluator, and the line it stands on (0: not from a file)."""

    text: str
    line: int = 0


class Condition(Frozen):
    """Which combinations are meant: those where the expression is true, or that hold all values of ``match``.

    ``line`` is where it stands in its file.
    """

    where: Expression | None = None
    match: Values = Field(default_factory=dict)
    line: int = 0


class Conditional(Frozen):
    """Values that only combinations meeting the condition take."""

    condition: Condition
    values: Values


class Grid(Frozen):
    """A set of combinations.

    ``matrix`` is a product; each entry of ``zip`` is a group of axes that advance together, multiplied with the
    rest; ``exclude`` removes combinations, then ``include`` adds values or combinations as in GitHub Actions; ``when``
    and ``derive`` give further values.
    """

    base: Values = Field(default_factory=dict)
    matrix: dict[str, tuple[AxisValue, ...]] = Field(default_factory=dict)
    zip: tuple[dict[str, tuple[AxisValue, ...]], ...] = ()
    include: tuple[Values, ...] = ()
    exclude: tuple[Condition, ...] = ()
    when: tuple[Conditional, ...] = ()
    derive: dict[str, Expression] = Field(default_factory=dict)

    @property
    def varied(self) -> list[str]:
        """The axes of matrix and zip, in the order written."""
        return [*self.matrix, *(axis for group in self.zip for axis in group)]


class Scale(Frozen):
    """A sweep's variant of another size: what it replaces, and what it adds to each grid.

    ``base`` gives an axis one value wherever the file gives it any; ``matrix`` replaces an axis's list; ``when`` and
    ``exclude`` come after the file's own. ``data`` is as in :class:`Sweep`.
    """

    base: Values = Field(default_factory=dict)
    matrix: dict[str, tuple[AxisValue, ...]] = Field(default_factory=dict)
    when: tuple[Conditional, ...] = ()
    exclude: tuple[Condition, ...] = ()
    cluster: str | None = None
    repeats: PositiveInt | None = None
    walltime_s: PositiveInt | None = None
    memory_bytes: PositiveInt | None = None
    data: dict[str, dict[str, PositiveInt]] = Field(default_factory=dict)


class Sweep(Frozen):
    """A sweep file. Its points are those of its grids, one after another, equal ones once."""

    name: str
    description: str = ""
    cluster: str | None = Field(None, description="cluster used unless the command line names another")
    grids: tuple[Grid, ...]
    repeats: PositiveInt = Field(1, description="how often each point is measured")
    order_seed: Count = Field(0, description="seed of the order of the runs; the axis seed is that of the weights")
    walltime_s: PositiveInt | None = Field(None, description="time limit of one run; unset: the queue's default")
    memory_bytes: PositiveInt | None = Field(None, description="memory per node; unset: the cluster's default")
    data: dict[str, dict[str, PositiveInt]] = Field(
        default_factory=dict, description="data set → sizes in which --make-data makes it: train, test, classes …"
    )
    scales: dict[str, Scale] = Field(default_factory=dict, description="variants of other sizes, for --scale")
    file: str = ""
