//! Operations that round in a given direction: `.rm`, `.rp`, `.rz` (manual, section 9.7.3).
//!
//! AVX-512 has them. Without it, the rounding mode of the MXCSR register is changed around the operation, in one piece of assembly, so that
//! LLVM moves nothing else to where it holds: two loads of the register take a nanosecond, which four vectors share.

use crate::emit::{
    function::Emitter,
    function::affine::{Row, rows},
    text::{Elem, Ty, Val, constant},
};
use margay_isa::{Mod, Opcode, Variant};
use std::fmt::Write;

/// Lanes of single precision in a vector of AVX.
const WIDTH: u32 = 8;
/// Vectors whose operations share a change of the rounding mode: with three operands they take 12 registers.
const SHARING: usize = 4;
/// The rounding mode in MXCSR.
const MODE: u32 = 0x6000;

/// The embedded-rounding immediate of AVX-512 with exceptions suppressed; `None` for rounding to nearest even.
pub(super) fn direction(variant: &Variant) -> Option<u32> {
    [(Mod::Rm, 9), (Mod::Rp, 10), (Mod::Rz, 11)].into_iter().find(|(m, _)| variant.has(*m)).map(|(_, code)| code)
}

impl Emitter<'_> {
    /// Whether the host rounds a row in a given direction.
    pub(super) fn rounds(&self, variant: &Variant, single: bool) -> bool {
        let op = variant.op;
        let known = matches!(
            op,
            Opcode::Add
                | Opcode::Sub
                | Opcode::Mul
                | Opcode::Fma
                | Opcode::Mad
                | Opcode::Div
                | Opcode::Sqrt
                | Opcode::Rcp
        );
        // The NaN is that of the first NaN operand in double precision; a fused operation may reorder its operands.
        let host = self.options.mask_registers || self.options.fused;
        known && host && (single || !matches!(op, Opcode::Fma | Opcode::Mad))
    }

    /// Emits an operation that rounds in a direction.
    pub(super) fn directed(&mut self, op: Opcode, direction: u32, v: &[Val]) -> Val {
        let mut v = v.to_vec();
        if op == Opcode::Rcp {
            let double = v[0].ty.elem == Elem::F64;
            let one = if double { i128::from(1f64.to_bits()) } else { i128::from(1f32.to_bits()) };
            v.insert(0, constant(Ty::scalar(v[0].ty.elem), one));
        }
        if self.options.mask_registers { self.embedded(op, direction, &v) } else { self.by_mode(op, direction, &v) }
    }

    /// The same with embedded rounding, 512 bits at a time.
    fn embedded(&mut self, op: Opcode, direction: u32, v: &[Val]) -> Val {
        let scalar = v.iter().all(|v| !v.ty.vector);
        let v: Vec<Val> = v.iter().map(|v| self.w.splat(v)).collect();
        let ty = v[0].ty;
        let (suffix, lanes) = if ty.elem == Elem::F64 { ("pd", 8) } else { ("ps", 16) };
        let function = match op {
            Opcode::Fma | Opcode::Mad => format!("llvm.x86.avx512.vfmadd.{suffix}.512"),
            Opcode::Rcp => format!("llvm.x86.avx512.div.{suffix}.512"),
            _ => format!("llvm.x86.avx512.{}.{suffix}.512", op.row().name),
        };
        let part = ty.part(lanes);
        let types = vec![part.as_str(); v.len()].join(", ");
        self.w.declared.insert(format!("declare {part} @{function}({types}, i32)"));
        let count = if scalar { 1 } else { 32 / lanes };
        let pieces: Vec<Val> = (0..count)
            .map(|index| {
                let arguments: String =
                    v.iter().map(|v| format!("{part} {}, ", self.piece(v, Row { width: lanes, index }))).collect();
                self.w.value(ty, format_args!("call {part} @{function}({arguments}i32 {direction})"))
            })
            .collect();
        if !scalar {
            return self.concat(pieces, ty.elem, lanes);
        }
        let scalar = Ty::scalar(ty.elem);
        self.w.value(scalar, format_args!("extractelement {part} {}, i32 0", pieces[0]))
    }

    /// The same by the host's rounding mode.
    fn by_mode(&mut self, op: Opcode, direction: u32, v: &[Val]) -> Val {
        let scalar = v.iter().all(|v| !v.ty.vector);
        let ty = Ty::lanes(v[0].ty.elem);
        let width = WIDTH * 32 / ty.elem.bits();
        let (same, v): (Vec<bool>, Vec<Val>) = v.iter().map(|v| (!v.ty.vector, self.w.splat(v))).unzip();
        let every: Vec<Row> = rows(width).take(if scalar { 1 } else { 32 }).collect();
        let mut pieces = Vec::new();
        for some in every.chunks(SHARING) {
            let operands: Vec<Vec<Val>> = v
                .iter()
                .zip(&same)
                .map(|(v, same)| {
                    some[..if *same { 1 } else { some.len() }].iter().map(|row| self.piece(v, *row)).collect()
                })
                .collect();
            pieces.extend(self.in_mode(op, direction, &operands, some.len(), width));
        }
        if !scalar {
            return self.concat(pieces, ty.elem, width);
        }
        let part = ty.part(width);
        self.w.value(Ty::scalar(ty.elem), format_args!("extractelement {part} {}, i32 0", pieces[0]))
    }

    /// Some vectors' operations in a rounding mode. Each operand is a list of vectors, or one for all.
    fn in_mode(&mut self, op: Opcode, direction: u32, operands: &[Vec<Val>], count: usize, width: u32) -> Vec<Val> {
        let ty = operands[0][0].ty;
        let part = ty.part(width);
        let suffix = if ty.elem == Elem::F64 { "pd" } else { "ps" };
        let fused = matches!(op, Opcode::Fma | Opcode::Mad);
        let (mut constraints, mut arguments) = (vec!["=&x".to_string(); count], Vec::new());
        // Numbers of the operands' registers.
        let mut numbers = Vec::new();
        for (i, vectors) in operands.iter().enumerate() {
            let tied = fused && i == 0;
            numbers.push(Vec::new());
            for k in 0..if tied { count } else { vectors.len() } {
                numbers[i].push(if tied { k } else { constraints.len() });
                constraints.push(if tied { k.to_string() } else { "x".into() });
                arguments.push(format!("{part} {}", vectors[k.min(vectors.len() - 1)]));
            }
        }
        let [normal, mode] = [0, direction].map(|d| self.rounding_mode(d));
        let (into, back) = (constraints.len(), constraints.len() + 1);
        constraints.extend(["*m".to_string(), "*m".to_string()]);
        arguments.extend([mode, normal].map(|p| format!("ptr elementtype(i32) {p}")));
        let mut text = format!("vldmxcsr ${into}");
        for k in 0..count {
            let from = |i: usize| numbers[i][k.min(numbers[i].len() - 1)];
            _ = match (op, operands.len()) {
                (_, 3) => write!(text, "\\0Avfmadd213{suffix} ${}, ${}, ${k}", from(2), from(1)),
                (Opcode::Rcp, _) => write!(text, "\\0Avdiv{suffix} ${}, ${}, ${k}", from(1), from(0)),
                // Double precision keeps the first NaN, so LLVM must not exchange operands for a shorter encoding.
                (_, 2) if suffix == "pd" => {
                    let (name, a, b) = (op.row().name, from(0), from(1));
                    write!(text, "\\0A{{vex3}} v{name}{suffix} ${b}, ${a}, ${k}")
                }
                (_, 2) => write!(text, "\\0Av{}{suffix} ${}, ${}, ${k}", op.row().name, from(1), from(0)),
                _ => write!(text, "\\0Av{}{suffix} ${}, ${k}", op.row().name, from(0)),
            };
        }
        _ = write!(text, "\\0Avldmxcsr ${back}");
        let results = if count == 1 { part.clone() } else { format!("{{ {} }}", vec![&part[..]; count].join(", ")) };
        let (constraints, arguments) = (constraints.join(","), arguments.join(", "));
        let call =
            format!("call {results} asm \"{text}\", \"{constraints}\"({arguments}) nounwind memory(argmem: read)");
        let all = self.w.value(ty, format_args!("{call}"));
        if count == 1 {
            return vec![all];
        }
        (0..count).map(|k| self.w.value(ty, format_args!("extractvalue {results} {all}, {k}"))).collect()
    }

    /// The address of a value of MXCSR with a rounding mode, made at the function's entry; without a direction, of its value there.
    fn rounding_mode(&mut self, direction: u32) -> Val {
        if let Some(known) = self.entry.modes.get(&direction) {
            return known.clone();
        }
        let place = self.w.alloca("i32", 4);
        if direction == 0 {
            let read = "call void asm sideeffect \"vstmxcsr $0\", \"=*m\"";
            _ = writeln!(self.w.entry, "  {read}(ptr elementtype(i32) {place})");
        } else {
            let normal = self.rounding_mode(0);
            let word = Ty::scalar(Elem::I32);
            let old = self.w.at_entry(word, format_args!("load i32, ptr {normal}, align 4"));
            let rest = self.w.at_entry(word, format_args!("and i32 {old}, {}", !MODE as i32));
            // The codes of embedded rounding and of MXCSR have the same order.
            let new = self.w.at_entry(word, format_args!("or i32 {rest}, {}", (direction - 8) << 13));
            _ = writeln!(self.w.entry, "  store i32 {new}, ptr {place}, align 4");
        }
        self.entry.modes.insert(direction, place.clone());
        place
    }
}
