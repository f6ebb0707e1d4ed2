"""The HTML report in a real browser: offline, without errors, at two widths, light and dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.model.axes import Axes
from harness.report import html

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

HOSTILE = "disk <script>document.title='broken'</script><b> $x^2$ & \"quoted\" </script>"
WIDTHS = (1280, 400)
#: what has not come by then never will
HANGS_MS = 180_000


@dataclass
class Opened:
    """A page, what its console said and what it asked the network for."""

    page: object
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2 storages × 1, 2, 10 cores; one run failed, one point is not steady; one storage's name attacks the page."""
    campaign = FakeCampaign(tmp_path_factory.mktemp("results"), "shelf", varied=("storage", "cpu_cores"), repeats=2)
    for storage in ("scratch", HOSTILE):
        for cores in (1, 2, 10):
            for repeat in range(2):
                axes = Axes(workload="replay", storage=storage, cpu_cores=cores, steps_timed=20)
                step_s = 0.2 / cores * (1 + 0.01 * repeat) * (1 if storage == "scratch" else 2)
                steps = [step_s] * 20 if (storage, cores) != (HOSTILE, 2) else [step_s * (1 + i / 5) for i in range(20)]
                broken = storage != "scratch" and cores == 1 and repeat == 1
                run = FakeRun([[1.0] + steps], occupancy=[8] * 21, exit_code=3 if broken else 0)
                attempt = campaign.add(axes, run, repeat=repeat)
                attempt.script.write_text("#!/bin/bash\n# </script> job of this attempt\nmpirun --map-by socket\n")
    saved = campaign.save()
    path = campaign.layout.report
    html.write(campaign.layout, collect(campaign.layout), saved, path)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=HANGS_MS
        )
        yield running
        running.close()


#: What the data of the campaign below support, in the order of the page.
CHARTS = [
    *("Images per second", "Speed-up", "Storage and staging", "Storage and staging", "Storage and staging"),
    *("Where a step's time goes", "Rate and ceiling", "Rate and ceiling", "Training time of the timed steps"),
    "Step time and queue against step",
]


def opened(browser: object, report: Path, width: int = 1280, scheme: str = "light") -> Opened:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    context.set_default_timeout(HANGS_MS)
    found = Opened(context.new_page())
    found.page.on("console", lambda m: found.errors.append(m.text))
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.goto(report.as_uri())
    found.page.wait_for_selector("#charts .main-svg")
    return found


def column(page: object, place: int) -> list[str]:
    return page.eval_on_selector_all(
        "#table > tbody > tr:not(.detail):not([hidden])", f"rows => rows.map(row => row.cells[{place}].textContent)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_opens_offline_and_draws(browser: object, report: Path, width: int, scheme: str) -> None:
    found = opened(browser, report, width, scheme)
    page = found.page
    assert found.errors == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    titles = [text.split("\n")[0] for text in page.locator("#charts figcaption").all_inner_texts()]
    assert [title.split(":")[0] for title in titles] == CHARTS
    drawn = page.eval_on_selector_all("#charts .plot", "p => p.filter(x => x.querySelector('.main-svg')).length")
    assert drawn == len(CHARTS)
    assert page.locator("#charts figure:first-child .scatterlayer .point").count() == 6
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width, "the page scrolls sideways"
    sizes = page.eval_on_selector_all("main li, td", "e => e.map(x => parseFloat(getComputedStyle(x).fontSize))")
    assert min(sizes) >= 13


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(browser: object, report: Path, scheme: str) -> None:
    page = opened(browser, report, 1280, scheme).page
    contrast = page.evaluate(CONTRAST)
    assert contrast and min(contrast.values()) >= 4.5, contrast


CONTRAST = """() => {
  const light = (c) => c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const found = {};
  for (const selector of ["h1", "main li", ".facts dt", ".error .severity", ".warning .severity", ".info .severity",
                          "td", "tr.doubtful td", "nav a", "figcaption small", "footer", ".xtick text"]) {
    const element = document.querySelector(selector);
    const style = getComputedStyle(element);
    let behind = element;
    while (behind && (numbers(getComputedStyle(behind).backgroundColor)[3] === 0)) behind = behind.parentElement;
    const ink = light(numbers(selector === ".xtick text" ? style.fill : style.color).slice(0, 3));
    const paper = light(numbers(getComputedStyle(behind || document.body).backgroundColor).slice(0, 3));
    found[selector] = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }
  return found;
}"""


def cut_texts(page: object) -> list[str]:
    """Titles, legends and tick labels that reach out of their chart."""
    return page.evaluate("""() => {
      const found = [];
      document.querySelectorAll("#charts .plot").forEach((plot) => {
        const box = plot.getBoundingClientRect();
        plot.querySelectorAll(".xtitle, .ytitle, .legendtext, .xtick text, .ytick text").forEach((text) => {
          const own = text.getBoundingClientRect();
          if (own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 1)
            found.push(text.textContent);
        });
      });
      return found;
    }""")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_of_a_chart_is_cut_off(browser: object, report: Path, width: int) -> None:
    assert cut_texts(opened(browser, report, width).page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_the_answer_is_unfolded_and_charts_fit(browser: object, report: Path, scheme: str) -> None:
    found = opened(browser, report, 1280, scheme)
    page = found.page
    folded = page.locator(".advice details:not([open]), .finding.warning:not([open])")
    before = folded.count()
    assert before > 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert folded.count() == 0
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 32, 36)"
    tick = page.locator("#charts .xtick text").first
    assert tick.evaluate("e => getComputedStyle(e).fill") == "rgb(28, 32, 36)"
    sizes = page.eval_on_selector_all("#charts .plot", "p => p.map(x => [x.clientWidth, x._fullLayout.width])")
    assert all(abs(drawn - room) <= 1 and room < 690 for room, drawn in sizes), sizes
    table = page.eval_on_selector("#points .scroll", "box => [box.scrollWidth, box.clientWidth]")
    assert table[0] <= table[1], "the table of points runs out of the paper"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert folded.count() == before
    assert found.errors == []


def test_the_first_screen_says_what_to_request(browser: object, report: Path) -> None:
    page = opened(browser, report, 400).page
    advice = page.locator(".advice")
    assert advice.nth(0).locator("dt").nth(0).inner_text() == "No recommendation"
    assert "the rate still grows at 10 CPU cores" in advice.nth(0).locator("dd").nth(0).inner_text()
    assert advice.nth(0).locator("> dl dt").all_inner_texts()[-1] == "Next"
    box = advice.nth(0).bounding_box()
    assert box["y"] + box["height"] < 900
    over_all, disk, rising = page.locator(".requests li").all_inner_texts()
    assert "of all that was measured, request scratch, 10 cpu cores for" in over_all
    assert "disk" in disk and "request 10 cpu cores for" in disk
    # the series of scratch is that of the first sentence and is not said again
    assert rising.startswith("The rate still rises at 10 cpu cores") and rising.endswith("; scratch.")


def test_a_menu_changes_what_a_chart_shows(browser: object, report: Path) -> None:
    found = opened(browser, report)
    figure = found.page.locator("#charts figure").last
    names = figure.locator("select option").all_inner_texts()
    assert len(names) == 6 and names[-1] == "scratch, 10 cpu cores"
    shown = "figure => Math.max(...figure.querySelector('.plot').data[0].y.filter((y) => y !== null))"
    first = figure.evaluate(shown)
    figure.locator("select").select_option(names[-1])
    assert figure.evaluate(shown) == pytest.approx(20, rel=0.1)
    assert first != figure.evaluate(shown)
    assert found.errors == []


def test_hostile_names_are_shown_and_do_nothing(browser: object, report: Path) -> None:
    found = opened(browser, report)
    assert found.page.title() == "shelf on local"
    assert HOSTILE in column(found.page, 0)
    assert "<script>doc" in found.page.locator("#charts .legendtext").nth(0).text_content()
    assert found.errors == []


def test_headers_sort_by_value(browser: object, report: Path) -> None:
    page = opened(browser, report).page
    assert [text.strip() for text in page.locator("#table thead th").all_inner_texts()][:3] == [
        "storage",
        "cpu cores",
        "images/s",
    ]
    cores = page.locator("#table thead button", has_text="cpu cores")
    cores.click()
    assert column(page, 1) == ["1", "1", "2", "2", "10", "10"]
    cores.click()
    assert column(page, 1) == ["10", "10", "2", "2", "1", "1"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("cpu cores")
    page.locator("#table thead button", has_text="storage").click()
    assert column(page, 0) == [HOSTILE] * 3 + ["scratch"] * 3


def test_words_and_menus_filter(browser: object, report: Path) -> None:
    page = opened(browser, report).page
    page.fill("#filter", "SCRATCH")
    assert column(page, 0) == ["scratch"] * 3
    assert page.locator("#shown").inner_text() == "3 of 6 points"
    page.select_option("select[data-column='1']", "10")
    assert column(page, 1) == ["10"]
    page.fill("#filter", "no such words")
    assert page.locator("#shown").inner_text() == "0 of 6 points"
    page.fill("#filter", "")
    page.select_option("select[data-column='1']", "")
    assert page.locator("#shown").inner_text() == "6 of 6 points"


def test_a_row_opens_down_to_script_environment_and_trace(browser: object, report: Path) -> None:
    found = opened(browser, report)
    page = found.page
    page.fill("#filter", "FAILED")
    assert len(column(page, 0)) == 1
    page.locator("tr:not([hidden]) button.open").click()
    runs = page.locator("details.run")
    assert [text.split(":")[0] for text in runs.locator("> summary").all_inner_texts()] == [
        "repeat 0, attempt 1, SUCCEEDED",
        "repeat 1, attempt 1, FAILED",
    ]
    first = runs.nth(0)
    first.locator("> summary").click()
    first.get_by_text("job script").click()
    assert "# </script> job of this attempt" in first.locator("pre").inner_text()
    first.get_by_text("environment").click()
    first.get_by_text("Test CPU").wait_for()
    first.get_by_text("step trace").click()
    page.wait_for_selector("details.run .trace .main-svg")
    assert first.locator(".trace .scatterlayer .point").count() == 21
    page.locator("tr:not([hidden]) button.open").click()
    assert page.locator("tr.detail").count() == 0
    assert found.errors == []
