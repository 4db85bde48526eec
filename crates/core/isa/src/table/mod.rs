//! The rows, one file per section of the manual's chapter 9.7, and the [`Opcode`]s that name them.

#[rustfmt::skip] // one row a line: the tables are read down their columns
mod alternate;
#[rustfmt::skip]
mod atomic;
#[rustfmt::skip]
mod class;
#[rustfmt::skip]
mod compare;
#[rustfmt::skip]
mod control;
#[rustfmt::skip]
mod convert;
#[rustfmt::skip]
mod copy;
#[rustfmt::skip]
mod data;
#[rustfmt::skip]
mod extended;
#[rustfmt::skip]
mod fabric;
#[rustfmt::skip]
mod float;
#[rustfmt::skip]
mod half;
#[rustfmt::skip]
mod integer;
#[rustfmt::skip]
mod logic;
#[rustfmt::skip]
mod mbarrier;
#[rustfmt::skip]
mod misc;
#[rustfmt::skip]
mod mixed;
#[rustfmt::skip]
mod mma;
#[rustfmt::skip]
mod multimem;
#[rustfmt::skip]
mod sparse;
#[rustfmt::skip]
mod stack;
#[rustfmt::skip]
mod surface;
#[rustfmt::skip]
mod sync;
#[rustfmt::skip]
mod target;
#[rustfmt::skip]
mod tcgen05;
#[rustfmt::skip]
mod texture;
#[rustfmt::skip]
mod video;
#[rustfmt::skip]
mod warp;
#[rustfmt::skip]
mod wgmma;
#[rustfmt::skip]
mod wmma;

pub use class::*;

use crate::Op;

macro_rules! ops {
    ($($variant:ident = $path:path;)*) => {
        /// The word before the first dot of an instruction.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        #[allow(missing_docs)]
        pub enum Opcode { $($variant,)* }

        static ROWS: &[&Op] = &[$(&$path,)*];

        impl Opcode {
            /// Every opcode, in the order of the table.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];
        }
    };
}

ops! {
    // integer arithmetic, and what floating point shares with it
    Add = integer::ADD; Sub = integer::SUB; Mul = integer::MUL; Mad = integer::MAD; Clmad = integer::CLMAD; Mul24 = integer::MUL24; Mad24 = integer::MAD24;
    Sad = integer::SAD; Div = integer::DIV; Rem = integer::REM; Abs = integer::ABS_; Neg = integer::NEG; Min = integer::MIN;
    Max = integer::MAX; Popc = integer::POPC; Clz = integer::CLZ; Bfind = integer::BFIND; Fns = integer::FNS; Brev = integer::BREV;
    Bfe = integer::BFE; Bfi = integer::BFI; Szext = integer::SZEXT; Bmsk = integer::BMSK; Dp4a = integer::DP4A; Dp2a = integer::DP2A;
    Addc = extended::ADDC; Subc = extended::SUBC; Madc = extended::MADC;
    // floating point
    Testp = float::TESTP; Copysign = float::COPYSIGN; Fma = float::FMA; Rcp = float::RCP; Sqrt = float::SQRT; Rsqrt = float::RSQRT;
    Sin = float::SIN; Cos = float::COS; Lg2 = float::LG2; Ex2 = float::EX2; Tanh = float::TANH;
    // comparison, selection, logic, shifts
    Set = compare::SET_; Setp = compare::SETP; Selp = compare::SELP; Slct = compare::SLCT;
    And = logic::AND; Or = logic::OR; Xor = logic::XOR; Not = logic::NOT; Cnot = logic::CNOT; Lop3 = logic::LOP3; Shf = logic::SHF;
    Shl = logic::SHL; Shr = logic::SHR;
    // data movement and conversion
    Mov = data::MOV; Shfl = data::SHFL; Prmt = data::PRMT; Ld = data::LD; Ldu = data::LDU; St = data::ST; Prefetch = data::PREFETCH_;
    Prefetchu = data::PREFETCHU; Applypriority = data::APPLYPRIORITY; Discard = data::DISCARD; Createpolicy = data::CREATEPOLICY;
    Isspacep = data::ISSPACEP; Cvta = data::CVTA; Cvt = convert::CVT; Mapa = data::MAPA; Getctarank = data::GETCTARANK;
    // control flow
    Bra = control::BRA; Brx = control::BRX; Call = control::CALL; Ret = control::RET; Exit = control::EXIT;
    // synchronization and communication
    Bar = sync::BAR; Barrier = sync::BARRIER; Fence = sync::FENCE; Membar = sync::MEMBAR; Griddepcontrol = sync::GRIDDEPCONTROL;
    Atom = atomic::ATOM; Red = atomic::RED; Vote = warp::VOTE; Match = warp::MATCH; Activemask = warp::ACTIVEMASK; Redux = warp::REDUX;
    Elect = warp::ELECT;
    // stack, miscellaneous
    Stacksave = stack::STACKSAVE; Stackrestore = stack::STACKRESTORE; Alloca = stack::ALLOCA; Brkpt = misc::BRKPT;
    Nanosleep = misc::NANOSLEEP; Pmevent = misc::PMEVENT; Trap = misc::TRAP; Setmaxnreg = misc::SETMAXNREG;
    // asynchronous copies and barrier objects
    Cp = copy::CP; Mbarrier = mbarrier::MBARRIER; Multimem = multimem::MULTIMEM; Tensormap = multimem::TENSORMAP;
    Clusterlaunchcontrol = multimem::CLUSTERLAUNCHCONTROL; Fabric = fabric::FABRIC; Spcompress = sparse::SPCOMPRESS;
    Spdecompress = sparse::SPDECOMPRESS;
    // matrices
    Mma = mma::MMA; Ldmatrix = mma::LDMATRIX; Stmatrix = mma::STMATRIX; Movmatrix = mma::MOVMATRIX; Wmma = wmma::WMMA; Wgmma = wgmma::WGMMA; Tcgen05 = tcgen05::TCGEN05;
    // textures and surfaces
    Tex = texture::TEX; Tld4 = texture::TLD4; Txq = texture::TXQ; Istypep = texture::ISTYPEP; Suld = surface::SULD;
    Sust = surface::SUST; Sured = surface::SURED; Suq = surface::SUQ;
    // video
    Vadd = video::VADD; Vsub = video::VSUB; Vabsdiff = video::VABSDIFF; Vmin = video::VMIN; Vmax = video::VMAX; Vshl = video::VSHL;
    Vshr = video::VSHR; Vmad = video::VMAD; Vset = video::VSET; Vadd2 = video::VADD2; Vsub2 = video::VSUB2; Vavrg2 = video::VAVRG2;
    Vabsdiff2 = video::VABSDIFF2; Vmin2 = video::VMIN2; Vmax2 = video::VMAX2; Vset2 = video::VSET2; Vadd4 = video::VADD4;
    Vsub4 = video::VSUB4; Vavrg4 = video::VAVRG4; Vabsdiff4 = video::VABSDIFF4; Vmin4 = video::VMIN4; Vmax4 = video::VMAX4;
    Vset4 = video::VSET4;
}

impl Opcode {
    /// The opcode's rows.
    pub fn row(self) -> &'static Op {
        ROWS[self as usize]
    }

    /// Whether ptxas accepts braces around a single value where a vector is possible.
    pub fn moves_vectors(self) -> bool {
        matches!(self, Opcode::Ld | Opcode::St | Opcode::Ldu | Opcode::Suld | Opcode::Sust)
    }

    /// The opcode of that name.
    pub fn from_name(name: &str) -> Option<Opcode> {
        use std::{collections::HashMap, sync::LazyLock};
        static BY_NAME: LazyLock<HashMap<&'static str, Opcode>> =
            LazyLock::new(|| Opcode::ALL.iter().map(|op| (op.row().name, *op)).collect());
        BY_NAME.get(name).copied()
    }
}
