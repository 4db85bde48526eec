//! Special registers (manual, chapter 10).

use crate::{Type, Version};

/// A component of a vector register: `.x .y .z .w` (also written `.r .g .b .a`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Component {
    /// `.x` or `.r`
    X,
    /// `.y` or `.g`
    Y,
    /// `.z` or `.b`
    Z,
    /// `.w` or `.a`
    W,
}

/// The table's entry for a special register.
#[derive(Clone, Copy, Debug)]
pub struct SpecialInfo {
    /// The name with its `%`.
    pub name: &'static str,
    /// Type of the register, or of one component.
    pub ty: Type,
    /// 4 for `%tid` and its like, else 1.
    pub width: u8,
    /// First version that has it.
    pub since: Version,
    /// Lowest `sm_` number that has it.
    pub sm: u16,
}

macro_rules! specials {
    ($($variant:ident = $name:literal, $ty:ident x $width:literal, ptx($major:literal, $minor:literal), sm($sm:literal);)*) => {
        /// A special register. `%envreg0`..`%envreg31`, `%pm0`..`%pm7` and `%reserved_smem_offset_*` are kinds with an index.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Special { $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// `%envreg<32>`
            EnvReg(u8),
            /// `%pm0` to `%pm7`
            Pm(u8),
            /// `%pm0_64` to `%pm7_64`
            Pm64(u8),
        }

        impl Special {
            /// Every special register without an index.
            pub const NAMED: &'static [Special] = &[$(Special::$variant,)*];

            /// The register's row of the table.
            pub fn info(self) -> SpecialInfo {
                match self {
                    $(Special::$variant => SpecialInfo { name: $name, ty: Type::$ty, width: $width, since: Version::new($major, $minor), sm: $sm },)*
                    Special::EnvReg(_) => SpecialInfo { name: "%envreg", ty: Type::B32, width: 1, since: Version::new(2, 1), sm: 0 },
                    // Four until PTX ISA 3.0 (manual, section 10.25).
                    Special::Pm(4..) => SpecialInfo { name: "%pm", ty: Type::U32, width: 1, since: Version::new(3, 0), sm: 20 },
                    Special::Pm(_) => SpecialInfo { name: "%pm", ty: Type::U32, width: 1, since: Version::new(1, 3), sm: 0 },
                    Special::Pm64(_) => SpecialInfo { name: "%pm_64", ty: Type::U64, width: 1, since: Version::new(4, 0), sm: 50 },
                }
            }

            /// The special register of that name (with `%`, without a component).
            pub fn from_name(name: &str) -> Option<Special> {
                Some(match name {
                    $($name => Special::$variant,)*
                    _ => return Self::indexed(name),
                })
            }
        }
    };
}

specials! {
    Tid = "%tid", U32 x 4, ptx(1, 0), sm(0);
    Ntid = "%ntid", U32 x 4, ptx(1, 0), sm(0);
    LaneId = "%laneid", U32 x 1, ptx(1, 3), sm(0);
    WarpId = "%warpid", U32 x 1, ptx(1, 3), sm(0);
    NwarpId = "%nwarpid", U32 x 1, ptx(2, 0), sm(20);
    Ctaid = "%ctaid", U32 x 4, ptx(1, 0), sm(0);
    Nctaid = "%nctaid", U32 x 4, ptx(1, 0), sm(0);
    SmId = "%smid", U32 x 1, ptx(1, 3), sm(0);
    NsmId = "%nsmid", U32 x 1, ptx(2, 0), sm(20);
    GridId = "%gridid", U64 x 1, ptx(1, 0), sm(0);
    IsExplicitCluster = "%is_explicit_cluster", Pred x 1, ptx(7, 8), sm(90);
    ClusterId = "%clusterid", U32 x 4, ptx(7, 8), sm(90);
    NclusterId = "%nclusterid", U32 x 4, ptx(7, 8), sm(90);
    ClusterCtaid = "%cluster_ctaid", U32 x 4, ptx(7, 8), sm(90);
    ClusterNctaid = "%cluster_nctaid", U32 x 4, ptx(7, 8), sm(90);
    ClusterCtarank = "%cluster_ctarank", U32 x 1, ptx(7, 8), sm(90);
    ClusterNctarank = "%cluster_nctarank", U32 x 1, ptx(7, 8), sm(90);
    LanemaskEq = "%lanemask_eq", U32 x 1, ptx(2, 0), sm(20);
    LanemaskLe = "%lanemask_le", U32 x 1, ptx(2, 0), sm(20);
    LanemaskLt = "%lanemask_lt", U32 x 1, ptx(2, 0), sm(20);
    LanemaskGe = "%lanemask_ge", U32 x 1, ptx(2, 0), sm(20);
    LanemaskGt = "%lanemask_gt", U32 x 1, ptx(2, 0), sm(20);
    Clock = "%clock", U32 x 1, ptx(1, 0), sm(0);
    ClockHi = "%clock_hi", U32 x 1, ptx(5, 0), sm(20);
    Clock64 = "%clock64", U64 x 1, ptx(2, 0), sm(20);
    GlobalTimer = "%globaltimer", U64 x 1, ptx(3, 1), sm(30);
    GlobalTimerLo = "%globaltimer_lo", U32 x 1, ptx(3, 1), sm(30);
    GlobalTimerHi = "%globaltimer_hi", U32 x 1, ptx(3, 1), sm(30);
    ReservedSmemOffsetBegin = "%reserved_smem_offset_begin", B32 x 1, ptx(7, 6), sm(80);
    ReservedSmemOffsetEnd = "%reserved_smem_offset_end", B32 x 1, ptx(7, 6), sm(80);
    ReservedSmemOffsetCap = "%reserved_smem_offset_cap", B32 x 1, ptx(7, 6), sm(80);
    ReservedSmemOffset0 = "%reserved_smem_offset_0", B32 x 1, ptx(7, 6), sm(80);
    ReservedSmemOffset1 = "%reserved_smem_offset_1", B32 x 1, ptx(7, 6), sm(80);
    TotalSmemSize = "%total_smem_size", U32 x 1, ptx(4, 1), sm(20);
    AggrSmemSize = "%aggr_smem_size", U32 x 1, ptx(8, 1), sm(90);
    DynamicSmemSize = "%dynamic_smem_size", U32 x 1, ptx(4, 1), sm(20);
    CurrentGraphExec = "%current_graph_exec", U64 x 1, ptx(8, 0), sm(50);
}

impl Special {
    fn indexed(name: &str) -> Option<Special> {
        let index = |digits: &str, limit: u8| {
            let canonical = digits == "0" || !digits.starts_with('0');
            digits.parse::<u8>().ok().filter(|i| canonical && *i < limit)
        };
        if let Some(digits) = name.strip_prefix("%envreg") {
            return index(digits, 32).map(Special::EnvReg);
        }
        let rest = name.strip_prefix("%pm")?;
        match rest.strip_suffix("_64") {
            Some(digits) => index(digits, 8).map(Special::Pm64),
            None => index(rest, 8).map(Special::Pm),
        }
    }
}
