//! The text of LLVM functions that access memory lane by lane, each at an address of its own.

use crate::emit::{
    memory::unit::Kind,
    text::{Elem, Ty},
};

/// A helper that loops over the set bits of `%mask`; `step` is the code for lane `%lane` and its pointer `%p`. Vectors
/// are spilled first, since extracting elements one by one costs more.
pub(in crate::emit) fn lane_loop(header: &str, before: &str, step: &str, after: &str) -> String {
    format!(
        "define internal {header} #1 {{\nentry:\n{SPILL}{before}  %some = icmp ne i32 %mask, 0\n  br i1 %some, label %each, label %end\neach:\n  \
         %left = phi i32 [ %mask, %entry ], [ %rest, %each ]\n  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)\n  \
         %less = sub i32 %left, 1\n  %rest = and i32 %left, %less\n  %ap = getelementptr i64, ptr %addresses, i32 %lane\n  \
         %a = load i64, ptr %ap, align 8\n  %p = inttoptr i64 %a to ptr\n{step}  %more = icmp ne i32 %rest, 0\n  \
         br i1 %more, label %each, label %end\nend:\n{after}}}\ndeclare i32 @llvm.cttz.i32(i32, i1)"
    )
}

/// A helper unrolled over all 32 lanes; in `step`, `#` stands for the lane.
pub(in crate::emit) fn lane_list(header: &str, before: &str, step: &str, after: &str) -> String {
    let mut body = String::new();
    for lane in 0..32 {
        let one = "  %ap# = getelementptr i64, ptr %addresses, i32 #\n  %a# = load volatile i64, ptr %ap#, align 8\n  \
                   %p# = inttoptr i64 %a# to ptr\n";
        body.push_str(&format!("{one}{step}").replace('#', &lane.to_string()));
    }
    format!("define internal {header} #1 {{\nentry:\n{SPILL}{before}{body}{after}}}")
}

const SPILL: &str =
    "  %addresses = alloca <32 x i64>, align 64\n  store volatile <32 x i64> %at, ptr %addresses, align 64\n";

pub(super) fn gather_some(elem: Elem, kind: Kind) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let before =
        format!("  %out = alloca <32 x {t}>, align 64\n  store <32 x {t}> zeroinitializer, ptr %out, align 64\n");
    let load = kind.load(&t.to_string(), "%p", align);
    let step = format!(
        "  %v = {load}\n  %op = getelementptr {t}, ptr %out, i32 %lane\n  store {t} %v, ptr %op, align {align}\n"
    );
    let after = format!("  %result = load <32 x {t}>, ptr %out, align 64\n  ret <32 x {t}> %result\n");
    lane_loop(
        &format!("<32 x {t}> @margay.gather.{t}{}(<32 x i64> %at, i32 %mask)", kind.suffix()),
        &before,
        &step,
        &after,
    )
}

pub(super) fn gather_all(elem: Elem, kind: Kind) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let load = kind.load(&t.to_string(), "%p#", align);
    let mut text = lane_list(
        &format!("<32 x {t}> @margay.gather.all.{t}{}(<32 x i64> %at)", kind.suffix()),
        "",
        &format!("  %v# = {load}\n  %r# = insertelement <32 x {t}> %r^, {t} %v#, i32 #\n"),
        &format!("  ret <32 x {t}> %r31\n"),
    );
    text = text.replacen("%r^", "poison", 1);
    for lane in 0..31 {
        text = text.replacen("%r^", &format!("%r{lane}"), 1);
    }
    text
}

pub(super) fn scatter_some(elem: Elem, kind: Kind) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let before = format!("  %in = alloca <32 x {t}>, align 64\n  store <32 x {t}> %values, ptr %in, align 64\n");
    let store = kind.store(&t.to_string(), "%v", "%p", align);
    let step =
        format!("  %ip = getelementptr {t}, ptr %in, i32 %lane\n  %v = load {t}, ptr %ip, align {align}\n  {store}\n");
    lane_loop(
        &format!("void @margay.scatter.{t}{}(<32 x i64> %at, <32 x {t}> %values, i32 %mask)", kind.suffix()),
        &before,
        &step,
        "  ret void\n",
    )
}

pub(super) fn scatter_all(elem: Elem, kind: Kind) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let before =
        format!("  %in = alloca <32 x {t}>, align 64\n  store volatile <32 x {t}> %values, ptr %in, align 64\n");
    let store = kind.store(&t.to_string(), "%v#", "%p#", align);
    let step = format!(
        "  %ip# = getelementptr {t}, ptr %in, i32 #\n  %v# = load volatile {t}, ptr %ip#, align {align}\n  {store}\n"
    );
    lane_list(
        &format!("void @margay.scatter.all.{t}{}(<32 x i64> %at, <32 x {t}> %values)", kind.suffix()),
        &before,
        &step,
        "  ret void\n",
    )
}
