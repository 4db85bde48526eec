//! Linking of variables (manual, section 11.6), and their initializers.

use super::{
    LowerError,
    link::{Candidate, Home, Program, choose},
};
use crate::{Global, GlobalId, GlobalInit, Pointee, Source};
use margay_check::{self as check, Checked, Init, Linkage, Module, Symbol};
use margay_isa::{Kind, Space, Type};
use margay_syntax::Span;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Gives every variable of every module its id, and resolves its initializer.
pub(super) fn link_globals(program: &mut Program, modules: &[(Arc<Source>, Checked)]) -> Result<(), LowerError> {
    let globals = |m: usize| &modules[m].1.module.globals;
    let mut by_name: BTreeMap<&str, Vec<Candidate>> = BTreeMap::new();
    for m in 0..modules.len() {
        for (index, g) in globals(m).iter().enumerate() {
            if g.linkage != Linkage::Internal {
                let defined = g.linkage != Linkage::Extern;
                let candidate = Candidate { module: m, index: index as u32, linkage: g.linkage, defined };
                by_name.entry(&g.name).or_default().push(candidate);
            }
        }
    }
    let mut chosen: HashMap<&str, (usize, u32)> = HashMap::new();
    for (name, candidates) in &by_name {
        let at = |c: &Candidate| &globals(c.module)[c.index as usize];
        let found = choose(modules, name, candidates, |c| at(c).size, |c| at(c).span)?.unwrap_or(candidates[0]);
        candidates.iter().try_for_each(|c| agree(modules, (c, at(c)), (&found, at(&found))))?;
        chosen.insert(name, (found.module, found.index));
    }
    let mut ids: BTreeMap<(usize, u32), Home> = BTreeMap::new();
    let (mut global_ids, mut names) = (Vec::with_capacity(modules.len()), HashMap::new());
    for m in 0..modules.len() {
        let mut of_module = Vec::with_capacity(globals(m).len());
        for (index, g) in globals(m).iter().enumerate() {
            let target = if g.linkage == Linkage::Internal { (m, index as u32) } else { chosen[&*g.name] };
            let home = match ids.get(&target) {
                Some(home) => *home,
                None => {
                    let home = add_global(program, modules, target)?;
                    ids.insert(target, home);
                    home
                }
            };
            if let (Home::Global(id), true) = (home, g.linkage != Linkage::Internal) {
                names.entry(g.name.clone()).or_insert(id);
            }
            of_module.push(home);
        }
        global_ids.push(of_module);
    }
    (program.global_ids, program.global_names) = (global_ids.into(), names.into());
    // Initializers name symbols, so they follow when all symbols have ids. Of `.common` variables, any module may provide one.
    for (&(m, index), home) in &ids {
        let Home::Global(id) = *home else { continue };
        let def = &globals(m)[index as usize];
        let mut from = (m, &def.init);
        if let (true, Some(candidates)) =
            (def.init.is_empty() && def.linkage == Linkage::Common, by_name.get(&*def.name))
        {
            let other = candidates.iter().find(|c| !globals(c.module)[c.index as usize].init.is_empty());
            from = other.map_or(from, |c| (c.module, &globals(c.module)[c.index as usize].init));
        }
        let init = program.convert_init(from.0, from.1, def.span)?;
        Arc::make_mut(&mut program.globals[id.0 as usize]).init = init;
    }
    Ok(())
}

/// Checks that a declaration or definition agrees with the one that was chosen for its name.
fn agree(
    modules: &[(Arc<Source>, Checked)],
    (c, g): (&Candidate, &check::Global),
    (found, def): (&Candidate, &check::Global),
) -> Result<(), LowerError> {
    let name = &g.name;
    // As nvlink has it: an external array may leave its size open, and of common variables the largest counts.
    let open = g.size == 0 || def.size == 0;
    let common = c.linkage == Linkage::Common && found.linkage == Linkage::Common;
    let message = match () {
        _ if g.space != def.space => {
            format!("`{name}` is declared in `{}` here and in `{}` elsewhere", g.space, def.space)
        }
        _ if g.size != def.size && !open && !common => {
            format!("`{name}` has {} bytes here and {} elsewhere", g.size, def.size)
        }
        _ if c.linkage == Linkage::Common && !g.init.is_empty() && g.size < def.size => {
            format!("`.common {name}` is initialized here, but is larger in another module")
        }
        _ => return Ok(()),
    };
    let e = LowerError::new(&modules[c.module].0, g.span, message);
    Err(e.and(&modules[found.module].0, def.span))
}

/// Gives a variable its id, or its place in the memory of every thread.
fn add_global(
    program: &mut Program,
    modules: &[(Arc<Source>, Checked)],
    (module, index): (usize, u32),
) -> Result<Home, LowerError> {
    let (source, checked) = &modules[module];
    let g = &checked.module.globals[index as usize];
    if matches!(g.space, Space::Reg | Space::Local) {
        let offset = program.thread.add(g).ok_or_else(|| {
            LowerError::unsupported(
                source,
                g.span,
                format!("module-scope `{} {}` of {} bytes", g.space, g.name, g.size),
            )
        })?;
        return Ok(Home::Thread(offset));
    }
    // `.tex` variables of old versions are textures, regardless of their type (section 5.1.8).
    let reference = match () {
        _ if g.ty.kind() == Kind::Opaque => Some(g.ty),
        _ if g.space == Space::Tex => Some(Type::TexRef),
        _ => None,
    };
    program.globals.push(Arc::new(Global {
        name: g.name.clone(),
        space: if reference.is_some() { Space::Tex } else { g.space },
        reference,
        size: g.size,
        align: g.align.max(1),
        init: Vec::new(),
        visible: g.linkage != Linkage::Internal,
        external: g.linkage == Linkage::Extern,
        managed: g.managed,
    }));
    program.global_places.push((module, g.span));
    Ok(Home::Global(GlobalId(program.globals.len() as u32 - 1)))
}

impl Program {
    /// Initial contents with this program's ids.
    pub fn convert_init(&self, module: usize, init: &[Init], span: Span) -> Result<Vec<GlobalInit>, LowerError> {
        let convert = |i: &Init| {
            Ok(match i {
                Init::Bytes { at, bytes } => GlobalInit::Bytes(*at, bytes.clone()),
                Init::Property { name, value } => GlobalInit::Property(name.clone(), value.clone()),
                Init::Address { at, size, shift, of, offset, generic } => GlobalInit::Address {
                    at: *at,
                    size: *size,
                    shift: *shift,
                    of: self.pointee(module, *of, span)?,
                    offset: *offset,
                    generic: *generic,
                },
            })
        };
        init.iter().map(convert).collect()
    }

    fn pointee(&self, module: usize, symbol: Symbol, span: Span) -> Result<Pointee, LowerError> {
        let checked: &Module = &self.modules[module].1.module;
        Ok(match symbol {
            Symbol::Func(f) => Pointee::Func(self.func_ids[module][f.0 as usize]),
            Symbol::Alias(a) => Pointee::Func(self.func_ids[module][checked.aliases[a as usize].of.0 as usize]),
            Symbol::Global(g) => match self.global_ids[module][g.0 as usize] {
                Home::Global(id) => Pointee::Global(id),
                Home::Thread(_) => {
                    let what = "the address of a module-scope `.local` variable in an initializer";
                    return Err(LowerError::unsupported(self.source(module), span, what));
                }
            },
        })
    }
}
