//! Variable declarations in all contexts: state space, type, vector, alignment, extent (manual, sections 5.1 to 5.4).

use super::{Extent, Module};
use crate::report::{Lack, Report, count, lacking, since};
use crate::{consts, consts::Const};
use margay_isa::{Kind as TypeKind, Space, Type, Version};
use margay_syntax::{
    EvalError, Span, Tree,
    diag::{Code, Diagnostic, nearest},
    tree::{self, Declarator, Kind},
};

/// The context of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShapeAt {
    /// At module level.
    Module,
    /// In a body.
    Body,
    /// In the parameter list of a kernel.
    Kernel,
    /// In the parameter list of a device function or prototype.
    Input,
    /// In the return list of a device function or prototype.
    Return,
}

impl ShapeAt {
    /// True in a parameter or return list.
    pub(crate) fn is_formal(self) -> bool {
        matches!(self, ShapeAt::Kernel | ShapeAt::Input | ShapeAt::Return)
    }
}

/// The part of a declaration that applies to all its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// State space.
    pub(crate) space: Space,
    /// `.const[3]`
    pub(crate) bank: Option<u32>,
    /// Element type.
    pub(crate) ty: Type,
    /// `.v2`, `.v4`; else 1.
    pub(crate) vector: u8,
    /// Alignment in bytes, explicit or natural.
    pub(crate) align: u32,
    /// The type's place, for labels.
    pub(crate) ty_at: Span,
}

impl Shape {
    /// Bytes of one element: a vector counts as a whole.
    pub(crate) fn element(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.vector)
    }
}

/// Reads the part of a declaration that all its names share. `None` if space or type is invalid; the names should then be recorded as
/// faulty, so that their uses are not reported.
pub(crate) fn declare(
    tree: &Tree,
    module: &Module,
    var: &tree::Var,
    at: ShapeAt,
    report: &mut Report,
) -> Option<Shape> {
    let (space, bank) = space(tree, module, var, report)?;
    let (ty, ty_at) = match var.ty {
        Some(span) => (scalar(tree, span, report)?, span),
        // `.tex x` of PTX 1.0 has no type of its own.
        None if space == Space::Tex => (Type::U32, var.space),
        None => {
            report.push(
                Diagnostic::new(Code::VariableType, var.span, "the declaration has no type")
                    .help("write a type before the name: `.u32`, `.b8`, `.f32`"),
            );
            return None;
        }
    };
    let vector = vector(tree, var.vector, ty, ty_at, report);
    let natural = (ty.bytes().max(1) * u32::from(vector)).next_power_of_two();
    let align = var.align.and_then(|operand| alignment(tree, operand, at, space, report));
    let shape = Shape {
        space,
        bank,
        ty,
        vector,
        // An alignment below the natural one is raised to it, as ptxas does.
        align: align.unwrap_or(natural).max(natural),
        ty_at,
    };
    type_fits_space(tree, module, &shape, var, at, report);
    Some(shape)
}

fn space(tree: &Tree, module: &Module, var: &tree::Var, report: &mut Report) -> Option<(Space, Option<u32>)> {
    let span = var.space;
    let text = tree.str(span);
    let word = text.strip_prefix('.').unwrap_or(text);
    let (name, bank) = match word.split_once('[') {
        Some((name, rest)) => (name.trim_end(), Some(rest.trim_end_matches(']').trim())),
        None => (word, None),
    };
    let space = match name {
        // Sub-qualifiers are written on instructions only, but cost nothing to understand.
        "param::entry" | "param::func" => Space::Param,
        "shared::cta" | "shared::cluster" => Space::Shared,
        // Opaque types once had a space of their own name.
        "texref" | "samplerref" | "surfref" => Space::Global,
        _ => match Space::from_name(name) {
            Some(space) if space != Space::Sreg => space,
            _ => {
                let d = if text.is_empty() {
                    Diagnostic::new(Code::VariableSpace, span, "a declaration without a state space")
                        .here("expected a space, such as `.param` or `.reg`")
                } else {
                    let message = format!("`{text}` is not a state space for variables");
                    Diagnostic::new(Code::VariableSpace, span, message)
                        .note("expected .reg, .const, .global, .local, .param or .shared")
                };
                report.push(d);
                return None;
            }
        },
    };
    let Some(bank) = bank else { return Some((space, None)) };
    if let Some(lack) = lacking(module, &since(1, 5, 0)).filter(|_| bank != "0") {
        report.push(lack.diagnose(module, "a bank of constant memory", span));
    }
    if module.version >= Version::new(2, 2) && module.version_at.is_some() {
        report.push(Diagnostic::new(Code::Removed, span, "banks of constant memory were removed in PTX ISA 2.2").fix(
            span,
            ".const",
            "write `.const`",
        ));
    }
    match bank.parse::<u32>() {
        Ok(n) if n <= 10 && space == Space::Const => {
            let external = tree.directives(var.linkage).first().is_some_and(|d| tree.str(d.name) == ".extern");
            if n > 0 && !external {
                report.push(
                    Diagnostic::new(Code::VariableSpace, span, "banks 1 to 10 are only for unsized external arrays")
                        .help("write `.const`, or `.extern .const[N] ... x[]`"),
                );
            }
            Some((space, Some(n)))
        }
        _ if bank.is_empty() => Some((space, None)),
        _ => {
            report.push(
                Diagnostic::new(Code::VariableSpace, span, format!("`{text}` is not a bank of constant memory"))
                    .note("the banks are .const[0] to .const[10]"),
            );
            Some((space, None))
        }
    }
}

fn scalar(tree: &Tree, span: Span, report: &mut Report) -> Option<Type> {
    let text = tree.str(span);
    let name = text.strip_prefix('.').unwrap_or(text);
    let found = Type::from_name(name);
    if found.is_none() {
        let near = nearest(name, Type::ALL.iter().map(|t| t.name()));
        let mut d = Diagnostic::new(Code::VariableType, span, format!("`{text}` is not a type"));
        if let Some(near) = near {
            d = d.fix(span, format!(".{near}"), format!("write `.{near}`"));
            d.suggestions[0].machine_applicable = false;
        }
        report.push(d);
    }
    found
}

fn vector(tree: &Tree, span: Option<Span>, ty: Type, ty_at: Span, report: &mut Report) -> u8 {
    let Some(span) = span else { return 1 };
    let n = match tree.str(span) {
        ".v2" => 2,
        ".v4" => 4,
        other => {
            report.push(
                Diagnostic::new(Code::VectorDeclaration, span, format!("`{other}` is not a vector type"))
                    .note("vectors are .v2 and .v4; use .v4 for three elements"),
            );
            return 1;
        }
    };
    if ty == Type::Pred {
        report.push(
            Diagnostic::new(Code::VectorDeclaration, span, "predicates cannot form vectors")
                .label(ty_at, "of this type"),
        );
        return 1;
    }
    if ty.kind() == TypeKind::Opaque {
        report.push(
            Diagnostic::new(Code::VectorDeclaration, span, format!("`{ty}` cannot form vectors"))
                .label(ty_at, "of this type"),
        );
        return 1;
    }
    if ty.bits() * u32::from(n) > 128 {
        report.push(
            Diagnostic::new(
                Code::VectorDeclaration,
                span,
                format!("`.v{n} {ty}` has {} bits; a vector has at most 128", ty.bits() * u32::from(n)),
            )
            .label(ty_at, format!("{} bits each", ty.bits())),
        );
    }
    n
}

/// The value of `.align`: a power of two; of device formals and locals in `.param` at most 128.
fn alignment(tree: &Tree, operand: u32, at: ShapeAt, space: Space, report: &mut Report) -> Option<u32> {
    let o = tree.operands.get(operand as usize)?;
    let value = match consts::eval(tree, o) {
        Ok(Const::Int { value, .. }) => value,
        Ok(_) => {
            report.push(Diagnostic::new(Code::Alignment, o.span, "an alignment must be an integer"));
            return None;
        }
        Err(e) => {
            constant_error(tree, e, report);
            return None;
        }
    };
    let power = u32::try_from(value).ok().filter(|v| v.is_power_of_two());
    let Some(align) = power else {
        let next = u64::try_from(value).unwrap_or(1).clamp(1, 1 << 30).next_power_of_two();
        report.push(
            Diagnostic::new(Code::Alignment, o.span, format!("an alignment must be a power of two, found {value}"))
                .help(format!("write `.align {next}`")),
        );
        return None;
    };
    crate::rules::formals::alignment(tree, align, o.span, at, space, report);
    Some(align)
}

fn type_fits_space(tree: &Tree, module: &Module, shape: &Shape, var: &tree::Var, at: ShapeAt, report: &mut Report) {
    let Shape { space, ty, ty_at, .. } = *shape;
    if at.is_formal() || space == Space::Param {
        return crate::rules::formals::parameter(tree, module, shape, var, at, report);
    }
    let opaque = ty.kind() == TypeKind::Opaque;
    if ty == Type::Pred && space != Space::Reg {
        report.push(
            Diagnostic::new(Code::VariableType, ty_at, "a predicate can only be in a register")
                .label(var.space, format!("not in `{space}`"))
                .help("store the result of `selp.u8 r, 1, 0, p` instead"),
        );
    } else if opaque && let Some(lack) = lacking(module, &since(1, 5, 0)) {
        report.push(lack.diagnose(module, &format!("`{ty}`"), ty_at));
    } else if opaque && at == ShapeAt::Body {
        report.push(
            Diagnostic::new(
                Code::VariableType,
                ty_at,
                format!("`{ty}` variables are declared at module scope or as kernel parameters"),
            )
            .help("move the declaration before the function"),
        );
    } else if opaque && space != Space::Global {
        report.push(
            Diagnostic::new(Code::VariableType, ty_at, format!("`{ty}` variables must be in .global, not in {space}"))
                .label(var.space, "this space"),
        );
    } else if ty == Type::SamplerRef && !module.texmode_independent {
        let d = no_samplers(ty_at);
        // ptxas does not look at the type of arrays here.
        match tree.declarators(var).iter().all(|d| !tree.operands(d.dims).is_empty()) {
            true => report.text_only(d),
            false => report.push(d),
        }
    } else if !opaque && !ty.is_register() {
        report.push(
            Diagnostic::new(Code::VariableType, ty_at, format!("`{ty}` is an instruction type, not a variable type"))
                .help(format!("declare `.b{}`", ty.bits().max(8).next_power_of_two())),
        );
    } else if let Some(lack) = wide_type(module, shape) {
        let d = lack.diagnose(module, &format!("`{ty}`"), ty_at);
        // ptxas does not ask it of arrays of 128 bits.
        let arrays = ty == Type::B128 && tree.declarators(var).iter().all(|d| !tree.operands(d.dims).is_empty());
        if arrays { report.text_only(d) } else { report.push(d) }
    }
    if space == Space::Tex && at == ShapeAt::Body {
        let d = Diagnostic::new(Code::VariableSpace, var.space, "texture variables are declared at module scope");
        report.push(d.help("move the declaration before the function"));
    } else if space == Space::Tex && module.version >= Version::new(1, 5) && module.version_at.is_some() {
        report.push(
            Diagnostic::new(Code::Removed, var.space, "the state space `.tex` was removed in PTX ISA 1.5")
                .help("declare `.global .texref`"),
        );
    }
}

/// A `.samplerref` in unified texture mode.
pub(crate) fn no_samplers(at: Span) -> Diagnostic {
    Diagnostic::new(Code::VariableType, at, "separate samplers require independent texturing mode")
        .help("write `.target ..., texmode_independent`, or use the sampler of the `.texref`")
}

/// What a type that came later needs, and the module does not offer.
pub(crate) fn wide_type(module: &Module, shape: &Shape) -> Option<Lack> {
    match shape.ty {
        Type::B128 => lacking(module, &since(8, 3, 70)),
        // ptxas does not ask it of vectors.
        Type::F16x2 if shape.vector == 1 => lacking(module, &since(4, 2, 53)),
        _ => None,
    }
}

/// The extent that a declarator's dimensions give, and the dimensions themselves (0 for `[]`).
pub(crate) fn extent(tree: &Tree, d: &Declarator, element: u64, report: &mut Report) -> Option<(Extent, Vec<u64>)> {
    let dims = &tree.operands[d.dims.range()];
    if dims.is_empty() {
        return Some((Extent::Scalar, Vec::new()));
    }
    if dims.len() > MAX_DIMENSIONS {
        report.push(Diagnostic::new(
            Code::DeclarationTooLarge,
            d.span,
            format!("an array of {}", count(dims.len(), "dimension")),
        ));
        return None;
    }
    let (mut total, mut sizes) = (1u64, Vec::with_capacity(dims.len()));
    for (i, dim) in dims.iter().enumerate() {
        if matches!(dim.kind, Kind::Error) && !dim.span.is_empty() {
            return None;
        }
        let size = if matches!(dim.kind, Kind::Error) { 0 } else { dimension(tree, dim, report)? };
        if size == 0 && i > 0 {
            report.push(Diagnostic::new(
                Code::ArrayExtent,
                d.span,
                "only the first dimension of an array may be omitted",
            ));
            return None;
        }
        sizes.push(size);
        total = total
            .checked_mul(size.max(1))
            .filter(|t| t.checked_mul(element.max(1)).is_some_and(|b| b < 1 << 62))
            .or_else(|| {
            report.push(Diagnostic::new(Code::DeclarationTooLarge, d.span, "the array is larger than any memory"));
            None
        })?;
    }
    // ptxas takes `[0]` for `[]`.
    Some((if sizes[0] == 0 { Extent::Unsized } else { Extent::Array(total) }, sizes))
}

const MAX_DIMENSIONS: usize = 64;

fn dimension(tree: &Tree, dim: &tree::Operand, report: &mut Report) -> Option<u64> {
    match consts::eval(tree, dim) {
        Ok(Const::Int { value, unsigned }) if value >= 0 || unsigned => Some(value as u64),
        Ok(Const::Int { value, .. }) => {
            report.push(Diagnostic::new(Code::ArrayExtent, dim.span, format!("an array of {value} elements")));
            None
        }
        Ok(_) => {
            report.push(Diagnostic::new(Code::ArrayExtent, dim.span, "the size of an array must be an integer"));
            None
        }
        Err(e) => {
            constant_error(tree, e, report);
            None
        }
    }
}

/// Says why an expression has no value.
pub(crate) fn constant_error(tree: &Tree, e: EvalError, report: &mut Report) {
    let text = |span| tree.str(span);
    let (span, why) = match e {
        EvalError::NotConstant(span) => (span, format!("`{}` is not a constant", text(span))),
        EvalError::Mixed(span) => {
            (span, "a constant expression cannot mix integers and floating-point values".to_owned())
        }
        EvalError::WantsInteger(span) => {
            (span, format!("`{}` is floating point; this operator takes integers", text(span)))
        }
        EvalError::SelectOfDoubles(span) => (span, "the operands of `?:` must be integers".to_owned()),
        EvalError::DivisionByZero(span) => (span, "division by zero in a constant expression".to_owned()),
        EvalError::Unreadable(_) => return,
    };
    report.push(Diagnostic::new(Code::ConstantExpression, span, why));
}

/// The count of a family of names `%r<8>`; 1 and false for a plain name.
pub(crate) fn family(tree: &Tree, d: &Declarator, limit: u32, report: &mut Report) -> Option<(u32, bool)> {
    let Some(operand) = d.count else { return Some((1, false)) };
    let o = tree.operands.get(operand as usize)?;
    match consts::eval(tree, o) {
        Ok(Const::Int { value, .. }) if (0..=i64::from(limit)).contains(&value) => Some((value as u32, true)),
        Ok(Const::Int { value, .. }) => {
            report.push(
                Diagnostic::new(Code::RegisterFamily, o.span, format!("a parameterized name with a count of {value}"))
                    .here(format!("at most {limit} here")),
            );
            None
        }
        Ok(_) => {
            report.push(Diagnostic::new(
                Code::RegisterFamily,
                o.span,
                "the count of a parameterized name must be an integer",
            ));
            None
        }
        Err(e) => {
            constant_error(tree, e, report);
            None
        }
    }
}
