//! The PTX of attacks.

use super::Attack;
use crate::{
    kernels::{Node, THREADS, WORDS},
    random::Random,
};
use std::fmt::Write;

/// Offsets in a thread's own words: of the payload's result, and of the mark that every thread leaves at the end.
const RESULT: u32 = 220;
const PASSED: u32 = 232;

impl Attack {
    /// The text of the module.
    pub fn text(&self) -> String {
        let (version, target) = self.payload.target;
        let head = format!(".version {version}\n.target {target}\n.address_size 64\n");
        match &self.host {
            None => self.lean(&head),
            Some((module, at)) => {
                let mut module = module.clone();
                module.plant(*at, Node::Straight(vec![self.scope()]));
                let text = module.text();
                let body = text.split_once(".address_size 64\n").map_or("", |(_, body)| body);
                format!("{head}{}\n{body}", self.payload.module.join("\n"))
            }
        }
    }

    fn lean(&self, head: &str) -> String {
        let mut out = format!("{head}{}\n", self.payload.module.join("\n"));
        let mut params = vec![
            ".param .u64 in".to_owned(),
            ".param .u64 out".into(),
            ".param .u64 sums".into(),
            ".param .u32 c".into(),
            ".param .u32 d".into(),
        ];
        params.extend(self.payload.params.iter().cloned());
        let _ = writeln!(out, ".visible .entry k({}) {}\n{{", params.join(", "), self.payload.entry);
        for text in [
            ".reg .b32 %lin, %gid, %lane, %x<8>; .reg .b64 %input, %own, %counters; .reg .pred %q<4>; .reg .f32 %v<4>;",
            "ld.param.u64 %input, [in]; ld.param.u64 %own, [out]; ld.param.u64 %counters, [sums];",
            "mov.u32 %x0, %tid.y; mov.u32 %x1, %ntid.x; mov.u32 %x2, %tid.z; mov.u32 %x3, %ntid.y; mov.u32 %x4, %ntid.z;",
            "mad.lo.u32 %x0, %x2, %x3, %x0; mov.u32 %lin, %tid.x; mad.lo.u32 %lin, %x0, %x1, %lin;",
            "mul.lo.u32 %x1, %x1, %x3; mul.lo.u32 %x1, %x1, %x4; mov.u32 %lane, %laneid;",
            "mov.u32 %x2, %ctaid.y; mov.u32 %x3, %nctaid.x; mov.u32 %x4, %ctaid.x; mad.lo.u32 %x2, %x2, %x3, %x4;",
            "mad.lo.u32 %gid, %x2, %x1, %lin;",
        ] {
            let _ = writeln!(out, "    {text}");
        }
        let _ = writeln!(out, "    mad.wide.u32 %own, %gid, {}, %own;", WORDS * 4);
        for piece in &self.before {
            let _ = writeln!(out, "    {piece}");
        }
        let _ = writeln!(out, "    {}", self.scope());
        for piece in &self.after {
            let _ = writeln!(out, "    {piece}");
        }
        out.push_str("    ret;\n}\n");
        out
    }

    /// The payload in a scope of its own, in which it sees `%gid` and `%lin`, the thread's index in the grid and in its
    /// CTA, `%lane`, the thread's `%own` words, the `%input`, and the words `%counters`, which are not compared.
    fn scope(&self) -> String {
        let mut out = String::from("{\n");
        let mut line = |text: &str| {
            let _ = writeln!(out, "    {text}");
        };
        line(".reg .b32 %r<16>, %nthreads; .reg .b64 %d<16>; .reg .b16 %h<4>; .reg .f32 %f<4>; .reg .f64 %g<4>;");
        line(".reg .pred %p<8>, %executes;");
        line("mov.u32 %r0, 0; mov.u64 %d0, 0;");
        line("mov.u32 %nthreads, %ntid.x; mov.u32 %r9, %ntid.y; mul.lo.u32 %nthreads, %nthreads, %r9;");
        line("mov.u32 %r9, %ntid.z; mul.lo.u32 %nthreads, %nthreads, %r9;");
        self.payload.setup.iter().for_each(|l| line(l));
        line(&self.who.test());
        line("@!%executes bra SAFE;");
        self.payload.body.iter().for_each(|l| line(l));
        line("SAFE:");
        self.payload.rest.iter().for_each(|l| line(l));
        if !self.payload.quiet {
            line("cvt.u32.u64 %r9, %d0; xor.b32 %r0, %r0, %r9; shr.u64 %d0, %d0, 32; cvt.u32.u64 %r9, %d0;");
            line(&format!("xor.b32 %r0, %r0, %r9; st.global.u32 [%own+{RESULT}], %r0;"));
        }
        line(&format!("st.global.u32 [%own+{PASSED}], 1;"));
        out.push('}');
        out
    }
}

/// Harmless code of a lean kernel, which gives it loops, branches, barriers and live registers.
pub fn harmless(r: &mut Random) -> String {
    let n = r.below(1000);
    match r.below(8) {
        0 => "bar.sync 0;".into(),
        1 => format!(
            "{{ .reg .u32 %i; .reg .pred %t; mov.u32 %i, 0;\n    top:\n    mad.lo.u32 %x5, %x5, 77, %i;\n    \
             add.u32 %i, %i, 1; setp.lt.u32 %t, %i, {}; @%t bra top;\n    st.global.u32 [%own+4], %x5; }}",
            1 + n % 7
        ),
        2 => format!(
            "{{ .reg .pred %t; setp.lt.u32 %t, %lin, {};\n    @%t bra over;\n    st.global.u32 [%own+8], {n};\n    over: }}",
            n % 40
        ),
        3 => format!(
            "{{ .shared .align 4 .b8 words_{n}[{}]; .reg .b64 %t; mov.u64 %t, words_{n}; mad.wide.u32 %t, %lin, 4, %t;\n    \
             st.shared.u32 [%t], %gid; bar.sync 0; ld.shared.u32 %x6, [%t]; st.global.u32 [%own+12], %x6; }}",
            THREADS * 4
        ),
        4 => format!(
            "{{ .local .align 4 .b8 mine_{n}[16]; st.local.u32 [mine_{n}+4], {n}; ld.local.u32 %x6, [mine_{n}+4];\n    \
             st.global.u32 [%own+16], %x6; }}"
        ),
        5 => "{ .reg .b32 %t; mov.u32 %t, %clock; and.b32 %t, %t, 0; add.u32 %x7, %x7, %t; }".into(),
        6 => format!("atom.global.add.u32 %x7, [%counters+{}], {};", 4 * (n % 8), n % 9),
        _ => format!(
            "ld.global.f32 %v1, [%input+{}]; mul.f32 %v1, %v1, %v1; st.global.f32 [%own+20], %v1;",
            4 * (n % 256)
        ),
    }
}
