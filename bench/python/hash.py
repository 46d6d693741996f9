"""imagehash.phash on screens from a file: `hash.py SCREENS.rgba WIDTH HEIGHT TOP`, then a line of stdin for each round."""

import json
import sys
import time

import imagehash
from PIL import Image

path, width, height, top = sys.argv[1], *map(int, sys.argv[2:5])
with open(path, "rb") as file:
    raw = file.read()
size = width * height * 4
images = [Image.frombytes("RGBA", (width, height), raw[at : at + size]).convert("RGB") for at in range(0, len(raw), size)]
print(json.dumps({"version": f"imagehash {imagehash.__version__}"}), flush=True)
for _ in sys.stdin:
    started = time.perf_counter()
    hashes = [str(imagehash.phash(image.crop((0, top, width, height)))) for image in images]
    print(json.dumps({"seconds": time.perf_counter() - started, "hashes": hashes}), flush=True)
