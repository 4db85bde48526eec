//! Modifier words: everything after a dot on an instruction that is not a type.

use crate::{Space, Type};

/// One dotted word of a mnemonic: a type or a modifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Word {
    /// `.s32`
    Type(Type),
    /// `.rn`
    Mod(Mod),
}

impl Word {
    /// The word of that name (no dot), if PTX has one anywhere.
    pub fn from_name(name: &str) -> Option<Word> {
        Type::from_name(name).map(Word::Type).or_else(|| Mod::from_name(name).map(Word::Mod))
    }

    /// The state space that the word names, if it names one.
    pub fn as_space(self) -> Option<Space> {
        match self {
            Word::Mod(m) => m.space(),
            Word::Type(_) => None,
        }
    }

    /// The name without its dot.
    pub fn name(self) -> &'static str {
        match self {
            Word::Type(t) => t.name(),
            Word::Mod(m) => m.name(),
        }
    }
}

/// A class of modifiers of which one may (or must) be chosen, in the manual's words: "rounding", "scope".
#[derive(PartialEq, Eq, Debug)]
pub struct Class {
    /// Its name in messages.
    pub name: &'static str,
    /// The choices, in the manual's order.
    pub of: &'static [Mod],
}

impl Class {
    /// A class from its name and choices; an empty one is a mistake in the table and does not compile.
    pub const fn new(name: &'static str, of: &'static [Mod]) -> Class {
        assert!(!of.is_empty(), "a class has at least one modifier");
        Class { name, of }
    }
}

impl Mod {
    /// Whether ptxas allows the word twice; it rejects all others ("Duplicate modifier").
    pub fn repeatable(self) -> bool {
        use Mod::*;
        matches!(self, Approx | Cc | Relu | Sat | Satfinite | Shiftamt | Sync | Uni | PropagateNan)
    }

    /// Whether ptxas overlooks the modifier on every operation that has no use for it.
    pub fn idle(self) -> bool {
        use Mod::*;
        matches!(
            self,
            Finite
                | Infinite
                | Number
                | Notanumber
                | Normal
                | Subnormal
                | AccF16
                | AccF32
                | B8x16
                | B4x16P64
                | B6x16P32
                | Rank
                | BoxDim
                | Elemtype
                | ElementStride
                | FillMode
                | GlobalAddress
                | GlobalDim
                | GlobalStride
                | InterleaveLayout
                | SwizzleAtomicity
                | SwizzleMode
        )
    }

    /// Modifiers of one series keep their relative order, wherever they are: destination and source space, the
    /// layouts of two matrices, the two words of a reduction of single bits, destination and source format.
    pub fn series(self) -> Option<u8> {
        match self {
            Mod::Row | Mod::Col => Some(0),
            Mod::And | Mod::Xor | Mod::Popc => Some(1),
            Mod::B8x16 | Mod::B6x16P32 | Mod::B4x16P64 => Some(3),
            _ => self.space().map(|_| 2),
        }
    }

    /// Whether the modifier says what a cache does with the line: an eviction priority, a prefetch size, a policy operand
    /// (manual, section 9.7.9.2).
    pub fn is_cache_hint(self) -> bool {
        use Mod::*;
        matches!(self, L1B32 | L1EvictNormal | L1EvictUnchanged | L1EvictFirst | L1EvictLast | L1NoAllocate)
            || matches!(self, L2CacheHint | L2B64 | L2B128 | L2B256)
            || self.is_l2_eviction()
    }

    /// Whether the modifier is an eviction priority of the L2 cache.
    pub fn is_l2_eviction(self) -> bool {
        matches!(self, Mod::L2EvictNormal | Mod::L2EvictFirst | Mod::L2EvictLast | Mod::L2EvictUnchanged)
    }

    /// Rows, columns and depth of a matrix product, for modifiers such as `.m16n8k16`: their spelling is their definition.
    pub fn matrix_shape(self) -> Option<[usize; 3]> {
        let (rows, rest) = self.name().strip_prefix('m')?.split_once('n')?;
        let (columns, depth) = rest.split_once('k')?;
        Some([rows.parse().ok()?, columns.parse().ok()?, depth.parse().ok()?])
    }

    /// The state space that the modifier names, without its sub-qualifier.
    pub fn space(self) -> Option<Space> {
        Some(match self {
            Mod::Const => Space::Const,
            Mod::Global => Space::Global,
            Mod::Local => Space::Local,
            Mod::Param | Mod::ParamEntry | Mod::ParamFunc => Space::Param,
            Mod::Shared | Mod::SharedCta | Mod::SharedCluster => Space::Shared,
            _ => return None,
        })
    }
}

macro_rules! modifiers {
    ($($variant:ident = $name:literal,)*) => {
        /// A modifier word of the instruction set, one variant per spelling (`::` and all).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Mod { $(#[doc = concat!("`.", $name, "`")] $variant,)* }

        impl Mod {
            /// Every modifier, in declaration order.
            pub const ALL: &'static [Mod] = &[$(Mod::$variant,)*];

            /// The spelling without its dot.
            pub const fn name(self) -> &'static str { match self { $(Mod::$variant => $name,)* } }

            /// The modifier of that spelling (no dot).
            pub fn from_name(name: &str) -> Option<Mod> { match name { $($name => Some(Mod::$variant),)* _ => None } }
        }
    };
}

modifiers! {
    // rounding, flushing, saturation, precision
    Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp", Rna = "rna", Rs = "rs", Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
    Ftz = "ftz", Sat = "sat", Satfinite = "satfinite", Relu = "relu", Approx = "approx", Full = "full", Oob = "oob",
    // integer
    Hi = "hi", Lo = "lo", Wide = "wide", Cc = "cc", Wrap = "wrap", Clamp = "clamp", L = "l", R = "r", Shiftamt = "shiftamt",
    F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16",
    // comparison, logic, tests
    Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge", Ls = "ls", Hs = "hs",
    Equ = "equ", Neu = "neu", Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu", Num = "num", Nan = "nan",
    And = "and", Or = "or", Xor = "xor", Finite = "finite", Infinite = "infinite", Number = "number", Notanumber = "notanumber",
    Normal = "normal", Subnormal = "subnormal", Xorsign = "xorsign", Abs = "abs",
    // conversion
    Pack = "pack", ScaledN2Ue8m0 = "scaled::n2::ue8m0", ScaledN1Ue8m0 = "scaled::n1::ue8m0", Pzo = "pzo",
    // spaces
    Const = "const", Global = "global", Local = "local", Param = "param", Shared = "shared", Reg = "reg",
    ParamEntry = "param::entry", ParamFunc = "param::func", SharedCta = "shared::cta", SharedCluster = "shared::cluster",
    // vectors
    V2 = "v2", V4 = "v4", V8 = "v8",
    // memory ordering, scopes, proxies
    Weak = "weak", Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcqRel = "acq_rel", Sc = "sc", Volatile = "volatile",
    Mmio = "mmio", Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys", Gl = "gl",
    Proxy = "proxy", Alias = "alias",     AsyncGeneric = "async::generic",
    MbarrierInit = "mbarrier_init", FabricGeneric = "fabric::generic", FabricFabric = "fabric::fabric", GenericFabric = "generic::fabric",
    SyncRestrictSharedClusterRead = "sync_restrict::shared::cluster::read", SyncRestrictSharedCta = "sync_restrict::shared::cta",
    SyncRestrictSharedCluster = "sync_restrict::shared::cluster",     // caches
    Ca = "ca", Cg = "cg", Cs = "cs", Lu = "lu", Cv = "cv", Wb = "wb", Wt = "wt", Nc = "nc", ProxyReadonly = "proxy::readonly", L1B32 = "L1::32B", ValidAddr = "valid_addr", L1 = "L1",     L1EvictNormal = "L1::evict_normal", L1EvictUnchanged = "L1::evict_unchanged", L1EvictFirst = "L1::evict_first",
    L1EvictLast = "L1::evict_last", L1NoAllocate = "L1::no_allocate", L2EvictNormal = "L2::evict_normal",
    L2EvictFirst = "L2::evict_first", L2EvictLast = "L2::evict_last", L2EvictUnchanged = "L2::evict_unchanged",
        Range = "range", Fractional = "fractional", Cvt = "cvt", Tensormap = "tensormap", Unified = "unified",     // control, warps, barriers
    Uni = "uni", Idx = "idx", Sync = "sync", Arrive = "arrive", Wait = "wait", Red = "red", Aligned = "aligned", Warp = "warp",
    All = "all", Any = "any", Ballot = "ballot", Up = "up", Down = "down", Bfly = "bfly",
    Popc = "popc", Add = "add", Min = "min", Max = "max", Inc = "inc", Dec = "dec", Exch = "exch", Cas = "cas", Noftz = "noftz",
    LaunchDependents = "launch_dependents", Mask = "mask",
    // cvta
    To = "to",
    // fabric
    Fabric = "fabric", TryGet = "try_get", TryPut = "try_put", TryRed = "try_red", TryPullred = "try_pullred", TryAtom = "try_atom",
    Submit = "submit", OpRestrictFetching = "op_restrict::fetching", SyncRestrictRead = "sync_restrict::read",
    SyncRestrictReads = "sync_restrict::reads", MbarrierCompleteTx16B = "mbarrier::complete_tx::16B",
    MbarrierReportFabric = "mbarrier::report::fabric", CountedBytes = "counted::bytes", Multimem = "multimem",
    // sparse vectors
    Sp1to2 = "sp::1:2", Sp1to4 = "sp::1:4", Sp1to8 = "sp::1:8", Sp1to16 = "sp::1:16", Sp2to4 = "sp::2:4", Sp2to8 = "sp::2:8",
    Sp2to16 = "sp::2:16", Sp4to8 = "sp::4:8", Sp4to16 = "sp::4:16", Spcompress = "spcompress",
    // video
    Po = "po", Shr7 = "shr7", Shr15 = "shr15",
    // textures and surfaces
    D1 = "1d", D2 = "2d", D3 = "3d", D4 = "4d", D5 = "5d", A1d = "a1d", A2d = "a2d", Cube = "cube", Acube = "acube",
    D2ms = "2dms", A2dms = "a2dms", Base = "base", Level = "level", Grad = "grad", G = "g", B = "b", A = "a", Trap = "trap",
    Zero = "zero", P = "p", Width = "width", Height = "height", Depth = "depth", ChannelDataType = "channel_data_type",
    ChannelOrder = "channel_order", NormalizedCoords = "normalized_coords", ArraySize = "array_size",
    NumMipmapLevels = "num_mipmap_levels", NumSamples = "num_samples", ForceUnnormalizedCoords = "force_unnormalized_coords",
    FilterMode = "filter_mode", AddrMode0 = "addr_mode_0", AddrMode1 = "addr_mode_1", AddrMode2 = "addr_mode_2",
    MemoryLayout = "memory_layout",
    // asynchronous copies
    Async = "async", Bulk = "bulk", Tensor = "tensor", CommitGroup = "commit_group", WaitGroup = "wait_group",
    WaitAll = "wait_all", Read = "read", Mbarrier = "mbarrier", Noinc = "noinc", Prefetch = "prefetch", L2 = "L2",
    Reduce = "reduce", L2CacheHint = "L2::cache_hint", L2B64 = "L2::64B", L2B128 = "L2::128B", L2B256 = "L2::256B",
    MbarrierCompleteTxBytes = "mbarrier::complete_tx::bytes", MbarrierArriveOne = "mbarrier::arrive::one",
    BulkGroup = "bulk_group", MulticastCluster = "multicast::cluster", MulticastCluster32b = "multicast::cluster::32b", Exclusive = "exclusive",
    Im2colNoOffsW = "im2col_no_offs::w", SyncRestrictReadMmaA = "sync_restrict::shared::read::mma::a", MulticastClusterAll = "multicast::cluster::all",
    CpMask = "cp_mask", IgnoreOob = "ignore_oob", Tile = "tile", TileGather4 = "tile::gather4", TileScatter4 = "tile::scatter4",
    Im2col = "im2col", Im2colW = "im2col::w", Im2colW128 = "im2col::w::128", Im2colNoOffs = "im2col_no_offs",
    CtaGroup1 = "cta_group::1", CtaGroup2 = "cta_group::2", MulticastCluster16b = "multicast::cluster::16b",
    OverrideGlobalAddress = "override::global_address", OverrideGlobalDim = "override::global_dim",
    OverrideGlobalDimStride = "override::global_dim_stride", ReportDisabled = "mbarrier::report::disabled",
    ReportPer16Bytes8 = "mbarrier::report::validity::per_16bytes::8", ReportPer16Bytes80 = "mbarrier::report::validity::per_16bytes::80",
    ReportPer16Bytes8000 = "mbarrier::report::validity::per_16bytes::8000",
    ReportPer16Bytes80000000 = "mbarrier::report::validity::per_16bytes::80000000",
    ReportPerElementFf = "mbarrier::report::validity::per_element::ff",
    // mbarrier
    Init = "init", Inval = "inval", ExpectTx = "expect_tx", CompleteTx = "complete_tx", ArriveDrop = "arrive_drop",
    NoComplete = "noComplete", TestWait = "test_wait", TryWait = "try_wait", Parity = "parity", PendingCount = "pending_count",
    CheckLayout = "check_layout", LayoutV0 = "layout::v0", LayoutV1 = "layout::v1", PhasePrimary = "phase_type::primary",
    PhaseConditional = "phase_type::conditional",
    // multimem
    LdReduce = "ld_reduce", St = "st", AccF32 = "acc::f32", AccF16 = "acc::f16", Cp = "cp",
    // tensor maps and cluster launches
    Replace = "replace", GlobalAddress = "global_address", Rank = "rank", BoxDim = "box_dim", GlobalDim = "global_dim",
    GlobalStride = "global_stride", ElementStride = "element_stride", Elemtype = "elemtype",
    InterleaveLayout = "interleave_layout", SwizzleMode = "swizzle_mode", SwizzleAtomicity = "swizzle_atomicity",
    FillMode = "fill_mode", B1024 = "b1024", CpFenceproxy = "cp_fenceproxy", TensormapGeneric = "tensormap::generic",
    TryCancel = "try_cancel", QueryCancel = "query_cancel", IsCanceled = "is_canceled", GetFirstCtaid = "get_first_ctaid",
    GetFirstCtaidX = "get_first_ctaid::x", GetFirstCtaidY = "get_first_ctaid::y", GetFirstCtaidZ = "get_first_ctaid::z",
    // matrices
    Load = "load", Store = "store", Mma = "mma", C = "c", D = "d", Row = "row", Col = "col", Trans = "trans", X1 = "x1",
    X2 = "x2", X4 = "x4", M8n8 = "m8n8", M16n16 = "m16n16", M8n16 = "m8n16", M16n8 = "m16n8", B8x16 = "b8x16",
    B6x16P32 = "b6x16_p32", B4x16P64 = "b4x16_p64", M16n16k16 = "m16n16k16", M8n32k16 = "m8n32k16", M32n8k16 = "m32n8k16",
    M16n16k8 = "m16n16k8", M8n8k4 = "m8n8k4", M8n8k16 = "m8n8k16", M8n8k32 = "m8n8k32", M8n8k128 = "m8n8k128",
    M16n8k4 = "m16n8k4", M16n8k8 = "m16n8k8", M16n8k16 = "m16n8k16", M16n8k32 = "m16n8k32", M16n8k64 = "m16n8k64",
    M16n8k128 = "m16n8k128", M16n8k256 = "m16n8k256", Sp = "sp", SpOrderedMetadata = "sp::ordered_metadata",
    KindF8f6f4 = "kind::f8f6f4", KindMxf8f6f4 = "kind::mxf8f6f4", KindMxf4 = "kind::mxf4", KindMxf4nvf4 = "kind::mxf4nvf4",
    BlockScale = "block_scale", ScaleVec1X = "scale_vec::1X", ScaleVec2X = "scale_vec::2X", ScaleVec4X = "scale_vec::4X",
    Block16 = "block16", Block32 = "block32",
    // wgmma
    MmaAsync = "mma_async", Fence = "fence", M64n8k8 = "m64n8k8", M64n16k8 = "m64n16k8", M64n24k8 = "m64n24k8",
    M64n32k8 = "m64n32k8", M64n40k8 = "m64n40k8", M64n48k8 = "m64n48k8", M64n56k8 = "m64n56k8", M64n64k8 = "m64n64k8",
    M64n72k8 = "m64n72k8", M64n80k8 = "m64n80k8", M64n88k8 = "m64n88k8", M64n96k8 = "m64n96k8", M64n104k8 = "m64n104k8",
    M64n112k8 = "m64n112k8", M64n120k8 = "m64n120k8", M64n128k8 = "m64n128k8", M64n136k8 = "m64n136k8", M64n144k8 = "m64n144k8",
    M64n152k8 = "m64n152k8", M64n160k8 = "m64n160k8", M64n168k8 = "m64n168k8", M64n176k8 = "m64n176k8", M64n184k8 = "m64n184k8",
    M64n192k8 = "m64n192k8", M64n200k8 = "m64n200k8", M64n208k8 = "m64n208k8", M64n216k8 = "m64n216k8", M64n224k8 = "m64n224k8",
    M64n232k8 = "m64n232k8", M64n240k8 = "m64n240k8", M64n248k8 = "m64n248k8", M64n256k8 = "m64n256k8", M64n8k16 = "m64n8k16",
    M64n16k16 = "m64n16k16", M64n24k16 = "m64n24k16", M64n32k16 = "m64n32k16", M64n40k16 = "m64n40k16", M64n48k16 = "m64n48k16",
    M64n56k16 = "m64n56k16", M64n64k16 = "m64n64k16", M64n72k16 = "m64n72k16", M64n80k16 = "m64n80k16", M64n88k16 = "m64n88k16",
    M64n96k16 = "m64n96k16", M64n104k16 = "m64n104k16", M64n112k16 = "m64n112k16", M64n120k16 = "m64n120k16",
    M64n128k16 = "m64n128k16", M64n136k16 = "m64n136k16", M64n144k16 = "m64n144k16", M64n152k16 = "m64n152k16",
    M64n160k16 = "m64n160k16", M64n168k16 = "m64n168k16", M64n176k16 = "m64n176k16", M64n184k16 = "m64n184k16",
    M64n192k16 = "m64n192k16", M64n200k16 = "m64n200k16", M64n208k16 = "m64n208k16", M64n216k16 = "m64n216k16",
    M64n224k16 = "m64n224k16", M64n232k16 = "m64n232k16", M64n240k16 = "m64n240k16", M64n248k16 = "m64n248k16",
    M64n256k16 = "m64n256k16", M64n8k32 = "m64n8k32", M64n16k32 = "m64n16k32", M64n24k32 = "m64n24k32", M64n32k32 = "m64n32k32",
    M64n40k32 = "m64n40k32", M64n48k32 = "m64n48k32", M64n56k32 = "m64n56k32", M64n64k32 = "m64n64k32", M64n72k32 = "m64n72k32",
    M64n80k32 = "m64n80k32", M64n88k32 = "m64n88k32", M64n96k32 = "m64n96k32", M64n104k32 = "m64n104k32",
    M64n112k32 = "m64n112k32", M64n120k32 = "m64n120k32", M64n128k32 = "m64n128k32", M64n136k32 = "m64n136k32",
    M64n144k32 = "m64n144k32", M64n152k32 = "m64n152k32", M64n160k32 = "m64n160k32", M64n168k32 = "m64n168k32",
    M64n176k32 = "m64n176k32", M64n184k32 = "m64n184k32", M64n192k32 = "m64n192k32", M64n200k32 = "m64n200k32",
    M64n208k32 = "m64n208k32", M64n216k32 = "m64n216k32", M64n224k32 = "m64n224k32", M64n232k32 = "m64n232k32",
    M64n240k32 = "m64n240k32", M64n248k32 = "m64n248k32", M64n256k32 = "m64n256k32", M64n8k64 = "m64n8k64",
    M64n16k64 = "m64n16k64", M64n24k64 = "m64n24k64", M64n32k64 = "m64n32k64", M64n40k64 = "m64n40k64", M64n48k64 = "m64n48k64",
    M64n56k64 = "m64n56k64", M64n64k64 = "m64n64k64", M64n72k64 = "m64n72k64", M64n80k64 = "m64n80k64", M64n88k64 = "m64n88k64",
    M64n96k64 = "m64n96k64", M64n104k64 = "m64n104k64", M64n112k64 = "m64n112k64", M64n120k64 = "m64n120k64",
    M64n128k64 = "m64n128k64", M64n136k64 = "m64n136k64", M64n144k64 = "m64n144k64", M64n152k64 = "m64n152k64",
    M64n160k64 = "m64n160k64", M64n168k64 = "m64n168k64", M64n176k64 = "m64n176k64", M64n184k64 = "m64n184k64",
    M64n192k64 = "m64n192k64", M64n200k64 = "m64n200k64", M64n208k64 = "m64n208k64", M64n216k64 = "m64n216k64",
    M64n224k64 = "m64n224k64", M64n232k64 = "m64n232k64", M64n240k64 = "m64n240k64", M64n248k64 = "m64n248k64",
    M64n256k64 = "m64n256k64", M64n8k256 = "m64n8k256", M64n16k256 = "m64n16k256", M64n24k256 = "m64n24k256",
    M64n32k256 = "m64n32k256", M64n40k256 = "m64n40k256", M64n48k256 = "m64n48k256", M64n56k256 = "m64n56k256",
    M64n64k256 = "m64n64k256", M64n72k256 = "m64n72k256", M64n80k256 = "m64n80k256", M64n88k256 = "m64n88k256",
    M64n96k256 = "m64n96k256", M64n104k256 = "m64n104k256", M64n112k256 = "m64n112k256", M64n120k256 = "m64n120k256",
    M64n128k256 = "m64n128k256", M64n136k256 = "m64n136k256", M64n144k256 = "m64n144k256", M64n152k256 = "m64n152k256",
    M64n160k256 = "m64n160k256", M64n168k256 = "m64n168k256", M64n176k256 = "m64n176k256", M64n184k256 = "m64n184k256",
    M64n192k256 = "m64n192k256", M64n200k256 = "m64n200k256", M64n208k256 = "m64n208k256", M64n216k256 = "m64n216k256",
    M64n224k256 = "m64n224k256", M64n232k256 = "m64n232k256", M64n240k256 = "m64n240k256", M64n248k256 = "m64n248k256",
    M64n256k256 = "m64n256k256",
    // tcgen05
    Alloc = "alloc", Dealloc = "dealloc", RelinquishAllocPermit = "relinquish_alloc_permit", Ld = "ld", WaitLd = "wait::ld",
    WaitSt = "wait::st", FenceBeforeThreadSync = "fence::before_thread_sync", FenceAfterThreadSync = "fence::after_thread_sync",
    Commit = "commit", Shift = "shift", Ws = "ws", S16x64b = "16x64b", S16x128b = "16x128b", S16x256b = "16x256b",
    S32x32b = "32x32b", S16x32bx2 = "16x32bx2", X8 = "x8", X16 = "x16", X32 = "x32", X64 = "x64", X128 = "x128",
    Pack16b = "pack::16b", Unpack16b = "unpack::16b", PropagateNan = "NaN", S128x256b = "128x256b", S4x256b = "4x256b",
    S128x128b = "128x128b", S64x128b = "64x128b", S32x128b = "32x128b", Warpx20213 = "warpx2::02_13",
    Warpx20123 = "warpx2::01_23", Warpx4 = "warpx4", KindF16 = "kind::f16", KindTf32 = "kind::tf32", KindI8 = "kind::i8", KindTi16 = "kind::ti16",
    Ashift = "ashift", CollectorAFill = "collector::a::fill", CollectorAUse = "collector::a::use",
    CollectorALastuse = "collector::a::lastuse", CollectorADiscard = "collector::a::discard",
    CollectorB0Fill = "collector::b0::fill", CollectorB0Use = "collector::b0::use", CollectorB0Lastuse = "collector::b0::lastuse",
    CollectorB0Discard = "collector::b0::discard", CollectorB1Fill = "collector::b1::fill", CollectorB1Use = "collector::b1::use",
    CollectorB1Lastuse = "collector::b1::lastuse", CollectorB1Discard = "collector::b1::discard",
    CollectorB2Fill = "collector::b2::fill", CollectorB2Use = "collector::b2::use", CollectorB2Lastuse = "collector::b2::lastuse",
    CollectorB2Discard = "collector::b2::discard", CollectorB3Fill = "collector::b3::fill", CollectorB3Use = "collector::b3::use",
    CollectorB3Lastuse = "collector::b3::lastuse", CollectorB3Discard = "collector::b3::discard",
    CollectorBFill = "collector::b::fill", CollectorBUse = "collector::b::use", CollectorBLastuse = "collector::b::lastuse",
    CollectorBDiscard = "collector::b::discard", DecompressLutB = "decompress::lut::b",
}
