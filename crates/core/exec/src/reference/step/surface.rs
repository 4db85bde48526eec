//! Surface instructions (manual, section 9.7.11): accesses to bytes or samples of an image, with a choice of what
//! happens outside.

use super::super::{
    code::{Flow, Op, SurfaceOp},
    ctx::Ctx,
    state::lanes,
};
use super::{atomic, texture::object};
use crate::{
    Access, FaultKind, LANES, mem,
    sem::atomic::Rmw,
    texture::{Kind, Object, Scalar, Texels},
};
use margay_isa::{Mod, Type};
use std::sync::Arc;

/// The resolved address of a lane's access.
enum Target {
    /// A host address.
    Address(u64),
    /// Outside: loads return zero, stores are dropped.
    Discard,
    /// Outside, with `.trap`: a fault.
    Trap,
}

/// Where a lane accesses a surface.
struct Point {
    /// In bytes from the start of the row.
    x: i64,
    y: i64,
    z: i64,
    layer: u32,
}

impl Point {
    /// The point that a lane's coordinates give, for an access of `size` bytes.
    fn of(s: &SurfaceOp, coordinates: &[[u32; LANES]], lane: usize, size: u32) -> Point {
        let at = |k: usize| coordinates.get(k).map_or(0, |c| i64::from(c[lane] as i32));
        let first = usize::from(s.layered);
        Point {
            x: at(first).saturating_mul(if s.formatted { size.into() } else { 1 }),
            y: if s.dims >= 2 { at(first + 1) } else { 0 },
            z: if s.dims == 3 { at(first + 2) } else { 0 },
            layer: if s.layered { coordinates.first().map_or(0, |c| c[lane]) } else { 0 },
        }
    }

    /// The note of a fault at a point outside the surface.
    fn note(&self, texels: &Texels) -> String {
        let [w, h, d] = texels.level(0).size;
        let Point { x, y, z, layer } = self;
        format!(
            "byte {x} of row {y}, plane {z}, layer {layer}; the surface has {h} rows of {} bytes, {d} planes, {} layers",
            u64::from(w) * u64::from(texels.format.bytes()),
            texels.extent.layers.max(1)
        )
    }
}

/// Resolves an access of `size` bytes against the extents.
fn resolve(s: &SurfaceOp, t: &Texels, point: &Point, size: u32) -> Target {
    let level = t.level(0);
    let row = i64::from(level.size[0]) * i64::from(t.format.bytes());
    let (layers, size) = (t.extent.layers.max(1), i64::from(size));
    let last = if row < size { -1 } else { (row - size) / size * size };
    let most = [last, i64::from(level.size[1]) - 1, i64::from(level.size[2]) - 1];
    let mut at = [point.x, point.y, point.z];
    let inside = |at: &[i64; 3]| at.iter().zip(most).all(|(v, most)| (0..=most).contains(v));
    let mut layer = point.layer;
    if !inside(&at) || layer >= layers {
        match s.clamp {
            Mod::Zero => return Target::Discard,
            Mod::Clamp if most[0] >= 0 => {
                at = std::array::from_fn(|d| at[d].clamp(0, most[d]));
                layer = layer.min(layers - 1);
            }
            _ => return Target::Trap,
        }
    }
    let slice = if s.dims == 3 { at[2] as u32 } else { layer };
    Target::Address(t.row(level, at[1] as u32, slice) + at[0] as u64)
}

/// `suld`, `sust`, `sured`
pub fn surface(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let s: &SurfaceOp = &ctx.func.surfaces[op.x as usize];
    let handles = ctx.doubles(s.handle);
    let at: Vec<[u32; LANES]> = s.at.iter().map(|c| ctx.words(*c)).collect();
    let values: Vec<[u64; LANES]> = s.src.iter().map(|v| ctx.doubles(*v)).collect();
    let mut out = vec![[0u64; LANES]; s.dst.len()];
    let element = s.ty.bytes() as usize;
    let count = s.dst.len().max(s.src.len());
    let convert = s.formatted && s.reduce.is_none();
    let mut known: Option<(u64, Arc<Texels>)> = None;
    for i in lanes(ctx.active) {
        let texels = match &known {
            Some((handle, texels)) if *handle == handles[i] => texels.clone(),
            _ => match object(ctx, i, handles[i], Kind::Surface) {
                Ok(Object::Surface(texels)) => {
                    known = Some((handles[i], texels.clone()));
                    texels
                }
                Ok(_) => return ctx.bug("an object of a different kind"),
                Err(flow) => return flow,
            },
        };
        let size = if convert { texels.format.bytes() } else { (element * count) as u32 };
        let point = Point::of(s, &at, i, size);
        let access = Access { write: s.dst.is_empty(), address: point.x as u64, size, space: "surface" };
        let address = match resolve(s, &texels, &point, size) {
            Target::Address(address) => address,
            Target::Discard => continue,
            Target::Trap => return ctx.fault(i, FaultKind::OutOfBounds(access), vec![point.note(&texels)]),
        };
        if point.x % i64::from(size) != 0 {
            return ctx.fault(i, FaultKind::Misaligned(access), Vec::new());
        }
        let done = match s.reduce {
            Some(op) => {
                let rmw = Rmw { op, ty: reduced_type(s, &texels) };
                atomic::element(texels.block(), address, rmw, false, values.first().map_or(0, |v| v[i]), 0).map(drop)
            }
            None if !access.write => load(&texels, address, element, i, &mut out),
            None => store(s, &texels, (address, size), &values, i),
        };
        if done.is_none() {
            return ctx.bug("a place inside of a surface is outside of its memory");
        }
    }
    for (d, values) in s.dst.iter().zip(&out) {
        ctx.write(*d, values, ctx.active);
    }
    Flow::Next
}

/// The type of a reduction's element: with `.p`, the surface's format says whether it is signed (section 9.7.11.3).
fn reduced_type(s: &SurfaceOp, texels: &Texels) -> Type {
    let signed = texels.format.scalar == Scalar::Signed;
    match (s.formatted, s.ty, signed) {
        (false, ty, _) => ty,
        (true, Type::B64, true) => Type::S64,
        (true, Type::B64, false) => Type::U64,
        (true, _, true) => Type::S32,
        (true, _, false) => Type::U32,
    }
}

/// Stores a lane's elements in `size` bytes; with `.p`, in the surface's format.
fn store(
    s: &SurfaceOp,
    texels: &Texels,
    (address, size): (u64, u32),
    values: &[[u64; LANES]],
    lane: usize,
) -> Option<()> {
    if s.formatted {
        let words: Vec<u32> = values.iter().map(|v| v[lane] as u32).collect();
        return mem::store_bytes(texels.block(), address, &texels.format.encode(&words)[..size as usize]);
    }
    let element = s.ty.bytes() as usize;
    let mut bytes = [0; 32];
    for (part, v) in bytes.chunks_exact_mut(element).zip(values) {
        part.copy_from_slice(&v[lane].to_le_bytes()[..element]);
    }
    mem::store_bytes(texels.block(), address, &bytes[..size as usize])
}

/// Loads elements of `element` bytes.
fn load(texels: &Texels, address: u64, element: usize, lane: usize, out: &mut [[u64; LANES]]) -> Option<()> {
    for (k, to) in out.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        mem::load_bytes(texels.block(), address + (k * element) as u64, &mut bytes[..element])?;
        to[lane] = u64::from_le_bytes(bytes);
    }
    Some(())
}
