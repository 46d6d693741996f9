"""Writes hash-vectors.json: perceptual hashes by Python's imagehash 4.3.2 of images given by a formula.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install imagehash==4.3.2 pillow==12.0.0
    /tmp/venv/bin/python test/golden/make-hash-vectors.py

An image is {w, h, kind, seed, crop}; rl/hash.test.ts builds the same bytes from the same formulas, so no pixels are
kept here. Pillow is pinned: version 13 shrinks tall pictures vertically first, which changes single grey values and so a
bit near the median now and then (5 of the 54 vectors); the definition is the order of all versions before. All arithmetic is on integers. The screens crop their status bar (rows at the top, rows at the bottom).
"""

import json
import pathlib

import imagehash
import numpy
from PIL import Image

MASK = 0xFFFFFFFF


class Words:
    """A 32-bit linear congruential generator; the upper bits are used."""

    def __init__(self, seed):
        self.state = (seed * 2654435761 + 12345) & MASK

    def below(self, n):
        self.state = (self.state * 1664525 + 1013904223) & MASK
        return (self.state >> 8) % n


def noise(w, h, seed):
    words = Words(seed)
    return numpy.array([words.below(256) for _ in range(w * h * 3)], numpy.uint8).reshape(h, w, 3)


def waves(w, h, seed):
    """Quadratic ramps that wrap round, different in each channel."""
    y, x = numpy.mgrid[0:h, 0:w].astype(numpy.int64)
    channels = [((x * x * (seed + c) + y * y * (c + 2) + x * y * 3 + seed * 17) // (64 + 32 * c)) % 256 for c in range(3)]
    return numpy.stack(channels, axis=2).astype(numpy.uint8)


def screen(w, h, seed):
    """Phone-like: a background, bars, rows with darker 'words', a few buttons. Flat areas and sharp edges."""
    words = Words(seed)
    pixels = numpy.empty((h, w, 3), numpy.uint8)
    pixels[:, :] = [words.below(40) + 210 for _ in range(3)]

    def fill(x, y, bw, bh, colour):
        pixels[max(y, 0) : max(min(y + bh, h), 0), max(x, 0) : max(min(x + bw, w), 0)] = colour

    fill(0, 0, w, h // 12, [words.below(256) for _ in range(3)])
    for i in range(3 + words.below(8)):
        y = h // 10 + (i * h) // 12
        fill(w // 20, y, w // 3 + words.below(w // 2), max(h // 60, 1), [words.below(120) for _ in range(3)])
        if words.below(2):
            fill(w - w // 6, y, w // 10, max(h // 40, 1), [words.below(256) for _ in range(3)])
    for _ in range(1 + words.below(4)):
        fill(words.below(w), words.below(h), 2 + words.below(w // 2), 2 + words.below(h // 6), [words.below(256) for _ in range(3)])
    return pixels


KINDS = {"noise": noise, "waves": waves, "screen": screen}
SIZES = [(32, 32), (33, 31), (64, 64), (8, 8), (17, 90), (100, 20), (31, 32), (32, 45), (128, 96), (5, 40)]
PHONES = [(195, 422), (195, 422), (180, 390), (206, 458), (390, 844), (270, 600), (216, 480), (320, 240)]


def main():
    cases = []
    for i, (w, h) in enumerate(SIZES):
        cases.append({"w": w, "h": h, "kind": "noise", "seed": i + 1, "crop": None})
        cases.append({"w": w, "h": h, "kind": "waves", "seed": i + 1, "crop": None})
    for i, (w, h) in enumerate(PHONES * 4):
        crop = None if i % 4 == 3 else [h // 24, (h // 40) * (i % 2)]
        cases.append({"w": w, "h": h, "kind": "screen", "seed": 100 + i, "crop": crop})
    cases.append({"w": 195, "h": 422, "kind": "noise", "seed": 900, "crop": [17, 3]})
    cases.append({"w": 300, "h": 7, "kind": "waves", "seed": 901, "crop": [1, 1]})
    for case in cases:
        image = KINDS[case["kind"]](case["w"], case["h"], case["seed"])
        top, bottom = case["crop"] or (0, 0)
        case["sum"] = int(image.astype(numpy.int64).sum())
        case["hash"] = str(imagehash.phash(Image.fromarray(image[top : case["h"] - bottom])))
    path = pathlib.Path(__file__).with_name("hash-vectors.json")
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    path.write_text("[\n" + lines + "\n]\n")
    print(len(cases), "vectors")


if __name__ == "__main__":
    main()
