//! Copies of parts of tensors, textures and surfaces.

use super::{Address, Dst, Src};
use crate::{
    sem::atomic::AtomicOp,
    texture::{Geometry, Kind},
};
use margay_isa::{Mod, Type};

/// A copy of a part of a tensor, done at once as [`CopyOp`].
pub struct TensorOp {
    /// The tensor map.
    pub map: Address,
    /// Coordinates of the first element, innermost dimension first; a column and four rows for [`TensorMode::Rows`].
    pub coordinates: Vec<Src>,
    /// The place in shared memory.
    pub shared: Address,
    /// The barrier object that hears of it.
    pub mbarrier: Option<Address>,
    /// Offsets of [`TensorMode::Pixels`].
    pub offsets: Vec<Src>,
    /// CTAs that get it.
    pub mask: Option<Src>,
    /// What it does.
    pub kind: TensorKind,
    /// Which elements.
    pub mode: TensorMode,
    /// `.cta_group::2`: one barrier object for a pair of CTAs.
    pub pair: bool,
}

/// What a copy of a tensor does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorKind {
    /// To shared memory.
    Load,
    /// To global memory.
    Store,
    /// Into global memory.
    Reduce(AtomicOp),
}

/// Which elements a copy of a tensor moves.
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
        /// In groups of 32.
        grouped: bool,
    },
}

/// `tensormap.replace`
pub struct MapOp {
    /// The tensor map.
    pub address: Address,
    /// The new value.
    pub value: Src,
    /// First byte of the field.
    pub at: u64,
    /// Bytes of the field.
    pub size: usize,
}

/// How `tex` chooses the level of detail.
#[derive(Clone, Debug)]
pub enum LodOp {
    /// The finest.
    Base,
    /// Operand of the coordinates' type.
    Level(Src),
    /// Gradients in x and in y.
    Gradient(Vec<Src>, Vec<Src>),
}

/// `tex`, `tld4`.
pub struct TextureOp {
    /// The texture.
    pub handle: Src,
    /// A sampler of its own.
    pub sampler: Option<Src>,
    /// Shape.
    pub geometry: Geometry,
    /// Coordinates; sample and layer stand before them.
    pub at: Vec<Src>,
    /// Coordinates are integers.
    pub integer: bool,
    /// Offsets in texels.
    pub offset: Vec<Src>,
    /// Depth to compare with.
    pub depth: Option<Src>,
    /// Level of detail.
    pub lod: LodOp,
    /// `tld4` of that channel.
    pub gather: Option<usize>,
    /// Four elements, or two pairs of halves.
    pub dst: Vec<Dst>,
    /// Whether the texel is resident.
    pub resident: Option<Dst>,
    /// Type of the elements.
    pub ty: Type,
}

/// `suld`, `sust`, `sured`.
pub struct SurfaceOp {
    /// The surface.
    pub handle: Src,
    /// Coordinates inside of a layer.
    pub dims: usize,
    /// A layer stands before them.
    pub layered: bool,
    /// Coordinates.
    pub at: Vec<Src>,
    /// What is done outside: `.trap`, `.clamp`, `.zero`.
    pub clamp: Mod,
    /// x counts samples, and stores convert (`.p`).
    pub formatted: bool,
    /// Type of an element.
    pub ty: Type,
    /// Destinations of a load.
    pub dst: Vec<Dst>,
    /// Values that are stored or reduced.
    pub src: Vec<Src>,
    /// The reduction.
    pub reduce: Option<AtomicOp>,
}

/// `txq`, `suq`, `istypep`.
pub struct QueryOp {
    /// Texture, sampler or surface.
    pub handle: Src,
    /// The level that is asked about.
    pub level: Option<Src>,
    /// What is asked; for `istypep` nothing.
    pub what: Option<Mod>,
    /// Which kind of object it must be.
    pub kind: Kind,
    /// Where the answer goes.
    pub dst: Dst,
}
