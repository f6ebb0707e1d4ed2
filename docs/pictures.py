"""Draws docs/images anew from results/sample: figures, the table in the terminal, the report's first screen.

``make pictures`` calls it. Figures and tables are those of ``harness plot`` and ``harness table``; the report is that
of ``harness report`` in headless Chromium, left as it is where no Chromium is installed.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console

from harness.report.notebook import opened
from harness.report.tables import render_terminal

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
#: (campaign of results/sample, figure)
FIGURES = (
    ("cores_workers", "images-per-second"),
    ("cores_workers", "where-time-goes"),
    ("threads_prefetch", "two-axes"),
    ("pipeline_clock", "two-axes-lines"),
    ("ranks", "scaling"),
    ("batch_repetition", "queue-grid"),
    ("storage", "storage-staging"),
)
#: The campaign whose table and report are shown.
SHOWN = "cores_workers"
DPI = 110
#: Colours that are left: enough for text on plain ground, and a third of the bytes.
COLOURS = 96


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    made = [draw(campaign, name) for campaign, name in FIGURES]
    made += [terminal(), *report()]
    for old in set(IMAGES.iterdir()) - set(made):
        old.unlink()
    for path in made:
        print(f"{path.stat().st_size:8d} {path.relative_to(ROOT)}")


def draw(campaign: str, name: str) -> Path:
    """A figure as a small PNG."""
    figure = opened(f"sample/{campaign}", ROOT / "results").figure(name)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return save(Image.open(buffer), IMAGES / f"{campaign}-{name}.png")


def save(picture: Image.Image, path: Path) -> Path:
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def terminal() -> Path:
    """``harness table`` as it looks in a terminal of 100 columns."""
    shown = opened(f"sample/{SHOWN}", ROOT / "results")
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    render_terminal(shown.table, shown.campaign, console)
    path = IMAGES / f"{SHOWN}-table.svg"
    drawn = console.export_svg(title=f"harness table {SHOWN}", unique_id=SHOWN)
    # fonts from elsewhere are not fetched: any monospaced one will do
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")
    return path


def report() -> list[Path]:
    """The first screen of ``harness report``."""
    path, chromium = IMAGES / f"{SHOWN}-report.png", shutil.which("chromium")
    if chromium is None:
        print("no chromium: the picture of the report stays as it is", file=sys.stderr)
        return [path] if path.is_file() else []
    with tempfile.TemporaryDirectory() as scratch:
        page, shot = Path(scratch) / "report.html", Path(scratch) / "shot.png"
        campaign = str(ROOT / "results" / "sample" / SHOWN)
        subprocess.run([sys.executable, "-m", "harness", "report", campaign, "-o", str(page)], check=True, cwd=ROOT)
        look = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,760"]
        subprocess.run([chromium, *look, f"--screenshot={shot}", page.as_uri()], check=True, capture_output=True)
        return [save(Image.open(shot), path)]


if __name__ == "__main__":
    main()
