//! One argument or result of a call: whether it fits the formal parameter (manual, sections 7.1 and 9.7.12.5).

use super::{call::written, prototypes::shape};
use crate::body::{Operand, SymRef, Walker};
use crate::{Extent, Formal, Function};
use margay_isa::{Kind, Space, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

/// Whether a value goes to the callee or comes back, and its index.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Argument(usize),
    Result(usize),
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Direction::Argument(i) => write!(f, "argument {}", i + 1),
            Direction::Result(0) => write!(f, "the result"),
            Direction::Result(i) => write!(f, "result {}", i + 1),
        }
    }
}

/// The operand that is passed, or that receives a result: a register or a `.param` variable.
struct Actual {
    ty: Type,
    vector: u8,
    extent: Extent,
    dimensions: u32,
    align: u32,
    size: u64,
    reg: bool,
    at: Span,
}

/// One argument or result.
pub(super) fn check(
    w: &mut Walker<'_, '_>,
    span: Span,
    actual: Operand,
    formal: &Formal,
    f: &Function,
    way: Direction,
) {
    let result = matches!(way, Direction::Result(_));
    let actual = match actual {
        Operand::Error => return,
        Operand::Sink if result => return,
        Operand::Sink => {
            let d = Diagnostic::new(Code::CallArgument, span, format!("{way} is `_`, which has no value"));
            return w
                .report
                .push(d.label(formal.span, "this parameter requires a value").help("`_` can only discard a result"));
        }
        Operand::Int(_) | Operand::Float { .. } if result => {
            let d = Diagnostic::new(
                Code::CallArgument,
                span,
                format!("{way} of `{}` cannot be received by a constant", f.name),
            );
            return w
                .report
                .push(d.help("receive it in a register, or discard it with `_`").note("ptxas crashes on this"));
        }
        Operand::Int(value) => return integer(w, span, value, formal, way),
        Operand::Float { bits, single } => return float(w, span, bits, single, formal, way),
        Operand::Reg(reg) => {
            let d = *w.body.decl(reg);
            let natural = (d.ty.bytes().max(1) * u32::from(d.vector)).next_power_of_two();
            let align = w.register_alignment(reg).unwrap_or(natural).max(natural);
            // Predicates count as one byte, as in formals.
            let size = u64::from(d.ty.bytes().max(1)) * u64::from(d.vector);
            Actual {
                ty: d.ty,
                vector: d.vector,
                extent: Extent::Scalar,
                dimensions: 0,
                align,
                size,
                reg: true,
                at: d.name,
            }
        }
        Operand::Symbol(SymRef::Local(i), _) if w.body.locals[i as usize].space == Space::Param => {
            let l = &w.body.locals[i as usize];
            Actual {
                ty: l.ty,
                vector: l.vector,
                extent: l.extent,
                dimensions: l.dimensions,
                align: l.align,
                size: l.size,
                reg: false,
                at: l.name,
            }
        }
        other => return not_passable(w, span, other, way),
    };
    matches(w, span, &actual, formal, f, way);
}

/// Something that is neither register, `.param` variable of the caller, nor constant.
#[cold]
fn not_passable(w: &mut Walker<'_, '_>, span: Span, actual: Operand, way: Direction) {
    let name = w.tree.str(span).to_owned();
    let d = match actual {
        Operand::Symbol(symbol @ (SymRef::Param(_) | SymRef::Ret(_)), _) => {
            let (_, at) = w.type_of_symbol(symbol);
            Diagnostic::new(
                Code::CallArgument,
                span,
                format!("{way}, `{name}`, is a parameter of `{}` itself", w.func.name),
            )
            .label(at, "declared here")
            .help("copy it to a register or to a `.param` variable of the body")
        }
        Operand::Symbol(SymRef::Func(_), _) => {
            Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, is a function"))
                .help(format!("take its address first: `mov.u64 r, {name};`"))
        }
        Operand::Symbol(symbol, _) => {
            let (_, at) = w.type_of_symbol(symbol);
            let space = w.symbol_space(symbol);
            Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, is in {space}"))
                .label(at, "declared here")
                .help("pass its address in a register, or its value in a register or `.param` variable")
        }
        Operand::Special(..) => {
            Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, is a special register"))
                .help(format!("move it to a register first: `mov.u32 r, {name};`"))
        }
        _ => Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, cannot be passed"))
            .note("arguments are registers, `.param` variables of the caller, and constants"),
    };
    w.report.push(d);
}

/// Whether two scalar types go together for ptxas: untyped bits with anything, integers with integers.
fn kinds(x: Type, y: Type) -> bool {
    let bits = |t: Type| t.kind() == Kind::Bits || t == Type::F16x2;
    let apart = |t: Type| t == Type::Pred || t.kind() == Kind::Opaque;
    if apart(x) || apart(y) {
        return x == y;
    }
    bits(x) || bits(y) || x == y || (x.is_int() && y.is_int())
}

fn matches(w: &mut Walker<'_, '_>, span: Span, a: &Actual, formal: &Formal, f: &Function, way: Direction) {
    let arrays = (a.extent != Extent::Scalar, formal.extent != Extent::Scalar);
    let fits = match arrays {
        (false, false) => {
            let vectors = a.vector > 1 || formal.vector > 1;
            a.size == u64::from(formal.size) && (vectors || kinds(a.ty, formal.ty))
        }
        (true, true) => {
            let size = formal.extent == Extent::Unsized || a.size == u64::from(formal.size);
            let untyped = a.ty.kind() == Kind::Bits || formal.ty.kind() == Kind::Bits;
            // Formats that registers do not have, and pairs of halves, are not taken as bits.
            let plain = |t: Type| t.is_register() && t != Type::F16x2;
            // Parameters have one dimension, and ptxas requires the same of arguments, even for `[]`.
            let flat = a.dimensions == 1;
            flat && size && (a.ty == formal.ty || untyped && plain(a.ty) && plain(formal.ty))
        }
        _ => false,
    };
    if !fits {
        return wrong_type(w, span, a, formal, f, way, arrays);
    }
    if a.align != formal.align {
        return wrong_alignment(w, span, a, formal, f, way);
    }
    // The manual requires equal types, except for bit-size types; ptxas requires equal sizes.
    let bits = a.ty.kind() == Kind::Bits || formal.ty.kind() == Kind::Bits;
    let strict = match arrays {
        (true, true) => a.ty == formal.ty,
        _ => a.vector == formal.vector && (bits || a.ty == formal.ty || a.ty == Type::F16x2),
    };
    if !strict {
        let name = w.tree.str(span);
        let d = Diagnostic::new(
            Code::CallType,
            span,
            format!(
                "{way} `{name}` is `{}`, but the parameter `{}` is `{}`",
                actual_shape(a),
                formal.name,
                shape(formal)
            ),
        )
        .label(a.at, "declared here")
        .label(formal.span, "the parameter")
        .note("section 7.1: type and size must match");
        w.report.text_only(d);
    }
}

fn actual_shape(a: &Actual) -> String {
    let vector = if a.vector > 1 { format!(".v{} ", a.vector) } else { String::new() };
    match a.extent {
        Extent::Array(n) => format!("{vector}{}[{n}]", a.ty),
        _ => format!("{vector}{}", a.ty),
    }
}

#[cold]
fn wrong_type(
    w: &mut Walker<'_, '_>,
    span: Span,
    a: &Actual,
    formal: &Formal,
    f: &Function,
    way: Direction,
    arrays: (bool, bool),
) {
    let name = w.tree.str(span);
    let has = format!("`{}`", actual_shape(a));
    let sizes = a.size != u64::from(formal.size) && formal.extent != Extent::Unsized;
    let message = match way {
        _ if arrays.0 != arrays.1 && a.reg => {
            format!("{way} `{name}` is a register; `{}` expects the `.param` array `{}`", f.name, written(formal))
        }
        _ if a.dimensions > 1 => {
            format!("{way} `{name}` has {} dimensions; `{}` expects `{}`", a.dimensions, f.name, written(formal))
        }
        _ if sizes => {
            format!(
                "{way} `{name}` has {}; `{}` expects `{}` with {}",
                bytes(a.size),
                f.name,
                written(formal),
                bytes(formal.size.into())
            )
        }
        _ => format!("{way} `{name}` is {has}; `{}` expects `{}`", f.name, written(formal)),
    };
    let mut d = Diagnostic::new(Code::CallType, span, message)
        .label(a.at, format!("declared as {has}"))
        .label(formal.span, "the parameter");
    if arrays == (false, true) && !a.reg {
        d = d.help(format!("declare an array: `{}`", written(formal)));
    } else if (sizes || a.dimensions > 1) && !a.reg {
        d = d.help(format!("declare `{}`", written(formal)));
    }
    w.report.push(d.note(format!("`margay abi` shows how `{}` is called", f.name)));
}

fn bytes(n: u64) -> String {
    if n == 1 { "1 byte".to_owned() } else { format!("{n} bytes") }
}

#[cold]
fn wrong_alignment(w: &mut Walker<'_, '_>, span: Span, a: &Actual, formal: &Formal, f: &Function, way: Direction) {
    let name = w.tree.str(span);
    let mut d = Diagnostic::new(
        Code::CallAlignment,
        span,
        format!("{way} `{name}` has alignment {}; `{}` expects {}", a.align, f.name, formal.align),
    )
    .label(a.at, format!("aligned to {}", a.align))
    .label(formal.span, format!("aligned to {}", formal.align))
    .note("section 7.1: an argument has the size and alignment of its parameter");
    if !a.reg {
        let array = match a.extent {
            Extent::Array(n) => format!("[{n}]"),
            _ => String::new(),
        };
        d = d.help(format!("declare `.param .align {} {} {name}{array}`", formal.align, a.ty));
    }
    w.report.push(d);
}

/// An integer constant as an argument.
fn integer(w: &mut Walker<'_, '_>, span: Span, value: i64, formal: &Formal, way: Direction) {
    let ty = formal.ty;
    let vector = formal.vector > 1 && formal.size == 8;
    let fits = formal.extent == Extent::Scalar
        && (vector || (formal.vector == 1 && matches!(ty.kind(), Kind::Bits | Kind::Signed | Kind::Unsigned)));
    if !fits {
        return no_constant(w, span, formal, way);
    }
    let bits = ty.bits();
    let text = w.tree.str(span);
    // A literal beyond `.s64` is unsigned: its bits are all there is.
    let negative = value < 0 && text.trim_start().starts_with(['-', '(', '~']);
    let unsigned = u128::from(value as u64);
    let representable = match ty.kind() {
        _ if bits >= 128 || vector => true,
        Kind::Unsigned => !negative && unsigned < 1 << bits,
        Kind::Signed if negative => i128::from(value) >= -(1i128 << (bits - 1)),
        Kind::Signed => unsigned < 1 << (bits - 1),
        _ if negative => i128::from(value) >= -(1i128 << (bits - 1)),
        _ => unsigned < 1 << bits,
    };
    if !representable {
        w.report.text_only(
            Diagnostic::new(Code::CallConstant, span, format!("{way}, {text}, is not a value of `{ty}`"))
                .label(formal.span, "the parameter")
                .note("section 7.1: a constant argument must be representable in the parameter's type"),
        );
    }
}

/// A floating-point constant as an argument.
fn float(w: &mut Walker<'_, '_>, span: Span, _bits: u64, single: bool, formal: &Formal, way: Direction) {
    let ty = formal.ty;
    // A vector of the constant's own size takes it.
    let vector = formal.vector > 1 && formal.size == if single { 4 } else { 8 };
    let fits = formal.extent == Extent::Scalar
        && (vector
            || formal.vector == 1
                && match ty {
                    Type::F16x2 => single,
                    _ => matches!(ty.kind(), Kind::Bits | Kind::Float),
                });
    if !fits {
        return no_constant(w, span, formal, way);
    }
    let text = w.tree.str(span);
    let double = text.starts_with("0d") || text.starts_with("0D");
    let wanted = match ty {
        Type::F32 => !double,
        Type::F64 => !single,
        _ => ty.is_float() && !single && !double,
    };
    if !wanted && !vector {
        w.report.text_only(
            Diagnostic::new(Code::CallConstant, span, format!("{way}, {text}, is not a value of `{ty}`"))
                .label(formal.span, "the parameter")
                .note("section 7.1: a constant argument must be representable in the parameter's type"),
        );
    }
}

#[cold]
fn no_constant(w: &mut Walker<'_, '_>, span: Span, formal: &Formal, way: Direction) {
    let text = w.tree.str(span);
    let d = Diagnostic::new(
        Code::CallType,
        span,
        format!("{way} is the constant {text}, but the parameter is `{}`", written(formal)),
    )
    .label(formal.span, "the parameter");
    let d = if formal.extent != Extent::Scalar {
        d.help("store the value in a `.param` array and pass the array")
    } else if formal.ty == Type::F32 && crate::consts::is_decimal(text) {
        d.help(format!("write `{text}.0`"))
    } else {
        d.help("move it to a register of the right type first")
    };
    w.report.push(d);
}
