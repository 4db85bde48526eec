#!/usr/bin/env python3
"""Draws commands and what they print as a terminal, in SVG, for the README.

usage: terminal-svg.py OUT.svg [--lines N] -- COMMAND [-- COMMAND ...]

A command is run as written, with colors; `margay` is looked for in PATH. At most N lines of each are shown.
"""
import html
import os
import re
import shlex
import subprocess
import sys

CHAR, LINE, PAD = 8.4, 19, 18
# Spaces that no renderer collapses.
NBSP = "\u00a0"
COLOURS = {30: "#6e7681", 31: "#ff7b72", 32: "#7ee787", 33: "#f2cc60", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 37: "#e6edf3"}


def pieces(line):
    """The runs of a line: style and text."""
    style = {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        found = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not found:
            if part:
                yield dict(style), part
            continue
        codes = [int(c or 0) for c in found.group(1).split(";")]
        if codes[:2] == [38, 5]:
            style["fill"] = COLOURS[30 + codes[2] % 8]
            continue
        for code in codes:
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code % 10 < 8 and code // 10 in (3, 9):
                style["fill"] = COLOURS[30 + code % 10]


def main():
    out, *rest = sys.argv[1:]
    most = 40
    if rest[0] == "--lines":
        most, rest = int(rest[1]), rest[2:]
    commands, lines = [], []
    for word in rest:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    for command in commands:
        typed = shlex.join(word for word in command if word != "--color=always")
        lines.append(f"\x1b[32m$\x1b[0m \x1b[1m{typed}\x1b[0m")
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "CLICOLOR_FORCE": "1"})
        shown = ran.stdout.rstrip("\n").split("\n")
        lines += shown[:most] + (["…"] if len(shown) > most else []) + [""]
    lines = [line.expandtabs(4) for line in lines[:-1]]
    longest = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    width, height = int(longest * CHAR + 2 * PAD), len(lines) * LINE + 2 * PAD
    with open(out, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n')
        f.write(f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n')
        f.write('<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" fill="#e6edf3">\n')
        for i, line in enumerate(lines):
            runs = ""
            for style, text in pieces(line):
                attributes = "".join(f' {name}="{value}"' for name, value in style.items())
                kept = html.escape(text).replace(" ", NBSP)
                runs += f"<tspan{attributes}>{kept}</tspan>"
            f.write(f'<text x="{PAD}" y="{PAD + i * LINE + 14}">{runs}</text>\n')
        f.write("</g>\n</svg>\n")


main()
