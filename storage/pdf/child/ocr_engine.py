"""Finds and reads the lines of a page's picture with RapidOCR, whose models come in its wheel.

Runs in the limited child of kind "ocr": one thread, no network, no files. The models read the Latin alphabet
with Europe's accents, Greek, Chinese and Japanese; not Vietnamese, Cyrillic and Arabic.

The words of a line are found in its ink: the white gaps between them are wider than those between letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rapidocr
from numpy.typing import NDArray
from rapidocr.ch_ppocr_rec import TextRecInput

from storage.pdf.child.glyphs.line_ink import Ink, with_raised_digits, word_spans
from storage.pdf.child.ocr_layout import Quad, SeenLine

# Rows of pixels, each (blue, green, red).
Picture = NDArray[np.uint8]

# What is read with less certainty is a stamp, a pattern or an unknown script more often than words.
MIN_SCORE = 0.6

# Lines are found in a smaller picture than they are read in, in a third of the time and half the memory: at
# this resolution, and that of a small page in one as long as a sheet of A4 gives.
DETECTION_DPI, MIN_DETECTION_SIDE, MAX_DETECTION_SIDE = 110, 1286, 2000

# Height to width from which on a box holds text that runs down or up, or a single slim letter.
TALL = 1.5

# So many lines are read to see whether the page stands on its head: below this certainty it may.
ASKED, SURE = 6, 0.9

# The spaces around a middle dot are often not seen.
_WORD = re.compile(r"[·•]|[^\s·•]+")

_PARAMETERS = {
    "Global.log_level": "critical",
    "Global.use_cls": False,  # it takes long lines that stand on their heads for upright ones
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    "Det.limit_type": "max",
    "Det.limit_side_len": MAX_DETECTION_SIDE,
    "Rec.rec_batch_num": 1,  # a batch is padded to its longest line, which costs time and memory
}
_MODELS = {
    "Det.model_path": "PP-OCRv6_det_small.onnx",
    "Rec.model_path": "PP-OCRv6_rec_small.onnx",
}


def _ink(line: Picture) -> Ink:
    """True for each pixel with something printed, on paper of any colour."""
    grey = cv2.cvtColor(line, cv2.COLOR_BGR2GRAY)
    _, light = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    is_light_paper = np.mean(light) > 127
    return np.asarray(light == (0 if is_light_paper else 255), np.bool_)


class OcrEngine:
    """Loads the models when made; a file of theirs that is missing ends the program, nothing is fetched."""

    def __init__(self) -> None:
        cv2.setNumThreads(1)
        folder = Path(rapidocr.__file__).parent / "models"
        models = {name: str(folder / file) for name, file in _MODELS.items()}
        self._ocr: Any = rapidocr.RapidOCR(params=_PARAMETERS | models)
        sample = np.full((96, 320, 3), 255, np.uint8)  # has every model loaded while files can be opened
        cv2.putText(sample, "Footnote", (20, 60), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (0, 0, 0), 3)
        self._ocr(sample)

    def read(self, picture: Picture, dpi: float) -> list[SeenLine]:
        """Every line of a picture drawn at ``dpi``, in no order; a page may lie on its side or its head."""
        quads = self._find(picture, dpi)
        if _lie_on_side(quads):
            upright = np.ascontiguousarray(np.rot90(picture))
            lines = self._recognise(upright, self._find(upright, dpi))
            return [line.turned_back(picture.shape[1]) for line in lines]
        return self._recognise(picture, quads)

    def _recognise(self, picture: Picture, quads: Sequence[Quad]) -> list[SeenLine]:
        """What stands in these boxes."""
        if not quads:
            return []
        upright = self._turn(picture, quads)
        crops = [_crop(picture, quad) for quad in upright]
        read = self._ocr.text_rec(TextRecInput(img=crops, return_word_box=True))
        results = zip(upright, crops, read.txts, read.scores, read.word_results, strict=True)
        return [
            SeenLine(tuple(_words(text, about, quad, crop)), quad, float(score))
            for quad, crop, text, score, about in results
            if score >= MIN_SCORE and text.strip()
        ]

    def _find(self, picture: Picture, dpi: float) -> list[Quad]:
        """Where text is, each corner list beginning at the picture's top left."""
        side = max(picture.shape)
        scale = min(1.0, max(DETECTION_DPI / dpi, MIN_DETECTION_SIDE / side), MAX_DETECTION_SIDE / side)
        small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        boxes = self._ocr.text_det(small).boxes
        return [] if boxes is None else [_straightened(np.asarray(box) / scale) for box in boxes]

    def _turn(self, picture: Picture, quads: Sequence[Quad]) -> list[Quad]:
        """Return the same boxes, each beginning where its text begins; most of it runs across.

        A box is a label that runs down or up when it is tall and longer than two letters are high,
        else it is a slim letter.
        """
        thickness = float(np.median([min(_sides(quad)) for quad in quads]))
        labels = [index for index, quad in enumerate(quads) if _is_tall(quad, thickness)]
        across = [quad for index, quad in enumerate(quads) if index not in labels]
        asked = sorted(across, key=lambda quad: _sides(quad)[0])[-3 * ASKED :: 3]
        turns = 2 if asked and self._are_on_head(picture, asked) else 0
        turned = [np.roll(quad, -turns, axis=0) for quad in quads]
        for index in labels:
            runs_down = np.roll(quads[index], -1, axis=0)
            is_up = self._are_on_head(picture, [runs_down])
            turned[index] = _on_head(runs_down) if is_up else runs_down
        return turned

    def _are_on_head(self, picture: Picture, quads: Sequence[Quad]) -> bool:
        """True if lines that lie together are read with more certainty when they are turned round."""
        as_is = self._certainty(picture, quads)
        return as_is < SURE and self._certainty(picture, [_on_head(quad) for quad in quads]) > as_is

    def _certainty(self, picture: Picture, quads: Sequence[Quad]) -> float:
        read = self._ocr.text_rec(TextRecInput(img=[_crop(picture, quad) for quad in quads]))
        return float(np.mean(read.scores))


def _straightened(quad: Quad) -> Quad:
    """Return the same box with equal sides: a box that narrows would be read as if seen from the side."""
    left, right = (quad[0] + quad[3]) / 2, (quad[1] + quad[2]) / 2
    half = (quad[3] - quad[0] + quad[2] - quad[1]) / 4
    return np.array((left - half, right - half, right + half, left + half), np.float32)


def _lie_on_side(quads: Sequence[Quad]) -> bool:
    """Most of a page's text runs down or up."""
    sides = [_sides(quad) for quad in quads]
    tall = sum(height for width, height in sides if height >= TALL * width)
    return tall > sum(width for width, height in sides if height < TALL * width)


def _is_tall(quad: Quad, thickness: float) -> bool:
    width, height = _sides(quad)
    return height >= TALL * width and height > 2 * thickness


def _on_head(quad: Quad) -> Quad:
    return np.roll(quad, -2, axis=0)


def _sides(quad: Quad) -> tuple[float, float]:
    """Width and height."""
    return float(np.linalg.norm(quad[0] - quad[1])), float(np.linalg.norm(quad[0] - quad[3]))


def _crop(picture: Picture, quad: Quad) -> Picture:
    """Return the piece of the picture in a box, as its reader sees it."""
    width, height = (max(1, round(side)) for side in _sides(quad))
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    bend = cv2.getPerspectiveTransform(quad.astype(np.float32), corners)
    piece = cv2.warpPerspective(
        picture, bend, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(piece, np.uint8)


def _words(text: str, about: Any, quad: Quad, crop: Picture) -> list[tuple[str, Quad]]:
    """Return a line's words: about where the model saw their letters, exactly where the ink has its gaps."""
    words: list[str] = _WORD.findall(text)
    columns = [column for word in about.word_cols for column in word]
    pitch = (columns[-1] - columns[0]) / max(1, len(text.strip()) - 1) or about.line_txt_len / 2
    ends = list(accumulate(map(len, words)))
    spans = [
        ((columns[end - len(word)] + 0.5 - pitch / 2) / about.line_txt_len,
         (columns[end - 1] + 0.5 + pitch / 2) / about.line_txt_len)
        for word, end in zip(words, ends, strict=True)
    ]  # fmt: skip
    ink = _ink(crop)
    exact = word_spans(ink, len(words))
    nearest = crop.shape[0] / crop.shape[1]  # the line's height, as a share of its width
    pairs = list(zip(spans, exact, strict=False))
    if exact and all(abs(sum(one) - sum(other)) < 2 * nearest for one, other in pairs):
        spans = exact
    return [
        (word, _part(quad, max(0.0, left), min(1.0, right)))
        for word, (left, right) in zip(with_raised_digits(words, spans, ink), spans, strict=True)
    ]


def _part(quad: Quad, left: float, right: float) -> Quad:
    """Return the part of a box between two fractions of its width."""
    top, bottom = quad[1] - quad[0], quad[2] - quad[3]
    corners = (quad[0] + top * left, quad[0] + top * right, quad[3] + bottom * right, quad[3] + bottom * left)
    return np.array(corners, np.float32)
