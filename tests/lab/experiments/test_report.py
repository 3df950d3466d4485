"""The report: one file that says everything, and looks right where people open it."""

import html
import re
import shutil
import subprocess

import pytest

from fliphat import FLIPHAT, __version__, cli
from fliphat.lab.experiments.catalog import NAMES
from fliphat.lab.experiments.figures import draw
from fliphat.lab.experiments.report import Section, write_report
from invented_results import invented

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine to open the report in"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    sections = []
    for name in NAMES:
        one, summaries = invented(name, quick=True)
        sections.append(Section(one, summaries, one.sentence(summaries)))
    path = folder / "report.html"
    write_report(sections, path, "fliphat reproduce all --report")
    return path


def test_it_has_figures_tables_settings_versions_and_the_guarantee(report):
    page = report.read_text()
    # Each figure for a desk, and once more for the width of a telephone.
    assert page.count("<svg ") == 2 * page.count("<table>") == 2 * len(NAMES)
    for name in NAMES:
        assert f'<section id="{name}">' in page and f'href="#{name}"' in page
        one, summaries = invented(name, quick=True)
        for summary in (s for s in summaries if s.round == one.cells[0].rounds):
            assert f"<td>{summary.mean:,.0f}</td>" in page
        for cell in one.cells:
            assert html.escape(str(cell.policy).rsplit("makers.")[-1]) in page
    words = html.unescape(page)
    assert str(FLIPHAT(400, 10, 1.0, 0.01).guarantee) in words and "Proven" in words
    assert f"<dd>{__version__}</dd>" in page and "<dt>NumPy</dt>" in page and "seeds 0 to 4" in page
    assert "<pre><code>fliphat reproduce all --report</code></pre>" in page


def test_it_needs_nothing_from_elsewhere(report):
    page = report.read_text()
    links = re.findall(r"(?:src|href)\s*=\s*[\"']?([^\"'>\s]{1,40})", page)
    assert len(links) >= 2 * len(NAMES)
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\([^#]|@import|<script|<link|https?://", page)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_telephone_no_legend_leaves_the_figure(name):
    figure = draw(*invented(name, quick=True), narrow=True)
    figure.draw_without_rendering()
    for axes in figure.axes:
        if axes.get_legend() is not None:
            assert axes.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_the_command_writes_one_that_says_how_to_run_it_again(tmp_path, capsys):
    arguments = ["reproduce", "regret-vs-arms", "--quick", "--repeats", "1"]
    assert cli.main([*arguments, "--workers", "1", "--report", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "fliphat reproduce regret-vs-arms --quick --repeats 1 --report</code>" in page
    assert str(tmp_path) not in page


def opened(report, script, width, *options):
    """Open a copy of the report that ends in a script, and return what the script left as the title."""
    copy = report.with_name("opened.html")
    copy.write_text(
        report.read_text().replace("</body>", f"<script>document.title = {script}</script></body>")
    )
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--window-size={width},900",
        *options,
    ]
    shown = subprocess.run(
        [*command, "--dump-dom", copy.as_uri()], capture_output=True, text=True, check=True
    )
    return re.search("<title>(.*?)</title>", shown.stdout).group(1)


@needs_chromium
@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_sticks_out_on_a_phone_or_a_desk(report, width):
    script = "[document.documentElement.scrollWidth, innerWidth, "
    script += "[...document.querySelectorAll('svg')].filter(i => i.clientWidth > 300 && i.clientHeight > 150).length].join()"
    needed, given, pictures = opened(report, script, width).split(",")
    assert int(needed) <= int(given) and abs(int(given) - width) < 120
    assert int(pictures) == len(NAMES)


@needs_chromium
def test_light_and_dark(report):
    script = "getComputedStyle(document.body).backgroundColor"
    light = opened(report, script, 800, "--blink-settings=preferredColorScheme=1")
    dark = opened(report, script, 800, "--blink-settings=preferredColorScheme=0")
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)")
    # The letters of a figure are the page's own.
    script = "getComputedStyle(document.querySelector('svg text')).fill"
    assert opened(report, script, 800, "--blink-settings=preferredColorScheme=0") in (
        "rgb(230, 232, 234)",
        "rgb(162, 169, 180)",
    )


@needs_chromium
def test_it_can_be_printed(report):
    pdf = report.with_suffix(".pdf")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--print-to-pdf={pdf}",
        report.as_uri(),
    ]
    subprocess.run(command, capture_output=True, check=True)
    assert pdf.read_bytes().startswith(b"%PDF")
