//! Decoded tensor copies, texture and surface instructions.

use super::{Address, Dst, Src};
use crate::{
    sem::atomic::AtomicOp,
    texture::{Geometry, Kind},
};
use margay_isa::{Mod, Type};

/// A tensor copy, done at issue like [`super::CopyOp`].
pub struct TensorOp {
    /// The tensor map.
    pub map: Address,
    /// Coordinates of the first element, innermost dimension first; a column and four rows for [`TensorMode::Rows`].
    pub coordinates: Vec<Src>,
    /// Address in shared memory.
    pub shared: Address,
    /// The barrier object to be signalled.
    pub mbarrier: Option<Address>,
    /// Offsets for [`TensorMode::Pixels`].
    pub offsets: Vec<Src>,
    /// Mask of destination CTAs.
    pub mask: Option<Src>,
    /// Kind.
    pub kind: TensorKind,
    /// The elements addressed.
    pub mode: TensorMode,
    /// `.cta_group::2`: one barrier object for a pair of CTAs.
    pub pair: bool,
}

/// The kind of a tensor copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorKind {
    /// To shared memory.
    Load,
    /// To global memory.
    Store,
    /// Reduction into global memory.
    Reduce(AtomicOp),
}

/// The elements that a tensor copy addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorMode {
    /// A box.
    Tile,
    /// Four rows (`.tile::gather4`, `.tile::scatter4`).
    Rows,
    /// `.im2col`, `.im2col_no_offs`
    Pixels,
    /// `.im2col::w`, `.im2col_no_offs::w`, and `.im2col::w::128`
    Wide {
        /// `.im2col::w::128`: in groups of 32 pixels.
        grouped: bool,
    },
}

/// `tensormap.replace`
pub struct MapOp {
    /// The tensor map.
    pub address: Address,
    /// The new value.
    pub value: Src,
    /// Offset of the field in the tensor map, in bytes.
    pub at: u64,
    /// Size of the field in bytes.
    pub size: usize,
}

/// How `tex` selects the level of detail.
#[derive(Clone, Debug)]
pub enum LodOp {
    /// The finest level.
    Base,
    /// An operand of the coordinates' type.
    Level(Src),
    /// Derivatives in x and in y.
    Gradient(Vec<Src>, Vec<Src>),
}

/// `tex`, `tld4`.
pub struct TextureOp {
    /// Texture handle.
    pub handle: Src,
    /// Handle of a separate sampler.
    pub sampler: Option<Src>,
    /// Geometry.
    pub geometry: Geometry,
    /// Coordinates, preceded by sample and layer.
    pub at: Vec<Src>,
    /// Coordinates are integers.
    pub integer: bool,
    /// Texel offsets.
    pub offset: Vec<Src>,
    /// Reference depth to compare with.
    pub depth: Option<Src>,
    /// Selection of the level of detail.
    pub lod: LodOp,
    /// For `tld4`: the channel.
    pub gather: Option<usize>,
    /// Four elements, or two pairs of halves.
    pub dst: Vec<Dst>,
    /// Receives whether the texel is resident.
    pub resident: Option<Dst>,
    /// Type of the elements.
    pub ty: Type,
}

/// `suld`, `sust`, `sured`.
pub struct SurfaceOp {
    /// Surface handle.
    pub handle: Src,
    /// Number of coordinates within a layer.
    pub dims: usize,
    /// Whether the layer precedes the coordinates.
    pub layered: bool,
    /// Coordinates.
    pub at: Vec<Src>,
    /// Treatment of coordinates outside: `.trap`, `.clamp`, `.zero`.
    pub clamp: Mod,
    /// Formatted access (`.p`): x counts samples, and stores convert.
    pub formatted: bool,
    /// Type of an element.
    pub ty: Type,
    /// Destinations of a load.
    pub dst: Vec<Dst>,
    /// Values stored or reduced.
    pub src: Vec<Src>,
    /// The reduction.
    pub reduce: Option<AtomicOp>,
}

/// `txq`, `suq`, `istypep`.
pub struct QueryOp {
    /// Handle of a texture, sampler or surface.
    pub handle: Src,
    /// The mipmap level queried.
    pub level: Option<Src>,
    /// The property queried; `None` for `istypep`.
    pub what: Option<Mod>,
    /// The kind of object that the handle must refer to.
    pub kind: Kind,
    /// Destination.
    pub dst: Dst,
}
