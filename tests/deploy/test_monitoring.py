"""Alerts and dashboard: they use existing metrics, and their links lead to existing headings."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engines.promtool import BINARY
from harness.empty_homes import make_sqlite
from sources import ROOT

from bot.operations.metrics.service_metrics import ServiceMetrics
from bot.operations.metrics.state_collector import CountSources, StateCollector
from bot.platforms.registry import SIGNED_ROUTES
from storage.sql.database import Database

MONITORING = ROOT / "deploy" / "monitoring"
ALERTS = MONITORING / "alerts.yaml"
DASHBOARD = MONITORING / "dashboard.json"
PAGE = re.compile(r"(docs/[\w-]+\.md)#([\w-]+)")
DOCS_URL = re.compile(r"""docs_url\(["']([^"']+)["']\)""")
DOCS_URL_IN_TEXT = re.compile(rf"{{{DOCS_URL.pattern}}}")
CONSTANT = re.compile(r'^(\w+) = "(docs/[\w.-]+)"$', re.MULTILINE)
METRIC = re.compile(r"\b(footnote_\w+|process_\w+|python_gc_\w+)")
BUCKETS = re.compile(r"_(bucket|sum|count)$")


def slugs(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    return slugs_of(page.read_text(encoding="utf-8"))


def slugs_of(text: str) -> set[str]:
    """Return the anchors of a text's headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def pages_of(text: str) -> set[tuple[str, str]]:
    """Return (page, heading) of every link in a source, with its calls and constants resolved."""
    text = DOCS_URL.sub(r'"docs/\1"', DOCS_URL_IN_TEXT.sub(r"docs/\1", text))
    for name, value in CONSTANT.findall(text):
        text = text.replace(f"{{{name}}}", value)
    return set(PAGE.findall(text))


async def exported(home: Path) -> set[str]:
    """Return the names of all metrics of a fresh service, without labels."""
    database = await Database.open(make_sqlite(home))

    async def all_ready() -> list[str]:
        return []

    metrics = ServiceMetrics(SIGNED_ROUTES)
    sources = CountSources(lambda: {"page images": (1, 2)}, lambda: {"read": 1}, all_ready, ["sql"])
    try:
        page = (await StateCollector(database, sources, metrics.registry).render()).decode()
    finally:
        await database.aclose()
    return set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))


def expressions() -> list[str]:
    """Return every PromQL expression of alerts and dashboard."""
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    alerts = re.findall(r"expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", ALERTS.read_text())
    return [one["expr"] for panel in panels for one in panel["targets"]] + ["".join(one) for one in alerts]


async def test_every_metric_in_use_is_exported(tmp_path: Path) -> None:
    """Shows that no alert and no panel uses a metric that is not exported."""
    there = await exported(tmp_path / "home")
    named = {BUCKETS.sub("", name) for one in expressions() for name in METRIC.findall(one)}
    assert len(named) > 15
    assert sorted(named - there) == []


async def test_every_metric_is_described(tmp_path: Path) -> None:
    """Shows that docs/operations.md lists exactly the exported metrics."""
    listed = set(METRIC.findall((ROOT / "docs" / "operations.md").read_text()))
    there = {name for name in await exported(tmp_path / "home") if name.startswith("footnote_")}
    assert {name for name in listed if name.startswith("footnote_")} == there


def test_every_alert_and_doctor_check_links_to_a_heading() -> None:
    """Shows that every alert and failed check leads to instructions."""
    rooms = (ROOT / "bot" / name for name in ("operations/doctor", "platforms"))
    sources = [*(source for room in rooms for source in room.rglob("*.py")), ALERTS]
    links = {link for source in sources for link in pages_of(source.read_text(encoding="utf-8"))}
    table = (ROOT / "bot" / "operations" / "doctor" / "checks.py").read_text()
    links |= {
        ("docs/troubleshooting.md", section) for section in re.findall(r'"([a-z0-9-]+)", \w+_SECONDS', table)
    }
    assert len(links) > 25
    assert sorted(f"{page}#{heading}" for page, heading in links if heading not in slugs(ROOT / page)) == []
    headings = slugs(ROOT / "docs" / "troubleshooting.md") - {"troubleshooting-by-symptom"}
    assert sorted(headings - {heading for _, heading in links}) == []


def test_every_alert_has_a_summary_and_a_page() -> None:
    """Shows that no alert lacks its page."""
    alerts = re.split(r"^ +- alert: ", ALERTS.read_text(), flags=re.MULTILINE)[1:]
    assert len(alerts) > 8
    assert [
        one.split("\n")[0] for one in alerts if len(PAGE.findall(one)) != 1 or "summary:" not in one
    ] == []


def test_every_alert_is_named_below_its_heading() -> None:
    """Shows that searching the page for an alert's name finds its instructions."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    below = {next(iter(slugs_of(part))): part for part in re.split(r"^(?=## )", page, flags=re.MULTILINE)}
    for one in re.split(r"^ +- alert: ", ALERTS.read_text(), flags=re.MULTILINE)[1:]:
        ((_, heading),) = PAGE.findall(one)
        assert f"`{one.splitlines()[0]}`" in below[heading]


def test_the_checks_above_could_fail() -> None:
    """Shows that a missing heading or metric would be found."""
    assert pages_of('PAGES = "docs/x.md"\nf"{PAGES}#no-such-heading"') == {("docs/x.md", "no-such-heading")}
    assert METRIC.findall("rate(footnote_gone_total[5m])") == ["footnote_gone_total"]


@pytest.mark.long
@pytest.mark.engine("promtool")
@pytest.mark.parametrize("fault", [None, "rate(footnote_questions_total)"])
def test_prometheus_accepts_the_rules(tmp_path: Path, fault: str | None) -> None:
    """Shows that promtool finds no mistake in the alerts, and would find one."""
    rules = tmp_path / "alerts.yaml"
    text = ALERTS.read_text()
    rules.write_text(text.replace("max(footnote_database_up) == 0", fault) if fault else text)
    done = subprocess.run([BINARY, "check", "rules", rules], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is (fault is None), done.stderr


@pytest.mark.long
@pytest.mark.engine("promtool")
def test_prometheus_accepts_every_panel(tmp_path: Path) -> None:
    """Shows that each panel's query is valid PromQL."""
    recorded = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(expressions())]
    rules = tmp_path / "panels.yaml"
    rules.write_text(json.dumps({"groups": [{"name": "panels", "rules": recorded}]}))  # JSON is YAML
    done = subprocess.run([BINARY, "check", "rules", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.engine("promtool")
@pytest.mark.parametrize(
    ("series", "fired"),
    [
        (["footnote_info 1x480"], []),
        (["other 1x480"], ["FootnoteAbsent"]),
        (["footnote_database_up 0x480"], ["FootnoteAbsent", "FootnoteDatabaseDown"]),
        (["footnote_ready{part='sql'} 0x480"], ["FootnoteAbsent", "FootnoteNotReady"]),
        (
            ["footnote_queue_oldest_seconds{queue='questions'} 0+60x480"],
            ["FootnoteAbsent", "FootnoteQuestionsWait"],
        ),
        (
            ["footnote_queue_oldest_seconds{queue='quick readings'} 0+60x480"],
            ["FootnoteAbsent", "FootnotePdfsWait"],
        ),
        (["footnote_queue_oldest_seconds{queue='full readings'} 0+60x480"], ["FootnoteAbsent"]),
        (["footnote_questions_total{outcome='failed'} 0+9x480"], ["FootnoteAbsent", "FootnoteQuestionsFail"]),
        (
            [
                "footnote_question_seconds_bucket{stage='total',le='30'} 0+9x480",
                "footnote_question_seconds_bucket{stage='total',le='60'} 0+10x480",
                "footnote_question_seconds_bucket{stage='total',le='+Inf'} 0+10x480",
            ],
            ["FootnoteAbsent", "FootnoteAnswersSlow"],
        ),
        (
            [
                "footnote_question_seconds_bucket{stage='total',le='30'} 0+98x480",
                "footnote_question_seconds_bucket{stage='total',le='+Inf'} 0+100x480",
            ],
            ["FootnoteAbsent"],
        ),
        (
            ["footnote_documents{state='quarantined'} 0x400 11x80"],
            ["FootnoteAbsent", "FootnotePdfsUnreadable"],
        ),
        (["footnote_documents{state='quarantined'} 0x400 10x80"], ["FootnoteAbsent"]),
        (["footnote_documents{state='quarantined'} 20x480"], ["FootnoteAbsent"]),
        (["footnote_documents{state='quarantined'} 20x400 5x5 20x80"], ["FootnoteAbsent"]),
        (
            ["footnote_documents{state='quarantined'} _x400 0x5 11x80"],
            ["FootnoteAbsent", "FootnotePdfsUnreadable"],
        ),
        (["footnote_documents{state='quarantined'} _x400 20x80"], ["FootnoteAbsent"]),
        (
            [
                "footnote_model_calls_total{purpose='answer',outcome='failed'} 0+1x480",
                "footnote_model_calls_total{purpose='describe',outcome='ok'} 0+20x480",
            ],
            ["FootnoteAbsent", "FootnoteModelFails"],
        ),
        (
            [
                "footnote_model_calls_total{purpose='answer',outcome='ok'} 0+5x480",
                "footnote_model_calls_total{purpose='answer',outcome='failed'} 0+1x480",
            ],
            ["FootnoteAbsent"],
        ),
        (
            ["footnote_refused_signatures_total{channel_type='link'} 0+9x480"],
            ["FootnoteAbsent", "FootnoteRequestsRefused"],
        ),
        (
            ["footnote_web_pages{state='failing'} 6x480", "footnote_web_pages{state='read'} 5x480"],
            ["FootnoteAbsent", "FootnoteWebPagesFail"],
        ),
        (
            ["footnote_web_pages{state='failing'} 5x480", "footnote_web_pages{state='read'} 5x480"],
            ["FootnoteAbsent"],
        ),
    ],
)
def test_alerts_fire_for_their_conditions(tmp_path: Path, series: list[str], fired: list[str]) -> None:
    """Shows with Prometheus' own engine which alerts seven hours of metrics trigger."""
    given = [dict(zip(("series", "values"), one.split(" ", 1), strict=True)) for one in series]
    names = re.findall(r"alert: (\w+)", ALERTS.read_text())
    query = "count by (alertname) (ALERTS{alertstate='firing'})"
    expected = [{"labels": f'{{alertname="{one}"}}', "value": 1} for one in sorted(fired)]
    test = {
        "interval": "1m",
        "input_series": given,
        "promql_expr_test": [{"expr": query, "eval_time": "7h", "exp_samples": expected}],
    }
    rules = tmp_path / "test.yaml"
    rules.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run([BINARY, "test", "rules", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(fired) <= set(names)


def test_every_alert_has_a_firing_case() -> None:
    """Shows that every alert has a case above."""
    (cases,) = [one for one in test_alerts_fire_for_their_conditions.pytestmark if one.name == "parametrize"]
    fired = {name for _, names in cases.args[1] for name in names}
    assert fired == set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
