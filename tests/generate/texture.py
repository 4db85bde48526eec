#!/usr/bin/env python3
"""Writes tests/run/texture/{unified,independent}_*.ptx: one instruction for every row of `tex` and `tld4`.

The expectations come from the formulas of the CUDA C++ Programming Guide ("Texture Fetching": weights with 8 bits of
fraction, address modes; "Cubemap Textures") and of the PTX manual (sections 9.7.10.2 to 9.7.10.4) in exact rational
arithmetic. Nothing of margay is used.
"""
import itertools, math, os, random, struct
from fractions import Fraction as F

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "run", "texture")
LANES = 2


def f32(x):
    return struct.unpack("<f", struct.pack("<f", float(x)))[0]


def bits(x):
    return struct.unpack("<I", struct.pack("<f", float(x)))[0]


class Image:
    """size = (w, h, d); layers; levels of lists [level][layer][z][y][x][sample] of channel tuples."""

    def __init__(self, name, size, layers=0, levels=1, samples=1, cube=False, dtype="f32", channels=2, words=""):
        self.name, self.size, self.layers, self.samples, self.cube = name, size, layers, samples, cube
        self.dtype, self.channels, self.words, self.levels, self.flat = dtype, channels, words, [], []
        count = 0
        for level in range(levels):
            w, h, d = (max(1, n >> level) for n in size)
            image = {}
            for s, y, x in itertools.product(range(max(1, layers) * d), range(h), range(w)):
                for m in range(samples):
                    texel = []
                    for c in range(channels):
                        value = (count * 37 + 11) % 256
                        count += 1
                        self.flat.append(value)
                        texel.append(F(value))
                    image[x, y, s, m] = texel
            self.levels.append(((w, h, d), image))

    def declare(self):
        size = "x".join(str(n) for n in self.size if n)
        words = [f"size={size}", f"channels={self.channels}"]
        if self.layers and not self.cube:
            words.append(f"layers={self.layers}")
        if self.cube:
            words += ["cube", f"layers={self.layers}"]
        if len(self.levels) > 1:
            words.append(f"levels={len(self.levels)}")
        if self.samples > 1:
            words.append(f"samples={self.samples}")
        values = "(37 * i + 11) % 256"
        return f"bind in {self.name}: {self.dtype}[{len(self.flat)}] = {values} as tex {' '.join(words)} {self.words}"

    def fill(self, texel):
        integer = self.dtype != "f32"
        return list(texel) + [F(0)] * (3 - len(texel)) + ([F(1)] if len(texel) < 4 else [])


def to_weight(x):
    """xB = x - 0.5, rounded to 8 bits of fraction: texel and weight."""
    fixed = round_even((x - F(1, 2)) * 256)
    low = fixed // 256
    return low, F(fixed - 256 * low, 256)


def round_even(x):
    return int(math.floor(x)) + (1 if x - math.floor(x) > F(1, 2) or (x - math.floor(x) == F(1, 2) and math.floor(x) % 2) else 0)


def wrap(x, n, mode, normalized):
    """A coordinate in texels after the address mode."""
    if not normalized:
        return x, "clamp" if mode in ("wrap", "mirror") else mode
    if mode == "wrap":
        x = x - math.floor(x)
    elif mode == "mirror":
        part = x - math.floor(x)
        x = part if math.floor(x) % 2 == 0 else 1 - part
    return x * n, mode


def index(i, n, mode):
    if 0 <= i < n:
        return i
    if mode == "border":
        return None
    if mode == "wrap":
        return i % n
    return min(max(i, 0), n - 1)


def texel(img, level, at, slice_, sample, depth):
    size, data = img.levels[level]
    if any(a is None for a in at):
        value = [F(0)] * img.channels
        raw = [F(0)] * 4
    else:
        x, y, z = (list(at) + [0, 0])[:3]
        value = data[x, y, slice_ + z, sample]
        raw = img.fill(value)
    if depth is None:
        return raw
    return img.fill([F(1) if depth <= v else F(0) for v in value])


def lookup(img, sampler, level, coords, offset, slice_, depth, normalized):
    size = img.levels[level][0]
    place, modes = [], []
    for d, x in enumerate(coords):
        if normalized:
            x = x + F(offset[d], size[d])
        else:
            x = x + offset[d]
        x, mode = wrap(x, size[d], sampler["address"], normalized)
        place.append(x)
        modes.append(mode)
    linear = sampler["filter"] == "linear" and (img.dtype == "f32" or depth is not None)
    if not linear:
        at = [index(math.floor(x), size[d], modes[d]) for d, x in enumerate(place)]
        return texel(img, level, at, slice_, 0, depth)
    near = [to_weight(x) for x in place]
    total = [F(0)] * 4
    for corner in itertools.product((0, 1), repeat=len(place)):
        weight, at = F(1), []
        for d, upper in enumerate(corner):
            low, part = near[d]
            weight *= part if upper else 1 - part
            at.append(index(low + upper, size[d], modes[d]))
        value = texel(img, level, at, slice_, 0, depth)
        total = [t + weight * v for t, v in zip(total, value)]
    return total


def face(direction):
    """The table of "Cubemap Textures"."""
    x, y, z = direction
    if abs(x) >= abs(y) and abs(x) >= abs(z):
        f, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    elif abs(y) >= abs(z):
        f, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        f, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    return f, [(s / m + 1) / 2, (t / m + 1) / 2]


def tex(img, sampler, geom, integer, coords, layer, sample, offset, depth, lod):
    """lod: a Fraction, or ("grad", dx, dy)."""
    slice_, normalized = 0, img.cube or "normalized" in img.words.split()
    if sampler.get("unnormalized") and not img.cube:
        normalized = False
    if img.cube:
        f, coords = face(coords)
        slice_ = 6 * min(layer, img.layers // 6 - 1) + f
    elif img.layers:
        slice_ = min(layer, img.layers - 1)
    if integer:
        size = img.levels[int(lod)][0]
        at = [c + o for c, o in zip(coords, offset)]
        if any(not 0 <= a < n for a, n in zip(at, size)):
            return [F(0)] * 4
        return texel(img, int(lod), at, slice_, sample, depth)
    level = min(max(lod, 0), len(img.levels) - 1)
    if sampler.get("mip") == "linear" and (img.dtype == "f32" or depth is not None):
        low = int(math.floor(level))
        part = F(round_even((level - low) * 256), 256)
        a = lookup(img, sampler, low, coords, offset, slice_, depth, normalized)
        if part == 0:
            return a
        b = lookup(img, sampler, low + 1, coords, offset, slice_, depth, normalized)
        return [(1 - part) * p + part * q for p, q in zip(a, b)]
    return lookup(img, sampler, int(math.floor(level + F(1, 2))), coords, offset, slice_, depth, normalized)


def gather(img, sampler, coords, layer, offset, depth, channel):
    slice_, normalized = 0, img.cube or "normalized" in img.words.split()
    if img.cube:
        f, coords = face(coords)
        slice_ = 6 * min(layer, img.layers // 6 - 1) + f
    elif img.layers:
        slice_ = min(layer, img.layers - 1)
    size, out = img.levels[0][0], []
    place = [wrap(x + (F(o, n) if normalized else o), n, sampler["address"], normalized) for x, o, n in zip(coords, offset, size)]
    low = [to_weight(x)[0] for x, _ in place]
    for i, j in ((0, 1), (1, 1), (1, 0), (0, 0)):
        at = [index(low[0] + i, size[0], place[0][1]), index(low[1] + j, size[1], place[1][1])]
        out.append(texel(img, 0, at, slice_, 0, depth)[channel])
    return out


GEOMETRY = {  # coordinates, layer, sample, offsets
    "1d": (1, 0, 0, 1), "2d": (2, 0, 0, 2), "3d": (3, 0, 0, 3), "a1d": (1, 1, 0, 1), "a2d": (2, 1, 0, 2),
    "cube": (3, 0, 0, 0), "acube": (3, 1, 0, 0), "2dms": (2, 0, 1, 2), "a2dms": (2, 1, 1, 2),
}
SIZES = {"1d": (8, 0, 0), "a1d": (8, 0, 0), "2d": (8, 4, 0), "a2d": (8, 4, 0), "3d": (8, 4, 2),
         "cube": (4, 4, 0), "acube": (4, 4, 0), "2dms": (4, 4, 0), "a2dms": (4, 4, 0)}


class Case:
    def __init__(self, name, independent, title):
        self.name, self.independent, self.title = name, independent, title
        # The sampler of independent mode is for all images, so cubes decide.
        self.address = "clamp" if name.endswith(("cube", "cubes", "gather")) else "wrap"
        self.images, self.body, self.floats, self.words, self.rng = {}, [], [], [], random.Random(name)

    def image(self, geom, dtype, depth, mip):
        layers = {"a1d": 3, "a2d": 3, "a2dms": 2, "cube": 6, "acube": 12}.get(geom, 0)
        samples = 2 if "ms" in geom else 1
        levels = 3 if mip and geom != "cube" and geom != "acube" else 2 if mip else 1
        normalized = self.rng.random() < 0.5 and "ms" not in geom
        words = ["filter=linear" if not self.independent else "", "mip=linear" if mip and not self.independent else "",
                 f"address={self.mode(geom)}" if not self.independent else "", "normalized" if normalized else ""]
        key = (geom, dtype, depth, mip)
        if key not in self.images:
            name = f"t{len(self.images)}_{geom}"
            self.images[key] = Image(name, SIZES[geom], layers, levels, samples, "cube" in geom, dtype, 1 if depth else 2,
                                     " ".join(w for w in words if w))
        return self.images[key]

    def mode(self, geom):
        return self.rng.choice(["wrap", "mirror", "clamp", "border"]) if "cube" not in geom else "clamp"

    def sampler_of(self, img):
        if self.independent:
            return {"filter": "linear", "address": self.address, "mip": "linear"}
        s = {"filter": "point", "address": "clamp"}
        for w in img.words.split():
            if "=" in w:
                k, v = w.split("=")
                s[k] = v
        return s

    def row(self, way, geom, ctype, dtype, offset, depth, channel=None):
        n, layered, sampled, offsets = GEOMETRY[geom]
        integer = ctype == "s32"
        image_type = "f32" if dtype in ("f32", "f16", "f16x2") else dtype
        mip = way in ("level", "grad")
        img = self.image(geom, image_type, depth, mip)
        sampler = self.sampler_of(img)
        normalized = img.cube or "normalized" in img.words.split()
        rng, lanes = self.rng, []
        off = [rng.randint(-8, 7) if not integer else rng.randint(-1, 1) for _ in range(offsets)] if offset else [0] * 3
        for _ in range(LANES):
            if integer:
                coords = [rng.randint(0, max(1, img.size[d]) - 1) for d in range(n)]
            elif img.cube:
                coords = [F(rng.randint(-512, 512), 128) for _ in range(3)]
                coords[rng.randrange(3)] = F(rng.choice([-8, 8]))
            elif normalized:
                coords = [F(rng.randint(-512, 1024), 512) for _ in range(n)]
            else:
                coords = [F(rng.randint(-64, 64 * max(1, img.size[d]) + 64), 64) for d in range(n)]
            layer = rng.randint(0, 4) if layered else 0
            sample = rng.randint(0, 1) if sampled else 0
            ref = F(rng.randint(0, 255)) if depth else None
            if way == "level":
                lod, lod_bits = (rng.randint(0, len(img.levels) - 1),) * 2 if integer else (F(rng.randint(0, 128), 64), None)
                lod_bits = lod if integer else bits(lod)
                grads = None
            elif way == "grad":
                # Powers of two, so that the logarithm is exact: the larger of both lengths in texels is 2^lod.
                lod = F(rng.randint(0, 1))
                most = max(abs(c) for c in coords) if img.cube else 1
                grads = []
                for size in (F(2) ** int(lod), F(1, 2)):
                    g = [F(0)] * 3
                    d = rng.randrange(n)
                    scale = F(2) * most / img.size[0] if img.cube else F(1, max(1, img.size[d])) if normalized else 1
                    g[d] = size * scale
                    grads.append(g)
                if rng.random() < 0.5:
                    grads.reverse()
                lod_bits = None
            else:
                lod, lod_bits, grads = F(0), None, None
            if channel is None:
                if integer and way == "grad":
                    lod = int(lod)
                value = tex(img, sampler, geom, integer, coords, layer, sample, off, ref, lod)
            else:
                value = gather(img, sampler, coords, layer, off, ref, "rgba".index(channel))
            lanes.append((coords, layer, sample, ref, lod_bits, grads, value))
        self.emit(way, geom, ctype, dtype, offset and off, depth, channel, img, lanes, integer)

    def emit(self, way, geom, ctype, dtype, off, depth, channel, img, lanes, integer):
        n, layered, sampled, offsets = GEOMETRY[geom]
        body, k = self.body, len(self.words) // LANES
        inputs = []

        def operand(values):
            """A register with a value by lane, loaded from the table of inputs."""
            inputs.append([v if isinstance(v, int) else bits(v) for v in values])
            return len(inputs) - 1

        coords = []
        if sampled:
            coords.append(("r", operand([l[2] for l in lanes])))
        if layered:
            coords.append(("r", operand([l[1] for l in lanes])))
        for d in range(n):
            coords.append(("r" if integer else "f", operand([l[0][d] & 0xffffffff if integer else l[0][d] for l in lanes])))
        want = {"1d": 1, "a1d": 2, "2d": 2}.get(geom, 4)
        names = [f"%{c}{i}" for c, i in coords] + ["%r0" if geom.endswith("ms") else f"%f{coords[-1][1]}" if not integer else f"%r{coords[-1][1]}"] * (want - len(coords))
        tail = []
        if way == "level":
            i = operand([l[4] for l in lanes])
            tail.append(f"%{'r' if integer else 'f'}{i}")
        if way == "grad":
            size = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2}.get(geom, 4)
            for g in range(2):
                part = [operand([l[5][g][d] for l in lanes]) for d in range(min(3, size))]
                part += [part[-1]] * (size - len(part))
                tail.append("{" + ", ".join(f"%f{i}" for i in part) + "}")
        if off:
            size = {"1d": 1, "a1d": 1, "3d": 4}.get(geom, 2)
            tail.append("{" + ", ".join(f"%o{i}" for i in range(size)) + "}")
        if depth:
            tail.append(f"%f{operand([l[3] for l in lanes])}")
        at = self.inputs(inputs)
        for i in range(len(inputs)):
            body.append(f"    ld.global.b32 %r{i}, [%in+{at + i * LANES * 4}];")
        used = sorted({i for c, i in coords if c == "f"} | {int(p[2:]) for t in tail for p in t.strip("{}").split(", ") if p.startswith("%f")})
        for i in used:
            body.append(f"    mov.b32 %f{i}, %r{i};")
        if off:
            size = {"1d": 1, "a1d": 1, "3d": 4}.get(geom, 2)
            for i, v in enumerate((off + [0] * 4)[:size]):
                body.append(f"    mov.b32 %o{i}, {v};")
        half = dtype == "f16"
        pairs = dtype == "f16x2"
        dst = ", ".join(f"%{'h' if half else 'd'}{i}" for i in range(2 if pairs else 4))
        sampler = ", smp" if self.independent else ""
        head = f"tld4.{channel}." if channel else f"tex.{way + '.' if way else ''}"
        mnemonic = f"{head}{geom}.{'v2' if pairs else 'v4'}.{dtype}.{ctype}"
        group = f"[{img.name}{sampler}, {{{', '.join(names)}}}]"
        body.append("    " + ", ".join([f"{mnemonic} {{{dst}}}", group] + tail) + ";")
        values = [l[6] for l in lanes]
        if half:
            body += [f"    cvt.u32.u16 %d{i}, %h{i};" for i in range(4)]
        count = 2 if pairs else 4
        start = len(self.words)
        for i in range(count):
            body.append(f"    st.global.b32 [%out+{(start + i * LANES) * 4}], %d{i};")
            for v in values:
                self.words.append(self.word(v, i, dtype))

    def word(self, v, i, dtype):
        half = lambda x: struct.unpack("<H", struct.pack("<e", f32(x)))[0]
        if dtype == "f16":
            return half(v[i])
        if dtype == "f16x2":
            return half(v[2 * i + 1]) << 16 | half(v[2 * i])
        if dtype == "f32":
            return bits(v[i])
        return int(v[i]) & 0xffffffff

    def inputs(self, rows):
        at = len(self.floats) * 4
        for r in rows:
            self.floats += r
        return at

    def write(self):
        images = list(self.images.values())
        args = [img.declare() for img in images]
        if self.independent:
            args.append(f"bind smp: sampler filter=linear mip=linear address={self.address}")
        values = ", ".join(hex(v) for v in self.floats)
        words = ", ".join(hex(v) for v in self.words)
        lines = [f"//@ launch: k<<<1, {LANES}>>>(" + ", ".join(args + [f"in a: b32[{len(self.floats)}] = {{{values}}}", f"out d: b32[{len(self.words)}]"]) + ")",
                 f"//@ expect: d[0..{len(self.words)}] == {{{words}}}",
                 "//@ source: CUDA C++ Programming Guide, \"Texture Fetching\" and \"Cubemap Textures\", and manual, section 9.7.10, in exact arithmetic: tests/generate/texture.py", "",
                 f"// {self.title}", ".version 8.0",
                 ".target sm_75" + (", texmode_independent" if self.independent else ""), ".address_size 64", ""]
        lines += [f".global .texref {i.name};" for i in images]
        if self.independent:
            lines.append(".global .samplerref smp;")
        lines += ["", ".visible .entry k(.param .u64 a, .param .u64 d)", "{",
                  "    .reg .b16 %h<4>;", "    .reg .b32 %r<20>, %d<4>, %o<4>, %lane;", "    .reg .f32 %f<20>;", "    .reg .b64 %in, %out, %at;",
                  "    mov.u32 %lane, %tid.x;", "    mul.wide.u32 %at, %lane, 4;", "    ld.param.u64 %in, [a];", "    ld.param.u64 %out, [d];",
                  "    add.u64 %in, %in, %at;", "    add.u64 %out, %out, %at;", ""] + self.body + ["    ret;", "}", ""]
        os.makedirs(OUT, exist_ok=True)
        with open(os.path.join(OUT, self.name + ".ptx"), "w") as f:
            f.write("\n".join(lines))


TYPES = ["u32", "s32", "f16", "f32", "f16x2"]


def cases():
    for independent in (False, True):
        mode = "independent" if independent else "unified"
        # One instruction for each row: a geometry of the class, a type of the class.
        for group, geoms, floats, ints, offsets, depths, ways in (
            ("plain", ["1d", "2d"], True, True, True, True, ["", "base", "level", "grad"]),
            ("volume", ["3d"], True, True, True, False, ["", "base", "level", "grad"]),
            ("layers", ["a1d", "a2d"], True, True, True, True, ["", "base", "level", "grad"]),
            ("cube", ["cube"], True, False, False, True, ["", "base", "level", "grad"]),
            ("cubes", ["acube"], True, False, False, True, ["", "base", "level", "grad"]),
            ("samples", ["2dms", "a2dms"], False, True, True, False, ["", "base"]),
        ):
            case = Case(f"{mode}_{group}", independent, f"`tex` of {', '.join(geoms)}, {mode} mode: every way to choose the level, every type.")
            turn = itertools.cycle(geoms)
            for way in ways:
                for ctype in ["f32"] * floats + ["s32"] * ints:
                    forms = [(False, False)]
                    if offsets:
                        forms.append((True, False))
                        if depths and ctype == "f32":
                            forms.append((True, True))
                    if depths and ctype == "f32":
                        forms.append((False, True))
                    for (offset, depth), dtypes in itertools.product(forms, (["u32", "s32"], ["f16", "f32"], ["f16x2"])):
                        dtype = case.rng.choice(dtypes)
                        # Depths come as floats, whatever the instruction's type.
                        if depth and dtype in ("u32", "s32"):
                            depth_row(case, way, next(turn), ctype, dtype, offset)
                            continue
                        case.row(way, next(turn), ctype, dtype, offset, depth)
            case.write()
        case = Case(f"{mode}_gather", independent, f"`tld4`, {mode} mode: every geometry and channel.")
        for geom in ["2d", "a2d", "cube", "acube"]:
            forms = [(False, False)] + ([(True, False), (True, True)] if "cube" not in geom else []) + [(False, True)]
            for (offset, depth), dtypes in itertools.product(forms, (["u32", "s32"], ["f32"])):
                dtype = case.rng.choice(dtypes)
                channel = "r" if depth else case.rng.choice("rgba")
                if depth and dtype != "f32":
                    depth_row(case, "", geom, "f32", dtype, offset, channel)
                else:
                    case.row("", geom, "f32", dtype, offset, depth, channel)
        case.write()


def depth_row(case, way, geom, ctype, dtype, offset, channel=None):
    """A comparison with an integer type: the results are floats, so their bits arrive."""
    word = case.word
    case.word = lambda v, i, _: bits(v[i])
    kept = case.image
    case.image = lambda geom, _, depth, mip: kept(geom, "f32", depth, mip)
    case.row(way, geom, ctype, dtype, offset, True, channel)
    case.word, case.image = word, kept


if __name__ == "__main__":
    cases()
