#!/usr/bin/env python3
"""The drawing of docs/architecture.md, made of its table of modules and its two walks.

  tools/scripts/plot_architecture.py [--check]   writes docs/architecture_light.svg and _dark.svg, or says
                                                 (code 1) that they are not what the page says
"""
import argparse
import html
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
FLOORS = [["tools"], ["training"], ["losses", "layers", "retrieval"], ["kernels", "weights", "data"], ["engine"]]
LOOKS = {
    "light": {"paper": "#ffffff", "box": "#f6f8fa", "line": "#afb8c1", "text": "#1f2328", "faint": "#59636e",
              "arrow": "#8c959f", "A training step": "#0969da", "An evaluation": "#bc4c00", "on": "#ffffff"},
    "dark": {"paper": "#0d1117", "box": "#161b22", "line": "#3d444d", "text": "#f0f6fc", "faint": "#9198a1",
             "arrow": "#656c76", "A training step": "#4493f8", "An evaluation": "#f0883e", "on": "#0d1117"},
}
WALKS = ["A training step", "An evaluation"]
# How many columns of modules each row has, chosen so that all arrows but one point straight down: three folders
# over three, of which six pairs are tied, cannot lie straight above each other.
COLUMNS = {"tools": 4, "kernels": 3, "retrieval": 2, "engine": 4}
WIDTH, MARGIN, LINE, HEAD, GAP = 980, 20, 24, 30, 34


def modules(page):
    """{module: [modules it names]} of the table."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            found[cells[0].strip("`")] = re.findall(r"`([^`]+)`", cells[2])
    return found


def walk(page, title):
    """[(number, module)] of the numbered list under a title."""
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    return [(int(number), module) for number, module in re.findall(r"^(\d+)\. `([^`]+)`", section, re.MULTILINE)]


def may_use(table, module):
    found, open_modules = set(), list(table[module])
    while open_modules:
        other = open_modules.pop()
        if other not in found:
            found.add(other)
            open_modules += table[other]
    return found


def folder_arrows(table):
    """Between top folders, without those that follow from others."""
    top = lambda module: module.split("/")[0]
    direct = {}
    for module in table:
        direct.setdefault(top(module), set()).update({top(other) for other in may_use(table, module)} - {top(module)})
    return [(a, b) for a in direct for b in sorted(direct[a])
            if not any(b in direct[between] for between in direct[a] if between != b)]


def draw(page, look):
    table = modules(page)
    marks = {}
    for title in WALKS:
        for number, module in walk(page, title):
            marks.setdefault(module, []).append((title, number))
    out, places, y = [], {}, MARGIN

    def text(x, y, words, fill, size=13, weight="normal", anchor="start"):
        out.append(f'<text x="{x:.0f}" y="{y:.0f}" fill="{fill}" font-size="{size}" font-weight="{weight}" '
                   f'text-anchor="{anchor}">{html.escape(words)}</text>')

    def circles(x, y, of):
        for title, number in of:
            out.append(f'<circle cx="{x:.0f}" cy="{y - 4:.0f}" r="9" fill="{look[title]}"/>')
            text(x, y, str(number), look["on"], 11, "bold", "middle")
            x += 21

    for floor in FLOORS:
        lists = {folder: [module for module in table if module.startswith(folder + "/")] for folder in floor}
        columns = {folder: COLUMNS.get(folder, 1) for folder in floor}
        rows = max(-(-len(lists[folder]) // columns[folder]) for folder in floor)
        height = HEAD + rows * LINE + 8
        share = (WIDTH - 2 * MARGIN - (len(floor) - 1) * 16) / sum(columns.values())
        x = MARGIN
        for folder in floor:
            width = share * columns[folder]
            places[folder] = (x, y, width, height)
            out.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="8" '
                       f'fill="{look["box"]}" stroke="{look["line"]}"/>')
            text(x + 12, y + 21, folder + "/", look["text"], 15, "bold")
            circles(x + 12 + 9.8 * len(folder) + 22, y + 21, marks.get(folder, []))
            for i, module in enumerate(lists[folder]):
                column, row = divmod(i, rows)
                left, base = x + 12 + column * width / columns[folder], y + HEAD + row * LINE + 16
                name = module[len(folder) + 1:]
                text(left, base, name, look["text"])
                circles(left + 7.4 * len(name) + 16, base, marks.get(module, []))
            x += width + 16
        y += height + GAP
    for a, b in folder_arrows(table):
        ax, ay, aw, ah = places[a]
        bx, by, bw, _ = places[b]
        left, right = max(ax, bx), min(ax + aw, bx + bw)
        start = (left + right) / 2 if right > left else ax + aw / 2
        end = start if right > left else bx + bw / 2
        out.append(f'<path d="M{start:.0f} {ay + ah:.0f} L{end:.0f} {by - 6:.0f}" stroke="{look["arrow"]}" '
                   f'stroke-width="1.5" fill="none" marker-end="url(#tip)"/>')
    for i, title in enumerate(WALKS):
        x = MARGIN + i * 260
        out.append(f'<circle cx="{x + 9}" cy="{y - 8:.0f}" r="9" fill="{look[title]}"/>')
        text(x + 26, y - 4, title.lower() + ", in this order", look["faint"])
    text(WIDTH - MARGIN, y - 4, "an arrow: uses", look["faint"], anchor="end")
    height = y + 14
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" font-family="system-ui, sans-serif" role="img" '
            f'aria-label="The modules of Rankine and the ways through them">\n'
            f'<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{look["arrow"]}"/></marker></defs>\n'
            f'<rect width="100%" height="100%" fill="{look["paper"]}"/>\n' + "\n".join(out) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether the drawings are what the page says")
    options = parser.parse_args()
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    stale = []
    for name, look in LOOKS.items():
        file, drawing = DOCS / f"architecture_{name}.svg", draw(page, look)
        if options.check:
            if not file.exists() or file.read_text(encoding="utf-8") != drawing:
                stale.append(str(file))
        else:
            file.write_text(drawing, encoding="utf-8")
    if stale:
        print(f"{', '.join(stale)}: not what docs/architecture.md says; run tools/scripts/plot_architecture.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
