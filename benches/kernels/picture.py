"""A chart of times over those of natural C, as SVG: one row a kernel, one bar a contender, on a logarithmic scale."""
import math
COLOURS = {"margay": "#d9480f", "PoCL": "#1971c2", "Intel OpenCL": "#868e96"}
LEFT, WIDTH, BAR, GAP, TOP = 150, 560, 9, 10, 46


def picture(results, names):
    bars = [(case.label, [(n, found[n][0] / found["C"][0]) for n in names if isinstance(found.get(n), tuple)]) for case, found in results]
    ratios = [r for _, row in bars for _, r in row] + [1.0]
    low, high = math.floor(math.log10(min(ratios))), math.ceil(math.log10(max(ratios)))
    x = lambda ratio: LEFT + WIDTH * (math.log10(ratio) - low) / max(high - low, 1)
    heights = [len(row) * BAR + GAP for _, row in bars]
    height = TOP + sum(heights) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="16" font-size="13">time over natural C on one core, shorter is better</text>']
    for i, name in enumerate(names):
        at = LEFT + 110 * i
        out.append(f'<rect x="{at}" y="24" width="10" height="10" fill="{COLOURS[name]}"/><text x="{at + 14}" y="33">{name}</text>')
    for power in range(low, high + 1):
        for ratio in {10.0 ** power, 2 * 10.0 ** power, 5 * 10.0 ** power} if power < high else {10.0 ** power}:
            strong = ratio == 1
            out.append(f'<line x1="{x(ratio):.1f}" x2="{x(ratio):.1f}" y1="{TOP - 6}" y2="{height - 20}" stroke="{"#212529" if strong else "#dee2e6"}"/>')
            out.append(f'<text x="{x(ratio):.1f}" y="{height - 6}" text-anchor="middle">{ratio:g}</text>')
    y = TOP
    for (label, row), used in zip(bars, heights):
        out.append(f'<text x="{LEFT - 8}" y="{y + (used - GAP) / 2 + 4:.1f}" text-anchor="end">{label}</text>')
        for i, (name, ratio) in enumerate(row):
            a, b = sorted((x(1), x(ratio)))
            out.append(f'<rect x="{a:.1f}" y="{y + i * BAR}" width="{max(b - a, 1):.1f}" height="{BAR - 1}" fill="{COLOURS[name]}"/>')
            out.append(f'<text x="{max(b, x(1)) + 4:.1f}" y="{y + i * BAR + 8}" font-size="9" fill="#495057">{ratio:.2f}</text>')
        y += used
    return "\n".join(out + ["</svg>", ""])
