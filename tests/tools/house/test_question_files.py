"""The count of files that a question executes."""

import sys

from storage.text.analyzer import phrase_terms
from tools.house.question_files import ExecutedFiles, summary


def test_only_called_files_of_the_product_are_recorded() -> None:
    """Shows that calls before the recording and files outside the product do not count."""
    files, before = ExecutedFiles(), sys.getprofile()
    sys.setprofile(files.trace)
    try:
        summary([], [])
        with files.recording() as found:
            phrase_terms("questions")
            summary([], [])
    finally:
        sys.setprofile(before)
    assert found == {"storage/text/analyzer.py"}


def test_files_that_also_run_at_rest_are_not_counted() -> None:
    counted = summary(["bot/app.py", "bot/web/app.py", "bot/web/viewer.py"], ["bot/app.py", "bot/idle.py"])
    assert counted.splitlines()[-1] == "2 files, 1 others that also run at rest"
    assert "  2 bot/web" in counted.splitlines()
