"""Report page in a browser (headless chromium)."""

from __future__ import annotations

import os
import shutil

import pytest

pytest.importorskip("selenium")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from ikpca_papers.report import page
from papers.tests.test_report import experiment_result

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
WIDTHS = (1400, 400)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are absent: apt-get install chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Selenium asks its own machine for the driver; a proxy has no part in that.
    os.environ.setdefault("NO_PROXY", "localhost,127.0.0.1")
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


@pytest.fixture
def opened(browser, tmp_path):
    """Load the page of one experiment, without stored choices."""
    path = tmp_path / "index.html"
    path.write_text(page([experiment_result()]), encoding="utf-8")
    _resize(browser, 1400)
    browser.get(path.as_uri())
    browser.execute_script("localStorage.clear()")
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def _resize(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def drawn(browser):
    """Return the names and the paths of the curves of the first plot."""
    paths = browser.find_elements(By.CSS_SELECTOR, ".plot:first-child path[data-series]")
    return {path.get_attribute("data-series"): path.get_attribute("d") for path in paths}


def click(browser, selector):
    browser.execute_script("arguments[0].click()", browser.find_element(By.CSS_SELECTOR, selector))


def test_every_picture_loads(opened):
    widths = opened.execute_script("return [...document.images].map(i => i.naturalWidth)")
    assert widths
    assert all(width > 100 for width in widths)


def test_switching_a_method_off_and_on_changes_the_plot(opened):
    before = drawn(opened)
    assert list(before) == ["KHA", "KHA/et"]
    click(opened, 'input[value="KHA/et"]')
    assert list(drawn(opened)) == ["KHA"]
    # What is left has the whole height to itself.
    assert drawn(opened)["KHA"] != before["KHA"]
    click(opened, 'input[value="KHA"]')
    assert drawn(opened) == {}
    assert "Choose a method" in opened.find_element(By.CSS_SELECTOR, ".plot svg").text
    click(opened, 'input[value="KHA"]')
    click(opened, 'input[value="KHA/et"]')
    assert drawn(opened) == before


@pytest.mark.parametrize("choice", ["linear", "seconds"])
def test_scale_and_seconds_change_the_plot(opened, choice):
    before = drawn(opened)
    click(opened, f'input[value="{choice}"]')
    after = drawn(opened)
    if choice == "seconds":
        words = opened.find_element(By.CSS_SELECTOR, ".plot svg").text
        assert "Seconds" in words
        assert "Passes" not in words
    else:
        assert after["KHA/et"] != before["KHA/et"]


def test_values_can_be_read_with_the_keyboard_and_the_mouse(opened):
    plot = opened.find_element(By.CSS_SELECTOR, ".plot svg")
    plot.send_keys("\ue014")
    readout = opened.find_element(By.CSS_SELECTOR, ".readout")
    assert "KHA 1 (pass 1)" in readout.text
    opened.execute_script(
        "const box = arguments[0].getBoundingClientRect();"
        "arguments[0].dispatchEvent(new PointerEvent('pointermove',"
        " {clientX: box.right - 3, clientY: box.top + 9}))",
        plot,
    )
    assert "KHA/et 1e-3 (pass 10)" in readout.text


def test_dark_and_light(opened):
    def ground():
        return opened.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = ground()
    click(opened, "#theme")
    assert ground() != light
    assert opened.find_element(By.ID, "theme").get_attribute("aria-pressed") == "true"
    opened.refresh()
    assert ground() != light
    click(opened, "#theme")
    assert ground() == light


def test_dark_color_scheme_of_the_system_is_used(opened):
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        opened.refresh()
        assert opened.find_element(By.ID, "theme").text == "Light"
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_figures_grow_when_clicked(opened):
    click(opened, ".zoom")
    large = opened.find_element(By.CSS_SELECTOR, "dialog[open] img")
    small = opened.find_element(By.CSS_SELECTOR, ".zoom img")
    assert large.get_attribute("src") == small.get_attribute("src")
    assert large.size["width"] > small.size["width"]
    click(opened, "#close")
    assert not opened.find_elements(By.CSS_SELECTOR, "dialog[open]")


@pytest.mark.parametrize("width", WIDTHS)
def test_page_does_not_scroll_horizontally(opened, width):
    _resize(opened, width)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
