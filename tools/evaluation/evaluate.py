"""``make eval CORPUS=DIR``: quality of answers, compared to a plain search of the same pages.

Every question of ``questions/`` is asked in the channel of its collection and, if it is about one document,
also in a channel of that document only. Prints tables for each half and kind of channel, and whether the test
half meets the bars. With ``--model`` everything is asked twice: answered by quotes, and by that model.
``--show`` prints replies of the test half, or of the named half, for a person to read; with a model, its own.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.quality.targets import MODEL_TARGETS, QUOTE_TARGETS, Limit
from tools.bench.figures import VERDICTS, markdown
from tools.evaluation.asking import Asked, Home, in_collections, in_documents
from tools.evaluation.baselines import Baselines
from tools.evaluation.golden import (
    Golden,
    Kind,
    label_errors,
    load_questions,
    read_questions,
    some_of_each_kind,
)
from tools.evaluation.highlights import count_highlights
from tools.evaluation.measures import Result, of_kinds
from tools.evaluation.report import (
    Bar,
    Results,
    bars,
    misses,
    removing,
    rows,
    sampled_replies,
    searching_rows,
)

ENGINES: dict[str, dict[str, str]] = {"embedded": {}, "weaviate": {"WEAVIATE_URL": "embedded"}}
# Channels with whole collections, and with single documents.
CHANNELS = {"collections": in_collections, "documents": in_documents}


@dataclass(frozen=True, slots=True)
class Answerer:
    """A way of answering in a home: by quotes, or by a model with these settings."""

    name: str
    home: Home
    settings: Mapping[str, str]
    # Bars by measure.
    limits: Mapping[str, Limit]


def main() -> None:
    """Print the tables; exit with 1 if a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the collections")
    parser.add_argument("--half", choices=("tuning", "test"), action="append", help="this half alone")
    parser.add_argument("--engine", choices=tuple(ENGINES), action="append", help="this engine alone")
    parser.add_argument("--channels", choices=tuple(CHANNELS), action="append", help="these channels alone")
    parser.add_argument("--worst", type=int, default=0, help="list so many misses")
    parser.add_argument("--show", type=int, default=0, help="print so many replies, drawn by a fixed seed")
    parser.add_argument("--each", type=int, help="so many questions of each kind alone, for a slow model")
    parser.add_argument(
        "--model",
        help="URL of an OpenAI-compatible endpoint that answers, too; OPENAI_* and FOOTNOTE_* go with it",
    )
    parser.add_argument(
        "--questions",
        type=Path,
        help="a file of cases in place of ours, as `footnote feedback export` prints",
    )
    asked = parser.parse_args()
    homes = [Home(name, ENGINES[name]) for name in asked.engine or ENGINES]
    questions = read_questions([asked.questions]) if asked.questions else load_questions()
    if asked.each:
        questions = some_of_each_kind(questions, asked.each)
    evaluation = Evaluation(asked.corpus, answerers(homes, asked.model), questions)
    where = asked.channels or list(CHANNELS)
    show = dict.fromkeys(asked.half or ["test"], asked.show)
    met = [
        evaluation.report(half, where, asked.worst, show.get(half, 0))
        for half in asked.half or ("tuning", "test")
    ]
    sys.exit(not all(met))


def answerers(homes: Sequence[Home], model: str | None) -> list[Answerer]:
    """Return quotes for every home, and the model at this URL, if any."""
    quoting = [Answerer(home.name, home, {}, QUOTE_TARGETS) for home in homes]
    if model is None:
        return quoting
    given = {name: kept for name, kept in os.environ.items() if name.startswith(("OPENAI_", "FOOTNOTE_"))}
    settings = {"OPENAI_API_KEY": "none", **given, "OPENAI_BASE_URL": model}
    return quoting + [Answerer(f"{home.name}, model", home, settings, MODEL_TARGETS) for home in homes]


class Evaluation:
    """The corpus, read once for all engines and baselines."""

    def __init__(self, corpus: Path, answerers: Sequence[Answerer], questions: Sequence[Golden]) -> None:
        """Read what the homes have not read yet."""
        self._questions = questions
        collections = sorted({one.collection for one in questions})
        files = [file for name in collections for file in sorted((corpus / name).glob("*.pdf"))]
        self._files = {file.name: file for file in files}
        self._baselines = Baselines(files)
        if wrong := label_errors(questions, self._baselines.texts):
            sys.exit("\n".join(["labels that the pages do not bear out:", *wrong]))
        self._answerers = answerers
        for home in {one.home.name: one.home for one in answerers}.values():
            home.ingest(files)

    def report(self, half: str, where: Sequence[str], worst: int, show: int) -> bool:
        """Print the tables, misses and replies of a half; return True if it meets its bars.

        Only the test half has bars, in the channels of whole collections.
        """
        questions = [one for one in self._questions if one.half == half]
        found = {name: self._results(CHANNELS[name](questions)) for name in where}
        for name, results in found.items():
            asked = len(next(iter(results.values())))
            print(f"\n{half} half, {name}: {asked} questions\n\n{markdown(rows(results))}")
            print(f"\n{markdown(searching_rows(results))}", flush=True)
        shared = found.get("collections")
        if shared is None:
            return True
        missed = misses(shared[self._answerers[0].name])[:worst]
        print(*missed, *sampled_replies(shared[self._answerers[-1].name], show), sep="\n")
        return half != "test" or self._meets_bars(shared)

    def _meets_bars(self, results: Results) -> bool:
        found = [bar for one in self._answerers for bar in self._bars(one, results)]
        lines = [(one.what, one.bar, one.measured, VERDICTS[one.is_met]) for one in found]
        print(f"\n{markdown([('bar', 'asked', 'measured', ''), *lines])}")
        return all(one.is_met for one in found)

    def _bars(self, answerer: Answerer, results: Results) -> list[Bar]:
        marks = [mark for one in of_kinds(results[answerer.name], *Kind) for mark in one.reply.marks]
        searched = [] if answerer.settings else [removing(answerer.name, results)]
        return searched + bars(
            answerer.name, results[answerer.name], count_highlights(marks, self._files), answerer.limits
        )

    def _results(self, asked: Sequence[Asked]) -> Results:
        """Return the results of every answerer and every baseline."""
        replies = {one.name: one.home.ask(asked, **one.settings) for one in self._answerers}
        return {
            name: [Result(one, reply) for one, reply in zip(asked, found, strict=True)]
            for name, found in (replies | self._baselines.search(asked)).items()
        }


if __name__ == "__main__":
    main()
