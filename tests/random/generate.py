#!/usr/bin/env python3
"""Writes a random CUDA C++ program whose results are defined: generate.py SEED > program.cu

The same text is compiled by a CUDA compiler and, with -DHOST, by a host compiler on top of host.hpp, which says what is right. So
everything that C++ or CUDA leaves undefined is avoided: arithmetic is unsigned or float without contraction, loops end, indices are in
range, a collective names exactly the lanes that reach it, and memory that threads share is exchanged between barriers.
"""

import random
import sys

CTAS = 3
SCALARS = ["unsigned", "unsigned long long", "unsigned short", "unsigned char", "float"]


class Scope:
    """What a statement may use: variables by type, and which threads are there with it."""

    def __init__(self, parent=None, loop=False):
        self.parent, self.loop = parent, loop
        self.variables = list(parent.variables) if parent else []
        # The C++ expression of the lanes that are here together, `None` in functions that are called by any of them.
        self.mask = parent.mask if parent else None
        # All threads of the CTA are here.
        self.cta = parent.cta if parent else False
        self.loops = parent.loops if parent else 0
        # The flag that ends the innermost loop early, for loops whose lanes leave it together with a vote.
        self.leave = parent.leave if parent else None
        # Functions see their parameters only.
        self.input = parent.input if parent else False

    def part(self):
        """Some lanes have left the loop early: no mask of its body names those that are left."""
        scope = self
        while not scope.loop:
            scope.mask, scope = None, scope.parent
        scope.mask = None


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.depth = 0
        self.names = 0
        self.functions = []  # (name, result, parameters)
        self.table = []  # functions of one signature, called by address
        self.structs = []  # (name, [(field, type)])
        self.budget = 0
        self.threads = self.random.choice([32, 64, 96, 128, 40, 100])
        # Lanes of the last warp are missing where the CTA is not a multiple of a warp.
        self.full = self.threads % 32 == 0

    # -- text

    def name(self, prefix="v"):
        self.names += 1
        return f"{prefix}{self.names}"

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def constant(self):
        r = self.random
        return r.choice([f"{r.randrange(16)}u", f"{r.getrandbits(32)}u", f"{1 << r.randrange(32)}u", "0xffffffffu"])

    # -- expressions; every one has the type `unsigned` or `float`

    def read(self, scope, kind):
        """A variable, member or element as an `unsigned` or `float`; None if there is none."""
        found = [v for v in scope.variables if v[1] == kind or (kind == "unsigned" and v[1] in SCALARS[1:4])]
        if kind == "unsigned" and self.chance(15):
            found = [v for v in scope.variables if isinstance(v[1], tuple)] or found
        if not found:
            return None
        name, of = self.random.choice(found)[:2]
        if isinstance(of, tuple):  # a local array
            return f"{name}[{self.unsigned(scope, 1)} % {of[1]}u]"
        return f"unsigned({name})" if of in SCALARS[1:4] else name

    def unsigned(self, scope, depth=3):
        r = self.random
        if depth == 0 or self.chance(20):
            return (self.read(scope, "unsigned") if self.chance(75) else None) or self.constant()
        a, b = (lambda: self.unsigned(scope, depth - 1)), (lambda: self.unsigned(scope, depth - 1))
        kind = r.randrange(22)
        if kind < 7:
            return f"({a()} {r.choice(['+', '-', '*', '&', '|', '^'])} {b()})"
        if kind == 7:
            return f"({a()} {r.choice(['<<', '>>'])} ({b()} & 31u))"
        if kind == 8:
            return f"({a()} {r.choice(['/', '%'])} ({b()} | 1u))"
        if kind == 9:
            return f"unsigned(int({a()}) {r.choice(['/', '%'])} int(({b()} & 255u) + 1u))"
        if kind == 10:
            return f"unsigned(int({a()}) >> ({b()} & 31u))"
        if kind == 11:
            return f"({self.condition(scope, depth - 1)} ? {a()} : {b()})"
        if kind == 12:
            return f"unsigned({r.choice(['__popc', '__clz', '__ffs', '__brev'])}({a()}))"
        if kind == 13:
            return f"__byte_perm({a()}, {b()}, {a()} & 0x7777u)"
        if kind == 14:
            return f"{r.choice(['__umulhi(', f'__funnelshift_l({b()}, '])}{a()}, {b()})"
        if kind == 15:
            return f"bits({self.float(scope, depth - 1)})"
        if kind == 16:
            return f"unsigned({r.choice(['(unsigned char)', '(signed char)', '(short)', '(unsigned short)'])}({a()}))"
        if kind == 17:
            wide = f"((unsigned long long){a()} {r.choice(['*', '+', '-', '^'])} ((unsigned long long){b()} << {r.randrange(33)}))"
            return f"unsigned({wide} {r.choice(['>> 16', '>> 32', '% 1000003u', '/ 7u'])})"
        if kind == 18:
            return f"unsigned(int(clamped({self.float(scope, depth - 1)})))"
        if kind == 19:
            field = self.field(scope)
            return field or a()
        if kind == 20 and self.functions:
            return self.call(scope, depth - 1)
        if kind == 21 and self.table:
            return f"table[{a()} % {len(self.table)}u]({a()}, {b()})"
        return f"in[{a()} % 256u]" if scope.input else a()

    def field(self, scope):
        found = [v for v in scope.variables if v[1] in [s[0] for s in self.structs]]
        if not found:
            return None
        name, of = self.random.choice(found)[:2]
        field, kind = self.random.choice(dict(self.structs)[of])
        text = f"{name}.{field}"
        if kind.endswith("]"):
            text += f"[{self.unsigned(scope, 1)} % {kind.split('[')[1][:-1]}u]"
        return f"bits({text})" if kind.startswith("float") else f"unsigned({text})"

    def float(self, scope, depth):
        r = self.random
        if depth <= 0 or self.chance(20):
            return (self.read(scope, "float") if self.chance(60) else None) or r.choice(["1.5f", "-0.375f", "3e10f", "1e-40f", "7.0f"])
        a, b = (lambda: self.float(scope, depth - 1)), (lambda: self.float(scope, depth - 1))
        return r.choice([
            lambda: f"({a()} {r.choice(['+', '-', '*', '/'])} {b()})",
            lambda: f"sqrtf(fabsf({a()}))",
            lambda: f"fmaf({a()}, {b()}, {a()})",
            lambda: f"float({self.unsigned(scope, depth - 1)})",
            lambda: f"float(int({self.unsigned(scope, depth - 1)}))",
            lambda: f"truncf({a()})",
            lambda: f"({self.condition(scope, depth - 1)} ? {a()} : {b()})",
        ])()

    def condition(self, scope, depth=2):
        r = self.random
        if depth > 0 and self.chance(20):
            return f"({self.condition(scope, depth - 1)} {r.choice(['&&', '||', '!='])} {self.condition(scope, depth - 1)})"
        if self.chance(15):
            return f"({self.float(scope, depth)} {r.choice(['<', '>=', '==', '!='])} {self.float(scope, depth)})"
        how = r.choice(["< {}", "> {}", "!= {}", "% 3u == {} % 3u", "& 1u"])
        return f"({self.unsigned(scope, depth)} {how.format(self.unsigned(scope, depth)) if '{' in how else how})"

    def argument(self, scope, kind, depth):
        if kind == "float":
            return self.float(scope, depth)
        if kind in [s[0] for s in self.structs]:
            found = [v[0] for v in scope.variables if v[1] == kind]
            return self.random.choice(found) if found else f"make_{kind}({self.unsigned(scope, depth)})"
        return self.unsigned(scope, depth)

    def call(self, scope, depth):
        name, result, parameters = self.random.choice(self.functions)
        text = f"{name}({', '.join(self.argument(scope, p, depth) for p in parameters)})"
        return f"sum_{result}({text})" if result.startswith("S") else f"bits({text})" if result == "float" else f"unsigned({text})"

    # -- statements

    def declare(self, scope):
        kind = self.random.choice(SCALARS + [s[0] for s in self.structs] + ["array"])
        name = self.name()
        if kind == "array":
            size = self.random.choice([2, 3, 4, 8])
            self.line(f"unsigned {name}[{size}] = {{{', '.join(self.unsigned(scope, 1) for _ in range(size))}}};")
            scope.variables.append((name, ("unsigned", size)))
            return
        self.line(f"{kind} {name} = {self.argument(scope, kind, 3)};")
        scope.variables.append((name, kind))

    def assign(self, scope):
        targets = [v for v in scope.variables if len(v) == 2]
        if not targets:
            return self.declare(scope)
        name, kind = self.random.choice(targets)
        if isinstance(kind, tuple):
            self.line(f"{name}[{self.unsigned(scope, 1)} % {kind[1]}u] {self.random.choice(['=', '+=', '^='])} {self.unsigned(scope)};")
        elif kind == "float":
            self.line(f"{name} = {self.float(scope, 3)};")
        elif kind in SCALARS:
            self.line(f"{name} {self.random.choice(['=', '=', '+=', '-=', '^=', '*='])} {self.unsigned(scope)};")
        elif self.chance(40):
            self.line(f"{name} = {self.argument(scope, kind, 2)};")
        else:
            field, of = self.random.choice(dict(self.structs)[kind])
            where = f"[{self.unsigned(scope, 1)} % {of.split('[')[1][:-1]}u]" if of.endswith("]") else ""
            self.line(f"{name}.{field}{where} = {self.float(scope, 2) if of.startswith('float') else self.unsigned(scope, 2)};")

    def block(self, scope, count=None):
        self.depth += 1
        for _ in range(count or self.random.randrange(1, 5)):
            self.statement(scope)
        self.depth -= 1

    def branch(self, scope):
        """if/else; lanes that a collective may name are known by a vote before it."""
        condition, inner, other = self.condition(scope), Scope(scope), Scope(scope)
        if scope.mask:
            test, votes = self.name("t"), self.name("m")
            self.line(f"bool {test} = {condition};")
            self.line(f"unsigned {votes} = __ballot_sync({scope.mask}, {test});")
            condition, inner.mask, other.mask = test, votes, f"({scope.mask} & ~{votes})"
        inner.cta = other.cta = False
        self.line(f"if ({condition}) {{")
        self.block(inner)
        if self.chance(50):
            self.line("} else {")
            self.block(other)
        self.line("}")

    def loop(self, scope):
        """A loop of few trips, which differ by lane unless the whole CTA runs it."""
        counter, inner = self.name("i"), Scope(scope, loop=True)
        inner.loops += 1
        inner.variables.append((counter, "unsigned", "constant"))
        if scope.cta and self.chance(50):
            self.line(f"for (unsigned {counter} = 0; {counter} < {self.random.randrange(1, 4)}u; {counter}++) {{")
            inner.leave = None
            self.block(inner)
            self.line("}")
            return
        inner.cta = False
        trips = f"({self.unsigned(scope, 2)} % {self.random.randrange(2, 7)}u)"
        if not scope.mask:
            inner.leave = "break;"
            self.line(f"for (unsigned {counter} = 0, end = {trips}; {counter} < end; {counter}++) {{")
            self.block(inner)
            self.line("}")
            return
        votes, go, leave = self.name("m"), self.name("t"), self.name("leave")
        inner.mask, inner.leave = votes, f"{{ {leave} = true; continue; }}"
        self.line(f"unsigned {votes} = {scope.mask}, {counter} = 0, end{counter} = {trips};")
        self.line(f"for (bool {leave} = false;; {counter}++) {{")
        self.line(f"    bool {go} = !{leave} && {counter} < end{counter};")
        self.line(f"    {votes} = __ballot_sync({votes}, {go});")
        self.line(f"    if (!{go}) break;")
        # What leaves or continues early meets the others at the vote, so nobody may name it before: the mask is of no use after that.
        self.block(inner)
        self.line("}")

    def switch(self, scope):
        cases = self.random.randrange(2, 6)
        self.line(f"switch ({self.unsigned(scope, 2)} % {cases + 1}u) {{")
        for i in range(cases):
            inner = Scope(scope)
            inner.mask, inner.cta, inner.leave = None, False, None
            self.line("default: {" if i + 1 == cases else f"case {i}: {{")
            self.block(inner, self.random.randrange(1, 3))
            self.line("}" if self.chance(25) and i + 1 < cases else "} break;")
        self.line("}")

    def collective(self, scope):
        """A vote, match, reduction or shuffle of exactly the lanes that are here."""
        r, m, name = self.random, scope.mask, self.name()
        value, kind = self.unsigned(scope, 2), r.randrange(6)
        if kind == 0:
            text = f"unsigned({r.choice(['__any_sync', '__all_sync', '__ballot_sync'])}({m}, {self.condition(scope)}))"
        elif kind == 1:
            text = f"__match_any_sync({m}, {value} % {r.randrange(1, 6)}u)"
        elif kind == 2:
            text = f"{r.choice(['reduce_add', 'reduce_min', 'reduce_max', 'reduce_and', 'reduce_or', 'reduce_xor'])}({m}, {value})"
        elif kind == 3 and m == "~0u":
            width = r.choice([32, 32, 16, 8, 4])
            how = r.choice(["xor", "up", "down"])
            text = f"__shfl_{how}_sync({m}, {value}, {r.randrange(1, width)}, {width})"
        elif kind == 4 and m == "~0u":
            text = f"__shfl_sync({m}, {value}, {self.unsigned(scope, 1)} % 32u)"
        else:
            text = f"__shfl_sync({m}, {value}, chosen({m}, {self.unsigned(scope, 1)}))"
        self.line(f"unsigned {name} = {text};")
        scope.variables.append((name, "unsigned"))

    def exchange(self, scope):
        """Threads of the CTA talk through shared memory, between barriers."""
        name, r = self.name(), self.random
        kind = r.randrange(4)
        if kind == 0:
            how = r.choice(["count", "and", "or"])
            self.line(f"unsigned {name} = unsigned(__syncthreads_{how}({self.condition(scope)}));")
        elif kind == 1:
            self.line(f"shared[threadIdx.x] = {self.unsigned(scope)};")
            self.line("__syncthreads();")
            self.line(f"unsigned {name} = shared[({self.unsigned(scope, 2)}) % {self.threads}u];")
            self.line("__syncthreads();")
        elif kind == 2:
            self.line("shared[threadIdx.x] = in[threadIdx.x];")
            self.line("__syncthreads();")
            for _ in range(r.randrange(1, 3)):
                self.line(f"atomicAdd(&shared[({self.unsigned(scope, 2)}) % 8u], {self.unsigned(scope, 1)});")
            self.line("__syncthreads();")
            self.line(f"unsigned {name} = shared[threadIdx.x % 8u];")
            self.line("__syncthreads();")
        else:
            self.line(f"if (threadIdx.x % 32u == {r.randrange(8)}u) shared[threadIdx.x / 32u] = {self.unsigned(scope)};")
            self.line("__syncthreads();")
            self.line(f"unsigned {name} = shared[{self.unsigned(scope, 1)} % {self.threads // 32}u];")
            self.line("__syncthreads();")
        scope.variables.append((name, "unsigned"))

    def statement(self, scope):
        self.budget -= 1
        r = self.random
        if self.budget < 0 or self.depth > 6:
            return self.assign(scope)
        kind = r.randrange(100)
        if kind < 15:
            self.declare(scope)
        elif kind < 45:
            self.assign(scope)
        elif kind < 60:
            self.branch(scope)
        elif kind < 70 and scope.loops < 3:
            self.loop(scope)
        elif kind < 75:
            self.switch(scope)
        elif kind < 85 and scope.mask:
            self.collective(scope)
        elif kind < 93 and scope.cta:
            self.exchange(scope)
        elif kind < 95 and scope.mask:
            # One operation for each word: the order does not matter.
            word, value = r.randrange(8), self.unsigned(scope)
            self.line(f"{['atomicAdd', 'atomicXor', 'atomicMin', 'atomicMax'][word // 2]}(&out[{word}], {value});")
        elif kind < 98 and scope.leave:
            self.line(f"if ({self.condition(scope)}) {scope.leave}")
            scope.part()
        else:
            self.assign(scope)

    # -- functions

    def struct(self):
        name = self.name("S")
        fields = []
        for i in range(self.random.randrange(1, 6)):
            kind = self.random.choice(SCALARS + ["unsigned[3]", "float[2]", "unsigned char[5]", "unsigned short[3]"])
            fields.append((f"f{i}", kind))
        self.line(f"struct {name} {{")
        for field, kind in fields:
            base, _, size = kind.partition("[")
            self.line(f"    {base} {field}{'[' + size if size else ''};")
        self.line("};")
        elements = []
        for field, kind in fields:
            base, _, size = kind.partition("[")
            elements += [(f"{field}[{i}]", base) for i in range(int(size[:-1]))] if size else [(field, kind)]
        self.line(f"__device__ {'__noinline__ ' if self.chance(50) else ''}{name} make_{name}(unsigned x) {{")
        self.line(f"    {name} s;")
        for i, (element, kind) in enumerate(elements):
            self.line(f"    s.{element} = {'float(int(x >> ' + str(i) + '))' if kind == 'float' else f'x * {2 * i + 3}u'};")
        self.line("    return s;")
        self.line("}")
        self.line(f"__device__ {'__noinline__ ' if self.chance(50) else ''}unsigned sum_{name}({name} s) {{")
        terms = [f"bits(s.{e})" if k == "float" else f"unsigned(s.{e})" for e, k in elements]
        self.line(f"    return {' * 31u + '.join(terms)};")
        self.line("}")
        self.structs.append((name, fields))

    def function(self, recursive=False, addressed=False):
        r, scope = self.random, Scope()
        kinds = SCALARS + [s[0] for s in self.structs]
        parameters = ["unsigned", "unsigned"] if addressed else [r.choice(kinds) for _ in range(r.randrange(0, 5))]
        result = "unsigned" if addressed else r.choice(kinds)
        name = self.name("g")
        if recursive:
            parameters.insert(0, "unsigned")
        listed = [(self.name("p"), kind) for kind in parameters]
        inline = r.choice(["__noinline__ ", "__noinline__ ", ""])
        self.line(f"__device__ {inline}{result} {name}({', '.join(f'{k} {n}' for n, k in listed)}) {{")
        scope.variables = listed[1:] if recursive else list(listed)
        self.budget = 10
        if recursive:
            self.depth += 1
            depth = listed[0][0]
            value = self.argument(scope, result, 2)
            self.line(f"if (({depth} &= 7u) == 0u) return {value};")
            self.depth -= 1
        self.block(scope, r.randrange(2, 6))
        if recursive:
            inner = ", ".join([f"{listed[0][0]} - 1u"] + [self.argument(scope, k, 1) for k in parameters[1:]])
            kept = self.name()
            self.line(f"    {result} {kept} = {name}({inner});")
            scope.variables.append((kept, result))
        self.line(f"    return {self.argument(scope, result, 3)};")
        self.line("}")
        if addressed:
            self.table.append(name)
        else:
            self.functions.append((name, result, parameters))

    def kernel(self):
        scope = Scope()
        scope.input = True
        scope.variables = [("threadIdx.x", "unsigned", "constant"), ("blockIdx.x", "unsigned", "constant"), ("n", "unsigned", "constant")]
        struct = self.structs[0][0] if self.structs and self.chance(60) else None
        self.line(f"__global__ void kernel(unsigned *out, const unsigned *in, {struct + ' by_value, ' if struct else ''}unsigned n) {{")
        self.line(f"    __shared__ unsigned shared[{max(self.threads, 8)}];")
        if struct:
            scope.variables.append(("by_value", struct))
        self.line("    unsigned x = in[(blockIdx.x * 131u + threadIdx.x) % 256u];")
        self.line("    float y = float(x % 1000u) * 0.125f;")
        scope.variables += [("x", "unsigned"), ("y", "float")]
        scope.mask, scope.cta = "~0u" if self.full else "present", True
        if not self.full:
            self.line(f"    unsigned present = threadIdx.x < {self.threads // 32 * 32}u ? ~0u : {(1 << self.threads % 32) - 1}u;")
        self.budget = self.random.randrange(25, 70)
        self.block(scope, self.random.randrange(8, 20))
        for name, kind in [v for v in scope.variables if len(v) == 2]:
            text = f"sum_{kind}({name})" if kind in [s[0] for s in self.structs] else f"bits({name})" if kind == "float" else None
            text = text or (f"{name}[0] + {name}[{kind[1] - 1}]" if isinstance(kind, tuple) else f"unsigned({name})")
            self.line(f"    x = __funnelshift_l(x, x, 5u) ^ {text};")
        self.line(f"    out[8u + blockIdx.x * {self.threads}u + threadIdx.x] = x;")
        self.line("}")
        return struct

    def whole(self):
        r = self.random
        for _ in range(r.randrange(0, 3)):
            self.struct()
        for _ in range(r.randrange(0, 3)):
            # Functions of a table call no others by address, so that calls end.
            table, self.table = self.table, []
            self.function(addressed=True)
            self.table = table + self.table
        table, self.table = self.table, []
        for _ in range(r.randrange(0, 4)):
            self.function(recursive=self.chance(25))
        if table:
            self.line("typedef unsigned (*entry)(unsigned, unsigned);")
            self.line(f"__device__ entry table[{len(table)}] = {{{', '.join(table)}}};")
        self.table = table
        struct = self.kernel()
        count = 8 + CTAS * self.threads
        argument = "made, " if struct else ""
        text = "\n".join(self.lines)
        return f"""\
#ifdef HOST
#include "host.hpp"
#else
#include <cstdio>
#endif
__device__ inline unsigned bits(float f) {{ return f == f ? __float_as_uint(f) : 0x7fffffffu; }}
__device__ inline float clamped(float f) {{ return f > 1e6f ? 1e6f : f < -1e6f ? -1e6f : f == f ? f : 1.0f; }}
__device__ inline unsigned chosen(unsigned mask, unsigned n) {{
    for (n %= unsigned(__popc(mask)); n; n--) mask &= mask - 1u;
    return unsigned(__ffs(mask)) - 1u;
}}
#if defined(HOST) || __CUDA_ARCH__ >= 800
#define REDUCE(name) __device__ inline unsigned name(unsigned mask, unsigned x) {{ return __##name##_sync(mask, x); }}
#else
#define REDUCE(name) REDUCE_##name
#define BY_SHUFFLES(name, join) \\
    __device__ inline unsigned name(unsigned mask, unsigned x) {{ \\
        unsigned a = 0, b; \\
        bool first = true; \\
        for (unsigned left = mask; left; left &= left - 1u) {{ \\
            b = __shfl_sync(mask, x, __ffs(left) - 1); \\
            a = first ? b : (join); \\
            first = false; \\
        }} \\
        return a; \\
    }}
#define REDUCE_reduce_add BY_SHUFFLES(reduce_add, a + b)
#define REDUCE_reduce_min BY_SHUFFLES(reduce_min, a < b ? a : b)
#define REDUCE_reduce_max BY_SHUFFLES(reduce_max, a > b ? a : b)
#define REDUCE_reduce_and BY_SHUFFLES(reduce_and, a & b)
#define REDUCE_reduce_or BY_SHUFFLES(reduce_or, a | b)
#define REDUCE_reduce_xor BY_SHUFFLES(reduce_xor, a ^ b)
#endif
REDUCE(reduce_add)
REDUCE(reduce_min)
REDUCE(reduce_max)
REDUCE(reduce_and)
REDUCE(reduce_or)
REDUCE(reduce_xor)
{text}
unsigned out[{count}], in[256];
{f'''{struct} made;
void make() {{
    for (unsigned i = 0; i < sizeof made; i++) ((unsigned char *)&made)[i] = i % 4 == 3 ? 62 : i * 37;
}}''' if struct else "void make() {}"}
int main() {{
    make();
    for (unsigned i = 0; i < 256; i++) in[i] = i * 2654435761u ^ i << 7;
#ifdef HOST
    host::launch({CTAS}, {self.threads}, [] {{ kernel(out, in, {argument}256u); }});
#else
    unsigned *to, *from;
    cudaMalloc((void **)&to, sizeof out);
    cudaMalloc((void **)&from, sizeof in);
    cudaMemset(to, 0, sizeof out);
    cudaMemcpy(from, in, sizeof in, cudaMemcpyHostToDevice);
    kernel<<<{CTAS}, {self.threads}>>>(to, from, {argument}256u);
    if (cudaMemcpy(out, to, sizeof out, cudaMemcpyDeviceToHost)) return printf("the kernel failed\\n"), 1;
#endif
    for (unsigned i = 0; i < {count}u; i++) printf("%08x%c", out[i], i % 8 == 7 ? '\\n' : ' ');
}}
"""


if __name__ == "__main__":
    print(Program(int(sys.argv[1])).whole())
