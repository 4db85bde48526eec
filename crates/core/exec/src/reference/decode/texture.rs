//! Decodes texture and surface instructions and queries, by their operand names in the row.

use super::super::{
    code::{Address, Base, LodOp, MemOp, Op, QueryOp, Src, SurfaceOp, TextureOp},
    step,
};
use super::{Decoder, append, operand::plain};
use crate::{
    Stop,
    sem::atomic::AtomicOp,
    texture::{Geometry, Kind},
};
use margay_ir::{Func, Inst, MemSpace, Operand, operand_types};
use margay_isa::{Mod, Opcode, Opnd, Role, Type, Var, Variant, name};

/// Source operands by name.
struct Named(Vec<(&'static str, Vec<Src>)>);

impl Named {
    fn all(&self, name: &str) -> Vec<Src> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, s)| s.clone()).unwrap_or_default()
    }

    fn one(&self, name: &str) -> Option<Src> {
        self.0.iter().find(|(n, _)| *n == name)?.1.first().copied()
    }
}

/// The source operands of a row, including those of groups.
fn read_operands(v: &Variant) -> Vec<&'static Opnd> {
    let mut out = Vec::new();
    for o in v.operands().filter(|o| o.role != Role::Dst) {
        match o.role {
            Role::Group(inner) => out.extend(v.inside(inner)),
            _ => out.push(o),
        }
    }
    out
}

fn geometry(v: &Variant) -> Geometry {
    let any = |mods: &[Mod]| mods.iter().any(|m| v.has(*m));
    let cube = any(&[Mod::Cube, Mod::Acube]);
    let dims = match () {
        _ if cube || v.has(Mod::D3) => 3,
        _ if any(&[Mod::D2, Mod::A2d, Mod::D2ms, Mod::A2dms]) => 2,
        _ => 1,
    };
    let layered = any(&[Mod::A1d, Mod::A2d, Mod::Acube, Mod::A2dms]);
    Geometry { dims, cube, layered, samples: any(&[Mod::D2ms, Mod::A2dms]) }
}

impl Decoder<'_> {
    fn named(&mut self, func: &Func, inst: &Inst) -> Result<Named, Stop> {
        let v = func.variant(inst);
        let types = operand_types(func, inst);
        let srcs = func.operands(inst.srcs).to_vec();
        let (mut at, mut out) = (0, Vec::new());
        for opnd in read_operands(v) {
            let n = v.count(opnd).unwrap_or(1) as usize;
            let Some(given) = srcs.get(at..at + n) else { break };
            let mut values = Vec::with_capacity(n);
            for (o, ty) in given.iter().zip(&types.srcs[at..]) {
                values.push(match opnd.role {
                    Role::Handle(_) => self.handle(o)?,
                    _ => self.source(o, *ty)?,
                });
            }
            out.push((opnd.name, values));
            at += n;
        }
        Ok(Named(out))
    }

    /// A handle: that of a variable, or a value in a register or parameter.
    fn handle(&mut self, o: &Operand) -> Result<Src, Stop> {
        let address = match o {
            Operand::ParamAddr(offset) => Address { space: MemSpace::KernelParam, base: Base::Fixed, offset: *offset },
            Operand::FrameAddr(id, offset) => {
                let (base, offset) = self.frame_base(*id, *offset);
                Address { space: MemSpace::Local, base, offset }
            }
            _ => return self.source(o, Type::B64),
        };
        let d = self.temp(Type::B64);
        let x = append(&mut self.code.mems, MemOp { ty: Type::B64, size: 8, dst: vec![d], ..plain(address) });
        self.push(Op { x, ..Self::blank(step::memory::loader(8, 1)) });
        Ok(Src::reg(d.row, d.shape))
    }

    /// `tex`, `tld4`
    pub(super) fn texture(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let named = self.named(func, inst)?;
        let Some(handle) = named.one("a") else { return Err(self.unsupported(format!("`{v}` without a texture"))) };
        let gather = match v.op {
            Opcode::Tld4 => [Mod::R, Mod::G, Mod::B, Mod::A].iter().position(|m| v.has(*m)),
            _ => None,
        };
        let lod = match named.one(name::LOD) {
            Some(lod) => LodOp::Level(lod),
            None if v.has(Mod::Grad) => LodOp::Gradient(named.all(name::DPDX), named.all(name::DPDY)),
            None => LodOp::Base,
        };
        let mut dst = self.destinations(func, inst);
        let texels = if v.has(Mod::V2) { 2 } else { 4 };
        let resident = if dst.len() > texels { dst.pop() } else { None };
        let x = append(
            &mut self.code.textures,
            TextureOp {
                handle,
                sampler: named.one("b"),
                geometry: geometry(v),
                at: named.all("c"),
                integer: v.ty(Var::U) == Some(Type::S32),
                offset: named.all("e"),
                depth: named.one("f"),
                lod,
                gather,
                dst,
                resident,
                ty: v.t(),
            },
        );
        self.emit(inst, step::texture::texture, x);
        Ok(())
    }

    /// `suld`, `sust`, `sured`
    pub(super) fn surface(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let named = self.named(func, inst)?;
        let Some(handle) = named.one("a") else { return Err(self.unsupported(format!("`{v}` without a surface"))) };
        let dst = self.destinations(func, inst);
        let reduce = if v.op == Opcode::Sured { AtomicOp::of(v) } else { None };
        let Geometry { dims, layered, .. } = geometry(v);
        let x = append(
            &mut self.code.surfaces,
            SurfaceOp {
                handle,
                dims: dims.into(),
                layered,
                at: named.all("b"),
                clamp: [Mod::Clamp, Mod::Zero].into_iter().find(|m| v.has(*m)).unwrap_or(Mod::Trap),
                formatted: v.has(Mod::P),
                ty: v.t(),
                dst,
                src: named.all("c"),
                reduce,
            },
        );
        self.emit(inst, step::surface::surface, x);
        Ok(())
    }

    /// `txq`, `suq`, `istypep`
    pub(super) fn query(&mut self, func: &Func, inst: &Inst) -> Result<(), Stop> {
        let v = func.variant(inst);
        let named = self.named(func, inst)?;
        let dst = self.destinations(func, inst).first().copied();
        let handle = named.one("a").or(named.one("b"));
        let (Some(handle), Some(dst)) = (handle, dst) else {
            return Err(self.unsupported(format!("`{v}` with too few operands")));
        };
        let of_sampler = read_operands(v).iter().any(|o| o.role == Role::Handle(Type::SamplerRef));
        let kind = match (v.op, v.t()) {
            (Opcode::Istypep, Type::SamplerRef) => Kind::Sampler,
            (Opcode::Istypep, Type::SurfRef) | (Opcode::Suq, _) => Kind::Surface,
            (Opcode::Txq, _) if of_sampler => Kind::Sampler,
            _ => Kind::Texture,
        };
        let what = v.words.iter().find_map(|w| match w {
            margay_isa::Word::Mod(m) if *m != Mod::Level => Some(*m),
            _ => None,
        });
        let x = append(&mut self.code.queries, QueryOp { handle, level: named.one(name::LOD), what, kind, dst });
        self.emit(inst, step::texture::query, x);
        Ok(())
    }
}
