//! Declarations in bodies: registers, parameterized names, and variables in memory (manual, sections 5.1 and 5.4.6).

use super::Local;
use super::names::Binding;
use super::walk::Walker;
use crate::module::{self, Shape, ShapeAt};
use crate::{Extent, FuncKind, Init, Linkage, rules};
use margay_isa::{Kind as TypeKind, Space};
use margay_syntax::{
    diag::{Code, Diagnostic},
    tree::{self, Declarator},
};

/// Most registers that one family may declare.
const REGISTERS: u32 = 1 << 30;
/// Most variables in memory that one family may declare.
const VARIABLES: u32 = 65_536;
/// Most variables in memory that a body may declare.
const LOCALS: usize = 1 << 20;

impl<'a> Walker<'a, '_> {
    pub(super) fn variable(&mut self, index: u32) {
        let tree = self.tree;
        let var = &tree.vars[index as usize];
        if tree.str(var.space) == ".param" {
            if rules::old_kernel_parameters(self.module) && self.func.kind == FuncKind::Kernel {
                // These are the parameters of the kernel, and declared already.
                return;
            }
            rules::formals::local(self.module, self.func, var.space, self.report);
        }
        let shape = module::declare(tree, self.module, var, ShapeAt::Body, self.report);
        if let Some(attribute) = var.attribute.and_then(|a| tree.directives.get(a as usize)) {
            self.facts.unified = self.facts.unified.or(rules::attribute::first_unified(tree, attribute));
            rules::attribute::variable(tree, self.module, attribute, var, shape.map(|s| s.space), self.report);
        }
        for d in tree.declarators(var) {
            let named = shape.and_then(|shape| {
                let limit = if shape.space == Space::Reg { REGISTERS } else { VARIABLES };
                Some((shape, module::family(tree, d, limit, self.report)?))
            });
            match named {
                // Its type has been faulted, which says all about its uses.
                Some((shape, (_, numbered))) if is_mistyped(&shape) => {
                    self.declare_faulty(tree.str(d.name), d.name, numbered);
                }
                Some((shape, (count, numbered))) => self.declarator(&shape, var, d, count, numbered),
                None => self.declare_faulty(tree.str(d.name), d.name, d.count.is_some()),
            }
        }
    }

    /// One name of a declaration, or `count` numbered ones.
    fn declarator(&mut self, shape: &Shape, var: &tree::Var, d: &'a Declarator, count: u32, numbered: bool) {
        let name = self.tree.str(d.name);
        let (extent, init) = self.contents(shape, d);
        rules::globals::extent(self.tree, shape, extent, d, Linkage::Internal, self.report);
        let binding = if shape.space == Space::Reg {
            if self.next.checked_add(count).is_none() {
                self.report.push(Diagnostic::new(Code::DeclarationTooLarge, d.span, "too many registers"));
            }
            let decl = self.register(shape.ty, shape.vector, count, numbered, d.name, None);
            if var.align.is_some() {
                self.alignments.push((decl, shape.align));
            }
            Binding::Reg(decl)
        } else {
            let Some(first) = self.locals(shape, d, extent, &init, count) else {
                return self.declare_faulty(name, d.name, numbered);
            };
            Binding::Local(first)
        };
        let taken = if numbered { None } else { self.branch_before(name) };
        let declared = if numbered {
            self.names.declare_family(name, count, d.name, binding)
        } else {
            self.names.declare(name, d.name, binding)
        };
        if let Err(first) = declared {
            self.duplicate(name, d.name, first);
        } else if let Some(label) = taken {
            let message = format!("`{name}` is declared in a block that has already branched to the label `{name}`");
            let d = Diagnostic::new(Code::Duplicate, d.name, message).label(label, "the label");
            self.report.ptxas_only(d.help("rename the label or the variable"));
        }
    }

    /// The label of that name outside this block, if an earlier branch in this block refers to it: ptxas 13.5 expects that name to be a
    /// label of the block itself ("Label expected for forward reference").
    fn branch_before(&self, name: &str) -> Option<margay_syntax::Span> {
        let Some((Binding::Label(id), _)) = self.names.get(name) else { return None };
        let (branch, block) = (*self.branches.get(id.0 as usize)?, *self.opened.last()?);
        (branch > block).then(|| self.labels[id.0 as usize].0)
    }

    /// The extent of a variable, which its initial contents may decide, and these.
    fn contents(&mut self, shape: &Shape, d: &'a Declarator) -> (Extent, Vec<Init>) {
        let tree = self.tree;
        let (extent, mut dims) =
            module::extent(tree, d, shape.element(), self.report).unwrap_or_else(|| (Extent::Array(0), vec![1]));
        let Some(value) = d.init else { return (extent, Vec::new()) };
        let at = tree.operands.get(value as usize).map_or(d.span, |o| o.span);
        if !rules::globals::may_initialize(tree, shape, d.name, at, Linkage::Internal, self.report) {
            return (extent, Vec::new());
        }
        let (init, open) = module::evaluate(tree, self.module, shape, &dims, d.name, value, self.report);
        if extent != Extent::Unsized {
            return (extent, init);
        }
        dims[0] = open;
        (Extent::Array(dims.iter().product()), init)
    }

    /// Adds `count` variables in memory, and returns the first one's index; none if there are too many.
    fn locals(&mut self, shape: &Shape, d: &Declarator, extent: Extent, init: &[Init], count: u32) -> Option<u32> {
        let first = self.body.locals.len() as u32;
        let size = extent.bytes(shape.element());
        let place = (d.name, size.saturating_mul(u64::from(count)), shape.align);
        match shape.space {
            Space::Shared => self.facts.shared.push(place),
            Space::Const => self.facts.constants.push(place),
            _ => {}
        }
        if first as usize + count as usize > LOCALS {
            self.report.push(Diagnostic::new(Code::DeclarationTooLarge, d.span, "too many variables"));
            return None;
        }
        self.body.locals.extend((0..count).map(|_| Local {
            name: d.name,
            space: shape.space,
            ty: shape.ty,
            vector: shape.vector,
            size,
            align: shape.align,
            extent,
            dimensions: d.dims.len,
            init: init.to_vec(),
        }));
        Some(first)
    }

    fn declare_faulty(&mut self, name: &'a str, span: margay_syntax::Span, numbered: bool) {
        let declared = if numbered {
            self.names.declare_family(name, u32::MAX, span, Binding::Faulty)
        } else {
            self.names.declare(name, span, Binding::Faulty)
        };
        // The name may already be declared; then it is known, which suffices.
        let _ = declared;
    }
}

/// Whether a variable has a type that its space does not hold.
fn is_mistyped(shape: &Shape) -> bool {
    match shape.ty.kind() {
        TypeKind::Pred => shape.space != Space::Reg,
        TypeKind::Opaque => true,
        _ => shape.space == Space::Reg && !shape.ty.is_register(),
    }
}
