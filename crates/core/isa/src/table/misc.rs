//! Miscellaneous instructions (manual, section 9.7.19).

use crate::{Effect::*, Mod as M, Ty::*, Type::*, Var::*, *};

pub static BRKPT: Op = op("brkpt", "9.7.19.1", Control, "Stop for a debugger.", &[
    form(&[], &[]).sm(11),
]);
pub static NANOSLEEP: Op = op("nanosleep", "9.7.19.2", Warp, "Sleep for approximately the given number of nanoseconds.", &[
    form(&[T.of(&[U32])], &[src(Is(U32)).named("t")]).ptx(6, 2).sm(70),
]);
pub static PMEVENT: Op = op("pmevent", "9.7.19.3", Memory, "Trigger performance monitor events.", &[
    form(&[],             &[imm(Is(U32)).named("a").range(0, 15)]).ptx(1, 4),
    form(&[one(M::Mask)], &[imm(Is(U32)).named("a").range(0, 65535)]).fixed(1).ptx(3, 0).sm(20),
]);
pub static TRAP: Op = op("trap", "9.7.19.4", Control, "Abort the grid.", &[
    form(&[], &[]),
]);
static ACTION: Class = Class::new("action", &[M::Inc, M::Dec]);
pub static SETMAXNREG: Op = op("setmaxnreg", "9.7.19.5", Warp, "Change the number of registers of the warp.", &[
    form(&[req(&ACTION), one(M::Sync), one(M::Aligned), T.of(&[U32])], &[imm(Is(U32)).named("imm-reg-count").range(24, 256).step(8)])
        .fixed(1).ptx(8, 0).targets(&[Target::arch(90), Target::arch(100), Target::family(100), Target::arch(110), Target::family(110), Target::arch(120), Target::family(120)]),
]);
