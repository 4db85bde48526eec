//! Texture instructions and queries (manual, sections 9.7.10 and 9.7.11.4); every lane has its own handle.

use super::super::{
    code::{Flow, LodOp, Op, QueryOp, Src, TextureOp},
    ctx::Ctx,
    state::lanes,
};
use crate::{
    FaultKind, LANES,
    sem::fp,
    texture::{
        Address, Filter, Format, Kind, Lod, Object, Query, Reads, Sampler, Scalar, Texel, Texels, Texture, gather,
        sample,
    },
};
use margay_isa::{Mod, Type};
use std::{borrow::Cow, sync::Arc};

/// The object of a handle; a fault if it has another kind, or nothing is bound to it.
pub fn object(ctx: &mut Ctx<'_>, lane: usize, handle: u64, kind: Kind) -> Result<Object, Flow> {
    let name = match kind {
        Kind::Texture => "texture",
        Kind::Sampler => "sampler",
        Kind::Surface => "surface",
    };
    let why = match find(ctx, handle).map(Cow::into_owned) {
        Some(Object::Unbound(k)) if k == kind => format!("nothing is bound to the {name} reference {handle:#x}"),
        Some(o) if o.kind() == kind => return Ok(o),
        Some(o) => format!("{handle:#x} is not a {name} but a {:?}", o.kind()),
        None => format!("{handle:#x} is not a {name}"),
    };
    Err(ctx.fault(lane, FaultKind::BadHandle(why), Vec::new()))
}

/// The object of a handle.
fn find<'c>(ctx: &Ctx<'c>, handle: u64) -> Option<Cow<'c, Object>> {
    ctx.grid.objects.get(ctx.grid.memory.objects(), handle)
}

/// Operands by lane: elements of a vector.
struct Values(Vec<[u32; LANES]>);

impl Values {
    fn of(ctx: &Ctx<'_>, srcs: &[Src]) -> Values {
        Values(srcs.iter().map(|s| ctx.words(*s)).collect())
    }

    /// Up to three elements of a lane; missing ones are zero.
    fn three(&self, lane: usize) -> [u32; 3] {
        let element = |k: usize| if let Some(values) = self.0.get(k) { values[lane] } else { 0 };
        [element(0), element(1), element(2)]
    }
}

/// `tex`, `tld4`
pub fn texture(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let t: &TextureOp = &ctx.func.textures[op.x as usize];
    let handles = ctx.doubles(t.handle);
    let samplers = t.sampler.map(|s| ctx.doubles(s));
    if let Some(out) = read_together(ctx, t, (&handles, samplers.as_ref())) {
        finish(ctx, t, &out);
        return Flow::Next;
    }
    let before = usize::from(t.geometry.samples) + usize::from(t.geometry.layered);
    let (lead, coordinates) = t.at.split_at(before.min(t.at.len()));
    let (lead, at, offset) = (Values::of(ctx, lead), Values::of(ctx, coordinates), Values::of(ctx, &t.offset));
    let depth = t.depth.map(|s| ctx.words(s));
    let (level, dx, dy) = match &t.lod {
        LodOp::Base => (None, Values(Vec::new()), Values(Vec::new())),
        LodOp::Level(s) => (Some(ctx.words(*s)), Values(Vec::new()), Values(Vec::new())),
        LodOp::Gradient(dx, dy) => (None, Values::of(ctx, dx), Values::of(ctx, dy)),
    };
    let mut out = [[0; LANES]; 4];
    let mut known: Option<(u64, Arc<Texture>)> = None;
    for i in lanes(ctx.active) {
        if known.as_ref().is_none_or(|(handle, _)| *handle != handles[i]) {
            known = match object(ctx, i, handles[i], Kind::Texture) {
                Ok(Object::Texture(texture)) => Some((handles[i], texture)),
                Ok(_) => return ctx.bug("an object of a different kind"),
                Err(flow) => return flow,
            };
        }
        let Some((_, texture)) = &known else { return ctx.bug("a lane without a texture") };
        let sampler = match samplers {
            None => texture.sampler,
            Some(handles) => match object(ctx, i, handles[i], Kind::Sampler) {
                Ok(Object::Sampler(sampler)) => sampler,
                Ok(_) => return ctx.bug("an object of a different kind"),
                Err(flow) => return flow,
            },
        };
        // The sample precedes the layer.
        let first = lead.three(i);
        let (sample_number, layer) = if t.geometry.samples { (first[0], first[1]) } else { (0, first[0]) };
        let gradient = |v: &Values| v.three(i).map(f32::from_bits);
        let [x, y, z] = offset.three(i);
        let query = Query {
            geometry: t.geometry,
            at: at.three(i),
            integer: t.integer,
            layer,
            sample: sample_number,
            offset: [x as i32, y as i32, z as i32],
            depth: depth.map(|d| f32::from_bits(d[i])),
            lod: match (&t.lod, level) {
                (LodOp::Level(_), Some(l)) if t.integer => Lod::Number(l[i] as i32),
                (LodOp::Level(_), Some(l)) => Lod::Level(f32::from_bits(l[i])),
                (LodOp::Gradient(..), _) => Lod::Gradient(gradient(&dx), gradient(&dy)),
                _ => Lod::Base,
            },
        };
        let texel = match t.gather {
            Some(channel) => gather(texture, &sampler, &query, channel),
            None => sample(texture, &sampler, &query),
        };
        deliver(&texel, t.ty, i, &mut out);
    }
    finish(ctx, t, &out);
    Flow::Next
}

/// Reads for all active lanes at once where they name one texture and one sampler; `None` if that is not possible.
fn read_together(
    ctx: &Ctx<'_>,
    t: &TextureOp,
    (handles, samplers): (&[u64; LANES], Option<&[u64; LANES]>),
) -> Option<[[u32; LANES]; 4]> {
    let plain = t.gather.is_none() && t.depth.is_none() && t.offset.is_empty() && matches!(t.lod, LodOp::Base);
    let same = |all: &[u64; LANES]| {
        let first = all[ctx.active.trailing_zeros() as usize & 31];
        lanes(ctx.active).all(|lane| all[lane] == first).then_some(first)
    };
    if !plain || t.at.len() > 3 || matches!(t.ty, Type::F16 | Type::F16x2) {
        return None;
    }
    let found = find(ctx, same(handles)?)?;
    let Object::Texture(texture) = &*found else { return None };
    let sampler = match samplers {
        None => texture.sampler,
        Some(all) => match *find(ctx, same(all)?)? {
            Object::Sampler(sampler) => sampler,
            _ => return None,
        },
    };
    let reads = Reads::new(texture, &sampler, t.geometry, t.integer)?;
    let mut coordinates = [[0; LANES]; 3];
    coordinates.iter_mut().zip(&t.at).for_each(|(to, s)| *to = ctx.words(*s));
    let mut out = [[0; LANES]; 4];
    reads.channels(&coordinates, ctx.active, &mut out);
    Some(out)
}

/// Writes what a read gives.
fn finish(ctx: &mut Ctx<'_>, t: &TextureOp, out: &[[u32; LANES]; 4]) {
    for (d, values) in t.dst.iter().zip(out) {
        ctx.write_words(*d, values, ctx.active);
    }
    if let Some(p) = t.resident {
        ctx.write(p, &[1; LANES], ctx.active);
    }
}

/// Converts a texel to the instruction's type. Floats and integers are reinterpreted if the types differ.
fn deliver(texel: &Texel, ty: Type, lane: usize, out: &mut [[u32; LANES]; 4]) {
    let half = |v: u32| if texel.float { u32::from(fp::to_f16(f32::from_bits(v))) } else { v & 0xffff };
    let c = texel.channels;
    let words = match ty {
        Type::F16 => c.map(half),
        Type::F16x2 => [half(c[1]) << 16 | half(c[0]), half(c[3]) << 16 | half(c[2]), 0, 0],
        _ => c,
    };
    for (to, word) in out.iter_mut().zip(words) {
        to[lane] = word;
    }
}

/// `txq`, `suq`, `istypep`
pub fn query(ctx: &mut Ctx<'_>, op: &Op) -> Flow {
    let q: &QueryOp = &ctx.func.queries[op.x as usize];
    let handles = ctx.doubles(q.handle);
    let level = q.level.map(|s| ctx.words(s));
    let mut out = [0u64; LANES];
    for i in lanes(ctx.active) {
        let Some(what) = q.what else {
            let found = find(ctx, handles[i]);
            out[i] = found.is_some_and(|o| o.kind() == q.kind).into();
            continue;
        };
        // In unified mode, a texture handle also denotes its sampler.
        let found = find(ctx, handles[i]).map(Cow::into_owned).filter(|o| matches!(o, Object::Texture(_)));
        let object = match (q.kind, found) {
            (Kind::Sampler, Some(texture)) => texture,
            _ => match object(ctx, i, handles[i], q.kind) {
                Ok(object) => object,
                Err(flow) => return flow,
            },
        };
        let answer = match &object {
            Object::Sampler(s) => of_sampler(s, what),
            Object::Surface(t) => of_image(t, what, 0),
            Object::Texture(t) if what == Mod::NormalizedCoords => u32::from(t.normalized),
            Object::Texture(t) => match what {
                Mod::FilterMode | Mod::AddrMode0 | Mod::AddrMode1 | Mod::AddrMode2 => of_sampler(&t.sampler, what),
                _ => of_image(&t.texels, what, level.map_or(0, |l| l[i])),
            },
            Object::Unbound(_) => 0,
        };
        out[i] = answer.into();
    }
    ctx.write(q.dst, &out, ctx.active);
    Flow::Next
}

/// The result of a sampler query, by the enumerations of section 9.7.10.5.
fn of_sampler(s: &Sampler, what: Mod) -> u32 {
    let mode = |d: usize| match s.address[d] {
        Address::Wrap => 0,
        Address::Mirror => 1,
        // 2 is `clamp_ogl`, which CUDA does not have.
        Address::Clamp => 3,
        Address::Border => 4,
    };
    match what {
        Mod::FilterMode => u32::from(s.filter == Filter::Linear),
        Mod::AddrMode0 => mode(0),
        Mod::AddrMode1 => mode(1),
        Mod::AddrMode2 => mode(2),
        _ => s.force_unnormalized.into(),
    }
}

/// The result of an image query, for one mipmap level; missing dimensions are 0.
fn of_image(t: &Texels, what: Mod, level: u32) -> u32 {
    let e = &t.extent;
    let of_level = |d: usize, n: u32| if n == 0 { 0 } else { t.level(level).size[d] };
    match what {
        Mod::Width => of_level(0, e.width),
        Mod::Height => of_level(1, e.height),
        Mod::Depth => of_level(2, e.depth),
        Mod::ArraySize => e.layers,
        Mod::NumMipmapLevels => {
            if t.levels() > 1 {
                t.levels()
            } else {
                0
            }
        }
        Mod::NumSamples => {
            if e.samples > 1 {
                e.samples
            } else {
                0
            }
        }
        Mod::ChannelDataType => channel_type(t.format),
        // CL_R, CL_RG, CL_RGBA
        Mod::ChannelOrder => [0x10b0, 0x10b2, 0x10b5][usize::from(t.format.channels.min(4) / 2)],
        _ => t.linear.into(),
    }
}

/// The enumeration of section 5.3.3, table 12.
fn channel_type(f: Format) -> u32 {
    let width = match f.bits {
        8 => 0,
        16 => 1,
        _ => 2,
    };
    match f.scalar {
        Scalar::Snorm => 0x10d0 + width,
        Scalar::Unorm => 0x10d2 + width,
        Scalar::Signed => 0x10d7 + width,
        Scalar::Unsigned => 0x10da + width,
        Scalar::Float => 0x10dc + width,
    }
}
