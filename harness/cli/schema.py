"""``harness schema``: JSON Schema of the YAML files, for editors."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  harness schema sweep > sweep.schema.json
  harness schema cluster | python -m json.tool
\b
In an editor with a YAML language server, name the file in the first line of a sweep:
  # yaml-language-server: $schema=../../sweep.schema.json
"""


@click.command(epilog=EPILOG)
@click.argument("kind", type=click.Choice(["sweep", "cluster"]))
def schema(kind: str) -> None:
    """Print the JSON Schema of sweep or cluster files, for completion and checks in an editor."""
    import json

    from harness.config.schema import cluster_schema, sweep_schema

    click.echo(json.dumps(sweep_schema() if kind == "sweep" else cluster_schema(), indent=2, ensure_ascii=False))
