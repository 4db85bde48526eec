//! Initial values (manual, section 5.4.4): nested braces, addresses, `generic()`, masks; evaluated into bytes and addresses.

use super::decl::{Shape, constant_error};
use super::{FuncKind, Init, Module, Symbol};
use crate::report::{Report, lacking, since};
use crate::{consts, consts::Const};
use margay_isa::{Kind as TypeKind, Space, Type};
use margay_syntax::{
    EvalError, Span, Tree,
    diag::{Code, Diagnostic, nearest},
    tree::{Kind, Operand},
};

/// Evaluates the initial value of a variable of that shape and those dimensions (0 for an open first one).
/// Returns the contents, and the number of elements that an open first dimension gets.
pub(crate) fn evaluate(
    tree: &Tree,
    module: &Module,
    shape: &Shape,
    dims: &[u64],
    name: Span,
    init: u32,
    report: &mut Report,
) -> (Vec<Init>, u64) {
    let mut levels: Vec<u64> = dims.to_vec();
    if shape.vector > 1 {
        levels.push(u64::from(shape.vector));
    }
    let mut filler = Filler { tree, module, shape, levels, name, out: Vec::new(), report, failed: false };
    let Some(operand) = tree.operands.get(init as usize) else { return (Vec::new(), 0) };
    let open = match operand.kind {
        Kind::Braces(list) => u64::from(list.len),
        _ => 0,
    };
    filler.fill(operand, 0, 0);
    (filler.out, open)
}

/// The error in a property of a texture, sampler or surface, if there is one (section 5.3): ptxas knows these fields, and accepts these names
/// as the value of any.
fn property(tree: &Tree, ty: Type, name: u32, value: u32) -> Option<Diagnostic> {
    const SIZES: &[&str] = &["width", "height", "depth", "channel_data_type", "channel_order", "array_size"];
    const SAMPLING: &[&str] = &["addr_mode_0", "addr_mode_1", "addr_mode_2", "filter_mode"];
    const VALUES: &[&str] = &["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border", "nearest", "linear"];
    let parts: [&[&str]; 3] = match ty {
        Type::TexRef => [SIZES, SAMPLING, &["normalized_coords", "num_mipmap_levels", "num_samples"]],
        Type::SurfRef => [SIZES, &["memory_layout"], &[]],
        _ => [SAMPLING, &["force_unnormalized_coords"], &[]],
    };
    let (name, value) = (tree.operands.get(name as usize)?, tree.operands.get(value as usize)?);
    let (field, found) = (tree.str(name.span), tree.str(value.span));
    let (span, message, known) = if !parts.concat().contains(&field) {
        (name.span, format!("`{ty}` has no field `{field}`"), parts.concat())
    } else if matches!(value.kind, Kind::Name) && !VALUES.contains(&found) {
        (value.span, format!("`{found}` is not a value of `{field}`"), VALUES.to_vec())
    } else {
        return None;
    };
    let d = Diagnostic::new(Code::InitializerType, span, message);
    let near = nearest(if span == name.span { field } else { found }, known.iter().copied());
    let d = d.note(format!("expected one of {}", known.join(", ")));
    Some(match near {
        Some(near) => d.fix(span, near, format!("write `{near}`")),
        None => d,
    })
}

struct Filler<'a> {
    tree: &'a Tree,
    module: &'a Module,
    shape: &'a Shape,
    /// Extents from outermost to innermost, the vector last.
    levels: Vec<u64>,
    name: Span,
    out: Vec<Init>,
    report: &'a mut Report,
    /// One complaint per initializer is enough.
    failed: bool,
}

impl Filler<'_> {
    fn fail(&mut self, d: Diagnostic) {
        if !std::mem::replace(&mut self.failed, true) {
            self.report.push(d);
        }
    }

    fn wrong(&mut self, span: Span, why: String) {
        let ty = self.shape.ty;
        let (name, ty_at) = (self.tree.str(self.name).to_owned(), self.shape.ty_at);
        self.fail(
            Diagnostic::new(Code::InitializerType, span, why).label(ty_at, format!("`{name}` is of type `{ty}`")),
        );
    }

    /// The value of a texture, sampler or surface that is not a list of fields.
    fn no_field(&mut self, span: Span) {
        let ty = self.shape.ty;
        self.wrong(span, format!("the initial value of a `{ty}` consists of fields: `name = value`"));
    }

    /// Fills the part of the variable that begins at byte `at` and has the extents `levels[level..]`.
    fn fill(&mut self, operand: &Operand, level: usize, at: u64) {
        if self.failed {
            return;
        }
        match (operand.kind, self.levels.get(level).copied()) {
            (Kind::Error, _) => self.failed = true,
            (Kind::Braces(list), Some(extent)) => {
                let items = self.tree.operands(list);
                let open = extent == 0 && level == 0;
                if open && items.is_empty() {
                    let d = Diagnostic::new(
                        Code::InitializerCount,
                        operand.span,
                        "an unsized array without initial values",
                    )
                    .label(self.name, "the size comes from the initializer");
                    return self.fail(d);
                }
                if !open && items.len() as u64 > extent {
                    let extra = items[extent as usize].span;
                    let d = Diagnostic::new(
                        Code::InitializerCount,
                        extra,
                        format!("{} initial values for {extent} elements", items.len()),
                    )
                    .label(self.name, "declared here");
                    return self.fail(d);
                }
                if self.shape.vector > 1 && level + 1 == self.levels.len() && (items.len() as u64) < extent {
                    let d = Diagnostic::new(
                        Code::InitializerCount,
                        operand.span,
                        format!("{} initial values for a vector of {extent}", items.len()),
                    )
                    .label(self.name, "declared here");
                    return self.fail(d);
                }
                let inner: u64 = self.levels[level + 1..].iter().product();
                let stride = inner * u64::from(self.shape.ty.bytes());
                for (i, item) in items.iter().enumerate() {
                    self.fill(item, level + 1, at + i as u64 * stride);
                }
            }
            (Kind::Braces(list), None) if self.shape.ty.kind() == TypeKind::Opaque => {
                // Properties of textures and samplers (section 5.3).
                let tree = self.tree;
                for field in &tree.operands[list.range()] {
                    let Kind::Field(name, value) = field.kind else {
                        self.no_field(field.span);
                        continue;
                    };
                    property(tree, self.shape.ty, name, value).into_iter().for_each(|d| self.fail(d));
                    let text = |i: u32| tree.operands.get(i as usize).map_or("", |o| tree.str(o.span)).into();
                    self.out.push(Init::Property { name: text(name), value: text(value) });
                }
            }
            (Kind::Braces(_), None) => self.wrong(operand.span, "braces around the value of a scalar".to_owned()),
            (_, Some(_)) => {
                let what =
                    if self.levels.len() > level + 1 || self.shape.vector == 1 { "an array" } else { "a vector" };
                self.wrong(operand.span, format!("the initializer of {what} must be in braces"));
            }
            (_, None) if self.shape.ty.kind() == TypeKind::Opaque => self.no_field(operand.span),
            (_, None) => self.scalar(operand, at),
        }
    }

    fn scalar(&mut self, operand: &Operand, at: u64) {
        let tree = self.tree;
        match operand.kind {
            Kind::Name if tree.str(operand.span) != "WARP_SZ" => self.address(operand, at, 0, None),
            Kind::Sum { base, offset, minus } if !is_number(tree, base) => {
                let Some(value) = self.offset(offset) else { return };
                let Some(base) = tree.operands.get(base as usize) else { return };
                let value = if minus { value.wrapping_neg() } else { value };
                match base.kind {
                    Kind::Apply { head, argument } => self.apply(head, argument, at, value),
                    _ => self.address(base, at, value, None),
                }
            }
            Kind::Apply { head, argument } => self.apply(head, argument, at, 0),
            _ => match consts::eval(tree, operand) {
                Ok(value) => self.constant(value, operand.span, at),
                Err(EvalError::NotConstant(span)) => {
                    self.wrong(span, format!("`{}` is neither a constant nor an address", tree.str(span)));
                }
                Err(e) => {
                    if !std::mem::replace(&mut self.failed, true) {
                        constant_error(tree, e, self.report);
                    }
                }
            },
        }
    }

    fn offset(&mut self, index: u32) -> Option<i64> {
        match consts::eval_index(self.tree, index) {
            Ok(Const::Int { value, .. }) => Some(value),
            Ok(_) => {
                let span = self.tree.operands[index as usize].span;
                self.wrong(span, "the offset of an address must be an integer".to_owned());
                None
            }
            Err(e) => {
                self.failed = true;
                constant_error(self.tree, e, self.report);
                None
            }
        }
    }

    /// `generic(x)`, `0xFF00(x)`, `0xFF00(generic(x))`, each with an offset after it or inside.
    fn apply(&mut self, head: u32, argument: u32, at: u64, offset: i64) {
        let tree = self.tree;
        let (Some(head), Some(argument)) = (tree.operands.get(head as usize), tree.operands.get(argument as usize))
        else {
            return;
        };
        let (inner, offset) = match argument.kind {
            Kind::Sum { base, offset: more, minus } => {
                let Some(more) = self.offset(more) else { return };
                (tree.operands.get(base as usize), offset.wrapping_add(if minus { more.wrapping_neg() } else { more }))
            }
            _ => (Some(argument), offset),
        };
        let Some(inner) = inner else { return };
        if matches!(head.kind, Kind::Name) {
            if tree.str(head.span) != "generic" {
                return self.wrong(
                    head.span,
                    format!("`{}` is not an initializer function; expected `generic`", tree.str(head.span)),
                );
            }
            if let Some(lack) = lacking(self.module, &since(3, 1, 0)) {
                return self.fail(lack.diagnose(self.module, "`generic()`", head.span));
            }
            return self.address(inner, at, offset, Some(Modified { generic: true, mask: None }));
        }
        let mask = match consts::eval(tree, head) {
            Ok(Const::Int { value, .. }) => value as u64,
            _ => return self.wrong(head.span, "a mask must be an integer".to_owned()),
        };
        if let Some(lack) = lacking(self.module, &since(7, 1, 0)) {
            return self.fail(lack.diagnose(self.module, "a mask in an initial value", head.span));
        }
        let shift = mask.trailing_zeros() & !7;
        if mask == 0 || mask >> shift != 0xff {
            let d = Diagnostic::new(Code::InitializerType, head.span, format!("{mask:#x} is not a mask of one byte"))
                .note("masks are 0xff, 0xff00, 0xff0000, ... up to 0xff00000000000000");
            return self.fail(d);
        }
        let (inner, generic) = match inner.kind {
            Kind::Apply { head, argument }
                if tree.operands.get(head as usize).is_some_and(|h| tree.str(h.span) == "generic") =>
            {
                (tree.operands.get(argument as usize), true)
            }
            _ => (Some(inner), false),
        };
        let Some(inner) = inner else { return };
        self.address(inner, at, offset, Some(Modified { generic, mask: Some(shift as u8) }));
    }

    fn address(&mut self, operand: &Operand, at: u64, offset: i64, how: Option<Modified>) {
        let name = self.tree.str(operand.span);
        let Modified { generic, mask } = how.unwrap_or_default();
        let size = if mask.is_some() { 1 } else { self.shape.ty.bytes() as u8 };
        let pointer = match self.shape.ty {
            Type::U32 | Type::U64 => true,
            Type::U8 => mask.is_some(),
            _ => false,
        };
        if !pointer {
            let wants = if mask.is_some() { "`.u8`" } else { "`.u64` or `.u32`" };
            return self.wrong(operand.span, format!("`{}` cannot hold an address; declare {wants}", self.shape.ty));
        }
        let found = if matches!(operand.kind, Kind::Name) { self.module.symbol(name) } else { None };
        let Some(of) = found else {
            let near = if self.report.may_suggest() { near(self.module, name) } else { None };
            let mut d = Diagnostic::new(
                Code::InitializerSymbol,
                operand.span,
                format!("unknown name `{name}` in an initial value"),
            )
            .note("a variable or function must be declared before its address is used");
            if let Some(near) = near {
                d = d.help(format!("did you mean `{near}`?"));
            }
            return self.fail(d);
        };
        if let Symbol::Global(id) = of {
            let global = self.module.global(id);
            if !matches!(global.space, Space::Global | Space::Const) {
                let (space, span) = (global.space, global.span);
                let d = Diagnostic::new(
                    Code::InitializerSymbol,
                    operand.span,
                    format!("the address of `{name}` is not known before the launch"),
                )
                .label(span, format!("it is in {space}"))
                .note("initializers may contain the addresses of functions and of variables in .global and .const");
                return self.fail(d);
            }
        }
        if matches!(of, Symbol::Func(_) | Symbol::Alias(_)) {
            let (needs, what) = match of {
                Symbol::Func(f) if self.module.func(f).kind == FuncKind::Kernel => {
                    (since(3, 1, 35), "the address of a kernel as an initial value")
                }
                _ => (since(2, 1, 20), "the address of a function as an initial value"),
            };
            if let Some(lack) = lacking(self.module, &needs) {
                let d = lack.diagnose(self.module, what, operand.span);
                self.fail(d);
            } else if generic || offset != 0 {
                self.wrong(operand.span, "the address of a function cannot have `generic` or an offset".to_owned());
            }
        }
        self.out.push(Init::Address { at, size, shift: mask.unwrap_or(0), of, offset, generic });
    }

    fn constant(&mut self, value: Const, span: Span, at: u64) {
        let ty = self.shape.ty;
        let size = ty.bytes() as usize;
        let bits: u128 = match (ty.kind(), value) {
            (TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed, Const::Int { value, .. }) => {
                i128::from(value) as u128
            }
            (TypeKind::Bits, Const::Double(x)) if size == 4 => u128::from((x as f32).to_bits()),
            (TypeKind::Bits, Const::Double(x)) => u128::from(x.to_bits()),
            (TypeKind::Bits, Const::Single(bits)) if size == 8 => u128::from(f64::from(f32::from_bits(bits)).to_bits()),
            (TypeKind::Bits, Const::Single(bits)) => u128::from(bits),
            (TypeKind::Float, Const::Double(x)) if ty == Type::F32 => u128::from((x as f32).to_bits()),
            (TypeKind::Float, Const::Double(x)) if ty == Type::F64 => u128::from(x.to_bits()),
            (TypeKind::Float, Const::Single(bits)) if ty == Type::F32 => u128::from(bits),
            (TypeKind::Float, Const::Single(bits)) if ty == Type::F64 => {
                u128::from(f64::from(f32::from_bits(bits)).to_bits())
            }
            (TypeKind::Float, _) if matches!(ty, Type::F16 | Type::F16x2) => {
                return self
                    .wrong(span, format!("`{ty}` variables cannot have initial values; declare `.b{}`", ty.bits()));
            }
            (_, Const::Int { value, .. }) => {
                let float = consts::as_float(self.tree.str(span), value);
                return self.wrong(span, format!("an integer for `{ty}`; write `{float}`"));
            }
            _ => return self.wrong(span, format!("a floating-point value for `{ty}`")),
        };
        let bytes = &bits.to_le_bytes()[..size.min(16)];
        match self.out.last_mut() {
            Some(Init::Bytes { at: start, bytes: before }) if *start + before.len() as u64 == at => {
                before.extend_from_slice(bytes)
            }
            _ => self.out.push(Init::Bytes { at, bytes: bytes.to_vec() }),
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Modified {
    generic: bool,
    mask: Option<u8>,
}

fn is_number(tree: &Tree, index: u32) -> bool {
    tree.operands
        .get(index as usize)
        .is_none_or(|o| !matches!(o.kind, Kind::Name | Kind::Apply { .. }) || tree.str(o.span) == "WARP_SZ")
}

/// The variable or function that an unknown name may have meant. In modules with very many, only the first are compared.
#[cold]
fn near<'m>(module: &'m Module, name: &str) -> Option<&'m str> {
    const LIMIT: usize = 4000;
    let variables = module.globals.iter().take(LIMIT).map(|g| &*g.name);
    nearest(name, variables.chain(module.funcs.iter().take(LIMIT).map(|f| &*f.name)))
}
