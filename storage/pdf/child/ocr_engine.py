"""Detection and recognition of text lines in a page image with RapidOCR, whose models are in its wheel.

Runs in the child of kind "ocr": one thread, no network, no files. The models read the Latin alphabet with
European accents, Greek, Chinese and Japanese; not Vietnamese, Cyrillic and Arabic.

The words of a line are separated by its ink: gaps between words are wider than those between letters.
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

# Pixel rows, each pixel (blue, green, red).
Picture = NDArray[np.uint8]

# Below this score it is a stamp, a pattern or an unknown script more often than text.
MIN_SCORE = 0.6

# Lines are detected in a smaller image than they are read in, in a third of the time and half the memory: at
# this resolution, but a small page at least as large as a sheet of A4 would be.
DETECTION_DPI, MIN_DETECTION_SIDE, MAX_DETECTION_SIDE = 110, 1286, 2000

# Ratio of height to width from which a box is vertical text, or a single narrow letter.
VERTICAL_RATIO = 1.5

# Lines that are read to test whether the page is upside down, and the score below which it may be.
SAMPLE_LINES, MIN_UPRIGHT_SCORE = 6, 0.9

# The spaces around a middle dot are often missed.
_WORD = re.compile(r"[·•]|[^\s·•]+")

_PARAMETERS = {
    "Global.log_level": "critical",
    "Global.use_cls": False,  # it takes long upside-down lines for upright ones
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
    """Return a mask of printed pixels, for paper of any colour."""
    grey = cv2.cvtColor(line, cv2.COLOR_BGR2GRAY)
    _, light = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    is_light_paper = np.mean(light) > 127
    return np.asarray(light == (0 if is_light_paper else 255), np.bool_)


class OcrEngine:
    """Loads the models on creation; a missing model file ends the process, nothing is downloaded."""

    def __init__(self) -> None:
        cv2.setNumThreads(1)
        folder = Path(rapidocr.__file__).parent / "models"
        models = {name: str(folder / file) for name, file in _MODELS.items()}
        self._ocr: Any = rapidocr.RapidOCR(params=_PARAMETERS | models)
        sample = np.full((96, 320, 3), 255, np.uint8)  # loads every model while files can still be opened
        cv2.putText(sample, "Footnote", (20, 60), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (0, 0, 0), 3)
        self._ocr(sample)

    def read(self, picture: Picture, dpi: float) -> list[SeenLine]:
        """Return all lines of an image at ``dpi``, unordered; it may be sideways or upside down."""
        quads = self._find(picture, dpi)
        if _lie_on_side(quads):
            upright = np.ascontiguousarray(np.rot90(picture))
            lines = self._recognise(upright, self._find(upright, dpi))
            return [line.turned_back(picture.shape[1]) for line in lines]
        return self._recognise(picture, quads)

    def _recognise(self, picture: Picture, quads: Sequence[Quad]) -> list[SeenLine]:
        """Recognise the text in these boxes."""
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
        """Detect text boxes, each as corners that begin at the image's top left."""
        side = max(picture.shape)
        scale = min(1.0, max(DETECTION_DPI / dpi, MIN_DETECTION_SIDE / side), MAX_DETECTION_SIDE / side)
        small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        boxes = self._ocr.text_det(small).boxes
        return [] if boxes is None else [_straightened(np.asarray(box) / scale) for box in boxes]

    def _turn(self, picture: Picture, quads: Sequence[Quad]) -> list[Quad]:
        """Rotate the corners of each box so that they begin where its text begins; most text is horizontal.

        A tall box that is longer than two letters are high is vertical text, else a narrow letter.
        """
        thickness = float(np.median([min(_sides(quad)) for quad in quads]))
        labels = [index for index, quad in enumerate(quads) if _is_tall(quad, thickness)]
        across = [quad for index, quad in enumerate(quads) if index not in labels]
        asked = sorted(across, key=lambda quad: _sides(quad)[0])[-3 * SAMPLE_LINES :: 3]
        turns = 2 if asked and self._are_on_head(picture, asked) else 0
        turned = [np.roll(quad, -turns, axis=0) for quad in quads]
        for index in labels:
            runs_down = np.roll(quads[index], -1, axis=0)
            is_up = self._are_on_head(picture, [runs_down])
            turned[index] = _on_head(runs_down) if is_up else runs_down
        return turned

    def _are_on_head(self, picture: Picture, quads: Sequence[Quad]) -> bool:
        """True if lines of one direction have a higher score upside down."""
        as_is = self._certainty(picture, quads)
        return (
            as_is < MIN_UPRIGHT_SCORE and self._certainty(picture, [_on_head(quad) for quad in quads]) > as_is
        )

    def _certainty(self, picture: Picture, quads: Sequence[Quad]) -> float:
        read = self._ocr.text_rec(TextRecInput(img=[_crop(picture, quad) for quad in quads]))
        return float(np.mean(read.scores))


def _straightened(quad: Quad) -> Quad:
    """Return the box with equal sides: a tapered one would be read as if in perspective."""
    left, right = (quad[0] + quad[3]) / 2, (quad[1] + quad[2]) / 2
    half = (quad[3] - quad[0] + quad[2] - quad[1]) / 4
    return np.array((left - half, right - half, right + half, left + half), np.float32)


def _lie_on_side(quads: Sequence[Quad]) -> bool:
    """True if most of the page's text is vertical."""
    sides = [_sides(quad) for quad in quads]
    tall = sum(height for width, height in sides if height >= VERTICAL_RATIO * width)
    return tall > sum(width for width, height in sides if height < VERTICAL_RATIO * width)


def _is_tall(quad: Quad, thickness: float) -> bool:
    width, height = _sides(quad)
    return height >= VERTICAL_RATIO * width and height > 2 * thickness


def _on_head(quad: Quad) -> Quad:
    return np.roll(quad, -2, axis=0)


def _sides(quad: Quad) -> tuple[float, float]:
    """Return width and height."""
    return float(np.linalg.norm(quad[0] - quad[1])), float(np.linalg.norm(quad[0] - quad[3]))


def _crop(picture: Picture, quad: Quad) -> Picture:
    """Return the image of a box, rectified."""
    width, height = (max(1, round(side)) for side in _sides(quad))
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    bend = cv2.getPerspectiveTransform(quad.astype(np.float32), corners)
    piece = cv2.warpPerspective(
        picture, bend, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(piece, np.uint8)


def _words(text: str, about: Any, quad: Quad, crop: Picture) -> list[tuple[str, Quad]]:
    """Return a line's words with boxes, from the model's letter positions and the gaps in the ink."""
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
    nearest = crop.shape[0] / crop.shape[1]  # the line's height as a fraction of its width
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
