"""``make eval CORPUS=DIR``: how well questions are answered, beside a plain search of the same pages.

Every question of ``questions/`` is asked where its whole collection is and, when it is about one document,
where only that is. Prints tables for each half and kind of channel, and whether the test half meets the bars.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.figures import VERDICTS, markdown
from evaluation.asking import Asked, Home, in_collections, in_documents
from evaluation.baselines import Baselines
from evaluation.golden import Golden, load_questions, unproven
from evaluation.highlights import count_highlights
from evaluation.measures import Result
from evaluation.report import Results, bars, misses, rows, searching_rows

ENGINES: dict[str, dict[str, str]] = {"embedded": {}, "weaviate": {"WEAVIATE_URL": "embedded"}}


def main() -> None:
    """Print the tables; the exit status says whether every bar was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the collections")
    parser.add_argument("--half", choices=("tuning", "test"), action="append", help="this half alone")
    parser.add_argument("--engine", choices=tuple(ENGINES), action="append", help="this engine alone")
    parser.add_argument("--worst", type=int, default=0, help="list so many misses")
    asked = parser.parse_args()
    homes = [Home(name, ENGINES[name]) for name in asked.engine or ENGINES]
    evaluation = Evaluation(asked.corpus, homes, load_questions())
    met = [evaluation.report(half, asked.worst) for half in asked.half or ("tuning", "test")]
    sys.exit(not all(met))


class Evaluation:
    """The corpus, read once for every engine and for the baselines."""

    def __init__(self, corpus: Path, homes: Sequence[Home], questions: Sequence[Golden]) -> None:
        """Read whatever the homes have not read yet."""
        self._questions = questions
        collections = sorted({one.collection for one in questions})
        files = [file for name in collections for file in sorted((corpus / name).glob("*.pdf"))]
        self._files = {file.name: file for file in files}
        self._baselines = Baselines(files)
        if wrong := unproven(questions, self._baselines.texts):
            sys.exit("\n".join(["labels that the pages do not bear out:", *wrong]))
        self._homes = homes
        for home in homes:
            home.ingest(files)

    def report(self, half: str, worst: int) -> bool:
        """Print the tables of a half; returns whether its bars are met (only the test half has any)."""
        questions = [one for one in self._questions if one.half == half]
        shared = self._results(in_collections(questions))
        for where, results in (
            ("whole collections", shared),
            ("single documents", self._results(in_documents(questions))),
        ):
            asked = len(next(iter(results.values())))
            print(f"\n{half} half, {where}: {asked} questions\n\n{markdown(rows(results))}")
            print(f"\n{markdown(searching_rows(results))}")
        print(*misses(shared[self._homes[0].name])[:worst], sep="\n")
        return half != "test" or self._meets_bars(shared)

    def _meets_bars(self, results: Results) -> bool:
        found = []
        for home in self._homes:
            marks = [mark for one in results[home.name] for mark in one.reply.marks]
            found += bars(home.name, results, count_highlights(marks, self._files))
        lines = [(one.what, one.bar, one.measured, VERDICTS[one.is_met]) for one in found]
        print(f"\n{markdown([('bar', 'asked', 'measured', ''), *lines])}")
        return all(one.is_met for one in found)

    def _results(self, asked: Sequence[Asked]) -> Results:
        """Of every engine and every baseline."""
        replies = {home.name: home.ask(asked) for home in self._homes} | self._baselines.search(asked)
        return {
            name: [Result(one, reply) for one, reply in zip(asked, found, strict=True)]
            for name, found in replies.items()
        }


if __name__ == "__main__":
    main()
