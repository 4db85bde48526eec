//! Programs as PTX.

use super::{Action, Index, Program, Statement, Who};
use std::fmt::Write;

impl Program {
    /// The PTX of the program. Every store to a word has a value of its own.
    pub fn ptx(&self) -> String {
        let (from, to, times) = self.repeated;
        let mut body = String::new();
        for (number, statement) in self.statements.iter().enumerate() {
            if number == from {
                body += "    mov.u32 %turn, 0;\nAGAIN:\n";
            }
            let _ = writeln!(body, "    .loc 1 {} 1", number + 1);
            lines(&mut body, (self.ctas == 1, self.apart), number, statement);
            if number + 1 == to {
                let _ = writeln!(body, "    add.u32 %turn, %turn, 1;\n    setp.lt.u32 %p, %turn, {times};");
                body += "    @%p bra AGAIN;\n";
            }
        }
        format!(
            r#".version 8.5
.target sm_80
.address_size 64
.file 1 "statements"
.visible .entry k(.param .u64 to, .param .u64 at)
{{
    .reg .pred %p;
    .reg .b16 %h;
    .reg .b32 %t, %lane, %warp, %cta, %turn, %a, %v, %sum, %x<4>;
    .reg .b64 %out, %own, %w, %at, %place, %y<2>;
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %out, [to];
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    shr.u32 %warp, %t, 5;
    mov.u32 %turn, 0;
    mov.u32 %sum, 0;
    mov.u32 %cta, %ctaid.x;
    ld.param.u64 %place, [at];
    mad.lo.u32 %v, %cta, 128, %t;
    mul.wide.u32 %own, %v, 4;
    add.u64 %own, %out, %own;
{body}
    st.global.u32 [%own], %sum;
    ret;
}}
"#
        )
    }
}

fn lines(to: &mut String, (shared, apart): (bool, u32), number: usize, statement: &Statement) {
    let _ = match *statement {
        Statement::Access { action, index, who, narrow, size, elements } => {
            let way = (if shared { "shared" } else { "global" }, if narrow { "cta" } else { "gpu" });
            return access(to, number, (action, (index, apart), who), (size, elements), way);
        }
        Statement::Barrier => writeln!(to, "    bar.sync 0;"),
        Statement::WarpBarrier => writeln!(to, "    bar.warp.sync 0xffffffff;"),
        Statement::Pair(id) => writeln!(to, "    setp.lt.u32 %p, %warp, 2;\n    @%p bar.sync {id}, 64;"),
        Statement::Arrive(id) => writeln!(
            to,
            "    setp.eq.u32 %p, %warp, 0;\n    @%p bar.arrive {id}, 64;\n    setp.eq.u32 %p, %warp, 1;\n    @%p bar.sync {id}, 64;"
        ),
        Statement::Exit(from) => writeln!(to, "    setp.ge.u32 %p, %t, {from};\n    @%p exit;"),
    };
}

/// Computes the address of the element: `%a` in shared memory, `%at` in global memory.
fn address(to: &mut String, (index, apart): (Index, u32), bytes: u32, space: &str) {
    let _ = match index {
        Index::Thread(from) => writeln!(to, "    add.u32 %a, %t, {from};"),
        Index::Lane(from) => writeln!(to, "    add.u32 %a, %lane, {from};"),
        Index::Spaced { by, from } => writeln!(to, "    mad.lo.u32 %a, %t, {by}, {from};"),
        Index::Down { from } => writeln!(to, "    mov.u32 %a, {from};\n    sub.u32 %a, %a, %t;"),
        Index::Same(at) => writeln!(to, "    mov.u32 %a, {at};"),
        Index::Scattered { factor, mask, from } => {
            writeln!(to, "    mul.lo.u32 %a, %t, {factor};\n    and.b32 %a, %a, {mask};\n    add.u32 %a, %a, {from};")
        }
    };
    if apart > 0 && index.differs_by_cta() {
        let _ = writeln!(to, "    mad.lo.u32 %a, %cta, {apart}, %a;");
    }
    // As compilers do it, so that engines see which addresses are rows.
    let _ = match space {
        "shared" => writeln!(to, "    mov.u32 %v, tile;\n    mad.lo.u32 %a, %a, {bytes}, %v;"),
        _ => writeln!(to, "    mul.wide.s32 %at, %a, {bytes};\n    add.u64 %at, %place, %at;"),
    };
}

/// The guard of the threads that execute an access.
fn guard(to: &mut String, who: Who) -> &'static str {
    match who {
        Who::All => "",
        Who::Below(n) => {
            let _ = writeln!(to, "    setp.lt.u32 %p, %t, {n};");
            "@%p "
        }
        Who::Warp(w) => {
            let _ = writeln!(to, "    setp.eq.u32 %p, %warp, {w};");
            "@%p "
        }
        Who::Every { of, rest } => {
            let _ = writeln!(to, "    and.b32 %v, %t, {};\n    setp.eq.u32 %p, %v, {rest};", of - 1);
            "@%p "
        }
    }
}

/// The register of an element of `size` bytes, where `narrow` is that of 32-bit ones.
fn register(size: u32, narrow: &'static str) -> &'static str {
    match size {
        1 | 2 => "%h",
        8 => "%w",
        _ => narrow,
    }
}

fn access(
    to: &mut String,
    number: usize,
    (action, (index, apart), who): (Action, (Index, u32), Who),
    (size, elements): (u32, u32),
    (space, scope): (&str, &str),
) {
    address(to, (index, apart), size * elements, space);
    let at = if space == "shared" { "%a" } else { "%at" };
    let guard = guard(to, who);
    // No other store has these values: 128 threads, 4 CTAs, 4 turns.
    to.push_str("    mad.lo.u32 %v, %turn, 4, %cta;\n    mad.lo.u32 %v, %v, 128, %t;\n");
    let _ = writeln!(to, "    add.u32 %v, %v, {};", (number + 1) * 2048);
    to.push_str("    mov.b64 %w, {%v, %v};\n    cvt.u16.u32 %h, %v;\n");
    let (vector, store) = match elements {
        1 => ("", register(size, "%v").to_owned()),
        2 if size == 8 => (".v2", "{%w, %w}".to_owned()),
        2 => (".v2", "{%v, %v}".to_owned()),
        _ => (".v4", "{%v, %v, %v, %v}".to_owned()),
    };
    let bits = 8 * size;
    let order = if action.is_strong() { format!(".relaxed.{scope}") } else { String::new() };
    let _ = match action {
        Action::Load { .. } => {
            let into = match elements {
                1 => register(size, "%x0"),
                2 if size == 8 => "{%y0, %y1}",
                2 => "{%x0, %x1}",
                _ => "{%x0, %x1, %x2, %x3}",
            };
            writeln!(to, "    {guard}ld{order}.{space}{vector}.b{bits} {into}, [{at}];")
        }
        Action::Store { .. } => writeln!(to, "    {guard}st{order}.{space}{vector}.b{bits} [{at}], {store};"),
        Action::Atomic { result: true } => {
            let into = if size == 8 { "%y0" } else { "%x0" };
            writeln!(to, "    {guard}atom{order}.{space}.add.u{bits} {into}, [{at}], {store};")
        }
        Action::Atomic { result: false } => writeln!(to, "    {guard}red{order}.{space}.add.u{bits} [{at}], {store};"),
    };
}
