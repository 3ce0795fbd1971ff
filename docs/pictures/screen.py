#!/usr/bin/env python3
"""A terminal's screen as SVG, text as text: `tmux capture-pane -e -p | docs/pictures/screen.py > top.svg`."""
import html
import re
import sys
import unicodedata

WIDTH, HEIGHT, SIZE = 8.4, 18, 14
FOREGROUND, BACKGROUND = "#d4d4d4", "#1a1b1e"
COLOURS = ["#3b3d42", "#f2545b", "#5fbf77", "#e5c04b", "#5b8def", "#c678dd", "#45c1d0", "#d4d4d4"]
BRIGHT = ["#7a7d85", "#ff7b80", "#7fdc96", "#ffdd70", "#82aaff", "#e09bf3", "#6fe0ec", "#ffffff"]


def colour(codes, default):
    """The colour of the codes after 38 or 48, and how many they are."""
    if codes[0] == 5:
        number = codes[1]
        return ((COLOURS + BRIGHT)[number] if number < 16 else default), 2
    return "#%02x%02x%02x" % tuple(codes[1:4]), 4


def cells(line):
    """Letters of a line with their style."""
    style = {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not part.startswith("\x1b"):
            for letter in part:
                yield letter, dict(style)
            continue
        codes = [int(code or 0) for code in part[2:-1].split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                style = {}
            elif code in (1, 2, 7):
                style[{1: "bold", 2: "dim", 7: "reverse"}[code]] = True
            elif code in (22, 27):
                for name in {22: ("bold", "dim"), 27: ("reverse",)}[code]:
                    style.pop(name, None)
            elif code in (38, 48):
                style["fg" if code == 38 else "bg"], used = colour(codes, FOREGROUND)
                del codes[:used]
            elif code in (39, 49):
                style.pop("fg" if code == 39 else "bg", None)
            elif 30 <= code < 38 or 40 <= code < 48:
                style["fg" if code < 40 else "bg"] = COLOURS[code % 10]
            elif 90 <= code < 98 or 100 <= code < 108:
                style["fg" if code < 100 else "bg"] = BRIGHT[code % 10]


def block(letter, x, y):
    """What fonts draw differently is drawn: blocks of eighths and lines. None for what is a letter."""
    code = ord(letter)
    if 0x2581 <= code <= 0x2588:
        part = (code - 0x2580) / 8
        return x, y + HEIGHT * (1 - part), WIDTH, HEIGHT * part
    if 0x2589 <= code <= 0x258F:
        return x, y, WIDTH * (0x2590 - code) / 8, HEIGHT
    lines = {"│": (0.5, 1.4), "┃": (0.5, 3), "╎": (0.5, 1)}
    if letter in lines:
        at, wide = lines[letter]
        return x + WIDTH * at - wide / 2, y, wide, HEIGHT
    if letter == "─":
        return x, y + HEIGHT / 2, WIDTH, 1
    return None


def runs(line):
    """Neighbours of one style and kind, with the column of the first."""
    run, at = None, 0
    for letter, style in cells(line):
        is_block = block(letter, 0, 0) is not None
        key = (tuple(sorted(style.items())), letter if is_block else "")
        if run and run[0] == key:
            run[2] += letter
        else:
            if run:
                yield run[1], run[2], dict(run[0][0])
            run = [key, at, letter]
        at += 2 if unicodedata.east_asian_width(letter) == "W" else 1
    if run:
        yield run[1], run[2], dict(run[0][0])


def draw(lines, columns):
    wide, high = columns * WIDTH + 24, len(lines) * HEIGHT + 24
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" font-size="{SIZE}" '
           f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" xml:space="preserve">')
    yield f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
    for row, line in enumerate(lines):
        for column, text, style in runs(line):
            x, y = 12 + column * WIDTH, 12 + row * HEIGHT
            fg, bg = style.get("fg", FOREGROUND), style.get("bg")
            if style.get("reverse"):
                fg, bg = bg or BACKGROUND, fg
            if bg:
                yield f'<rect x="{x:g}" y="{y:g}" width="{len(text) * WIDTH:g}" height="{HEIGHT}" fill="{bg}"/>'
            fade = ' opacity=".55"' if style.get("dim") else ""
            shape = block(text[0], x, y)
            if shape and (text[0] == "─" or ord(text[0]) in range(0x2581, 0x2589)):
                left, top, _, tall = shape
                yield f'<rect x="{left:g}" y="{top:g}" width="{len(text) * WIDTH:g}" height="{tall:g}" fill="{fg}"{fade}/>'
            elif shape:
                for index in range(len(text)):
                    left, top, broad, tall = block(text[0], x + index * WIDTH, y)
                    yield f'<rect x="{left:g}" y="{top:g}" width="{broad:g}" height="{tall:g}" fill="{fg}"{fade}/>'
            elif text.strip():
                weight = ' font-weight="bold"' if style.get("bold") else ""
                yield (f'<text x="{x:g}" y="{y + 13.5:g}" textLength="{len(text) * WIDTH:g}" fill="{fg}"{weight}{fade}>'
                       f'{html.escape(text).replace(" ", chr(160))}</text>')
    yield "</svg>"


LINES = sys.stdin.read().rstrip("\n").split("\n")
COLUMNS = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in LINES)
print("\n".join(draw(LINES, COLUMNS)))
