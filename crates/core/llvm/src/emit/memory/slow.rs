//! The text of the functions that compiled code calls where the comparison before an access fails, which need not be a fault: lanes may be
//! inactive, the site may not have accessed the allocation before, or addresses may be those of `.local` memory.

use crate::{
    ctx::{Helper, at},
    emit::text::{Elem, per_lane},
};
use margay_exec::mem;

/// Lanes whose addresses are not in their own local windows, with room for an access of `bytes` bytes.
const FOREIGN: &str = "\
define internal i32 @margay.foreign(ptr %ctx, <32 x i64> %at, i64 %bytes) #2 {
  %window.p = getelementptr i8, ptr %ctx, i64 WINDOW
  %window = load i64, ptr %window.p, align 8
  %stride.p = getelementptr i8, ptr %ctx, i64 STRIDE
  %stride = load i64, ptr %stride.p, align 8
  %size.p = getelementptr i8, ptr %ctx, i64 SIZE
  %size = load i64, ptr %size.p, align 8
  %narrow = icmp ult i64 %size, %stride
  %room = select i1 %narrow, i64 %size, i64 %stride
  %fits = icmp uge i64 %room, %bytes
  %last = sub i64 %room, %bytes
  %count = add i64 %last, 1
  %places = select i1 %fits, i64 %count, i64 0
  %step = and i64 %stride, 4294967295
SPLAT window SPLAT step SPLAT places
  %behind = mul <32 x i64> %step.all, LANES
  %starts = add <32 x i64> %window.all, %behind
  %within = sub <32 x i64> %at, %starts
  %foreign = icmp uge <32 x i64> %within, %places.all
  %bits = bitcast <32 x i1> %foreign to i32
  ret i32 %bits
}";

/// Lanes of the mask whose access of `bytes` bytes lies in none of the device heap's small objects ([`mem::Arena`]); other lanes are
/// arbitrary. Lanes often share one address, as in a call of one object's function: then one scalar read of the table takes a tenth
/// of the time.
const NO_OBJECT: &str = "\
define internal i32 @margay.no.object(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %bytes) #2 {
  %buffer = alloca <32 x i64>, align 64
  %heap.p = getelementptr i8, ptr %ctx, i64 HEAP
  %heap = load i64, ptr %heap.p, align 8
  %size.p = getelementptr i8, ptr %ctx, i64 HEAP_SIZE
  %size = load i64, ptr %size.p, align 8
  %table.p = getelementptr i8, ptr %ctx, i64 HEAP_TABLE
  %table = load ptr, ptr %table.p, align 8
  %any = icmp ne i64 %size, 0
  br i1 %any, label %compare, label %none
compare:
SPLAT heap SPLAT size
  %offset = sub <32 x i64> %at, %heap.all
  %inside = icmp ult <32 x i64> %offset, %size.all
  %inside.bits = bitcast <32 x i1> %inside to i32
  %in = and i32 %inside.bits, %mask
  %some = icmp ne i32 %in, 0
  br i1 %some, label %search, label %none
search:
  store volatile <32 x i64> %offset, ptr %buffer, align 64
  %lane = call i32 @llvm.cttz.i32(i32 %in, i1 true)
  %lead.p = getelementptr i64, ptr %buffer, i32 %lane
  %lead = load i64, ptr %lead.p, align 8
SPLAT lead
  %differ = icmp ne <32 x i64> %offset, %lead.all
  %differ.bits = bitcast <32 x i1> %differ to i32
  %others = and i32 %differ.bits, %mask
  %alike = icmp eq i32 %others, 0
  br i1 %alike, label %one, label %each
one:
  %granule.one = lshr i64 %lead, GRANULE
  %entry.p = getelementptr i64, ptr %table, i64 %granule.one
  %entry.one = load i64, ptr %entry.p, align 8
OVER one %lead, %bytes
  %all = sext i1 %over.one to i32
  ret i32 %all
each:
SPLAT bytes
  %safe = select <32 x i1> %inside, <32 x i64> %offset, <32 x i64> zeroinitializer
  %granule.each = lshr <32 x i64> %safe, splat (i64 GRANULE)
  %entries = getelementptr i64, ptr %table, <32 x i64> %granule.each
  %entry.each = call <32 x i64> @llvm.masked.gather.v32i64.v32p0(<32 x ptr> align 8 %entries, <32 x i1> splat (i1 true), <32 x i64> poison)
OVER each %safe, %bytes.all
  %over.bits = bitcast <32 x i1> %over.each to i32
  %outside.bits = xor i32 %inside.bits, -1
  %bad = or i32 %over.bits, %outside.bits
  ret i32 %bad
none:
  ret i32 -1
}";

/// Lanes of a mask whose access of `bytes` bytes lies outside a range, the objects of the device heap and, if generic, their local windows.
const OUTSIDE: &str = "\
define internal i32 @margay.outside(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes, i1 %generic) #2 {
SPLAT low SPLAT limit
  %offset = sub <32 x i64> %at, %low.all
  %outside = icmp uge <32 x i64> %offset, %limit.all
  %outside.bits = bitcast <32 x i1> %outside to i32
  %active = and i32 %outside.bits, %mask
  %any = icmp ne i32 %active, 0
  br i1 %any, label %heap, label %fine
heap:
  %missed = call i32 @margay.no.object(ptr %ctx, i32 %active, <32 x i64> %at, i64 %bytes)
  %rest = and i32 %missed, %active
  %some = icmp ne i32 %rest, 0
  %go.on = and i1 %some, %generic
  br i1 %go.on, label %local, label %done
local:
  %foreign = call i32 @margay.foreign(ptr %ctx, <32 x i64> %at, i64 %bytes)
  %left = and i32 %foreign, %rest
  ret i32 %left
done:
  ret i32 %rest
fine:
  ret i32 0
}";

/// Slow path of the check of one access, `plus` bytes behind the lanes' addresses: compares lane by lane, and asks the host about lanes that
/// fail.
const CHECK: &str = "\
define internal i32 @margay.check(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %from, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %bytes, i1 %generic) #2 {
SPLAT plus SPLAT odd
  %at = add <32 x i64> %from, %plus.all
  %odd.at = and <32 x i64> %at, %odd.all
  %misaligned = icmp ne <32 x i64> %odd.at, zeroinitializer
  %odd.bits = bitcast <32 x i1> %misaligned to i32
  %outside = call i32 @margay.outside(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes, i1 %generic)
  %bad = or i32 %outside, %odd.bits
  %active = and i32 %bad, %mask
  %any = icmp ne i32 %active, 0
  br i1 %any, label %ask, label %fine
ask:
  %status = call i32 @margay.ask(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at)
  ret i32 %status
fine:
  ret i32 0
}";

/// Whether the lanes may access all that a group accesses: `bytes` bytes from `plus` behind the checked address, in one allocation or in a
/// lane's own window, aligned `skew` bytes further. Returns 0 if they may; if not, nothing is said about the group's single accesses.
const TOGETHER: &str = "\
define internal i32 @margay.together(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %from, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %skew, i64 %bytes, i1 %generic) #2 {
  %buffer = alloca <32 x i64>, align 64
SPLAT plus SPLAT skew SPLAT odd
  %at = add <32 x i64> %from, %plus.all
  %further = add <32 x i64> %at, %skew.all
  %odd.at = and <32 x i64> %further, %odd.all
  %misaligned = icmp ne <32 x i64> %odd.at, zeroinitializer
  %odd.bits = bitcast <32 x i1> %misaligned to i32
  %bent = and i32 %odd.bits, %mask
  %some = icmp ne i32 %bent, 0
  br i1 %some, label %apart, label %aligned
aligned:
  %outside = call i32 @margay.outside(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes, i1 %generic)
  %any = icmp ne i32 %outside, 0
  br i1 %any, label %ask, label %fine
ask:
ASK HOST, i64 %bytes
  ret i32 %status
fine:
  ret i32 0
apart:
  ret i32 1
}";

/// Whether lanes of a mask may not access `bytes` bytes each, all in one allocation, or these are not aligned to 16 bytes.
const LINES: &str = "\
define internal i32 @margay.lines(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes) #1 {
  %buffer = alloca <32 x i64>, align 64
SPLAT low SPLAT limit
  %odd = and <32 x i64> %at, splat (i64 15)
  %bent = icmp ne <32 x i64> %odd, zeroinitializer
  %bent.bits = bitcast <32 x i1> %bent to i32
  %misaligned = and i32 %bent.bits, %mask
  %some = icmp ne i32 %misaligned, 0
  br i1 %some, label %apart, label %aligned
aligned:
  %offset = sub <32 x i64> %at, %low.all
  %outside = icmp uge <32 x i64> %offset, %limit.all
  %outside.bits = bitcast <32 x i1> %outside to i32
  %rest = and i32 %outside.bits, %mask
  %any = icmp ne i32 %rest, 0
  br i1 %any, label %ask, label %fine
ask:
ASK HOST, i64 %bytes
  ret i32 %status
fine:
  ret i32 0
apart:
  ret i32 1
}";

/// Asks a helper of the host about the lanes of a mask. Functions that do so have a buffer for the addresses in their entry block.
const HOST: &str = "  store <32 x i64> %at, ptr %buffer, align 64
  %table.p = getelementptr i8, ptr %ctx, i64 HELPERS
  %table = load ptr, ptr %table.p, align 8
  %entry = getelementptr i8, ptr %table, i64 ENTRY
  %helper = load ptr, ptr %entry, align 8
";

/// Asks a helper of the host about all lanes of one access; a template for `@margay.ask`, which asks [`Helper::Check`] about an access that
/// may fail, `@margay.ask.earlier`, which asks [`Helper::CheckEarlier`] about one before an access that has failed, and
/// `@margay.ask.group`, which asks [`Helper::CheckGroup`].
const ASK: &str = "\
define internal i32 NAME(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at) #2 {
  %buffer = alloca <32 x i64>, align 64
ASK HOST
  ret i32 %status
}";

/// Checks a group as the host would, against the range cached for the single lanes of the site that leads it (`%lead` bytes into the table),
/// and asks the host only if it does not hold all. `%more` is by how much the group is longer than the leading access.
const GROUP: &str = "\
define internal i32 @margay.check.group(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at, i64 %lead, i64 %least, i64 %more, i64 %odd, i64 %skew) #1 {
  %buffer = alloca <32 x i64>, align 64
  %sites.p = getelementptr i8, ptr %ctx, i64 SITES
  %sites = load ptr, ptr %sites.p, align 8
  %low.p = getelementptr i8, ptr %sites, i64 %lead
  %low = load i64, ptr %low.p, align 8
  %limit.p = getelementptr i8, ptr %low.p, i64 8
  %limit = load i64, ptr %limit.p, align 8
  %places = call i64 @llvm.usub.sat.i64(i64 %limit, i64 %more)
  %first = sub i64 %low, %least
SPLAT first SPLAT places SPLAT odd SPLAT skew
  %within = sub <32 x i64> %at, %first.all
  %outside = icmp uge <32 x i64> %within, %places.all
  %further = add <32 x i64> %at, %skew.all
  %odd.at = and <32 x i64> %further, %odd.all
  %misaligned = icmp ne <32 x i64> %odd.at, zeroinitializer
  %bad = or <32 x i1> %outside, %misaligned
  %bits = bitcast <32 x i1> %bad to i32
  %some = and i32 %bits, %mask
  %any = icmp ne i32 %some, 0
  br i1 %any, label %ask, label %fine
ask:
ASK HOST
  ret i32 %status
fine:
  ret i32 0
}
declare i64 @llvm.usub.sat.i64(i64, i64)";

/// Replaces the names of fields of the context, of types and of constants, and the lines of these forms: `SPLAT x` defines the vector
/// `%x.all`; `ASK HOST`, which may be followed by more arguments of the helper, defines `%status` ([`HOST`]); `OVER x offset, bytes` defines
/// `%over.x` ([`over_object`]).
fn fields(text: &str) -> String {
    let offsets = [
        ("HEAP_SIZE", at::HEAP_SIZE),
        ("HEAP_TABLE", at::HEAP_TABLE),
        ("HEAP", at::HEAP),
        ("WINDOW", at::LOCAL),
        ("STRIDE", at::LOCAL_STRIDE),
        ("SIZE", at::LOCAL_SIZE),
        ("HELPERS", at::HELPERS),
        ("SITES", at::SITES),
        ("GRANULE", mem::Arena::GRANULE.ilog2().into()),
    ];
    let expanded = |line: &str| {
        if let Some(names) = line.strip_prefix("SPLAT ") {
            names.split(" SPLAT ").map(splat).collect()
        } else if let Some(more) = line.strip_prefix("ASK HOST") {
            format!("{HOST}  %status = call i32 %helper(ptr %ctx, i32 %site, i32 %mask, ptr %buffer{more})\n")
        } else if let Some((name, operands)) = line.strip_prefix("OVER ").and_then(|rest| rest.split_once(' ')) {
            over_object(name, operands)
        } else {
            format!("{line}\n")
        }
    };
    let text = text.lines().map(expanded);
    let text = offsets.iter().fold(text.collect::<String>(), |text, (name, at)| text.replace(name, &at.to_string()));
    text.replace("LANES", &per_lane(Elem::I64, i128::from).to_string())
}

/// Whether an access of this many bytes at an offset in the device heap leaves the object there; `%granule.x` and `%entry.x` are the
/// offset's granule and the table's entry for it ([`mem::Arena`]), all of them scalars if `x` is `one`, else vectors.
fn over_object(x: &str, operands: &str) -> String {
    let (offset, bytes) = operands.split_once(", ").unwrap_or_default();
    let scalar = x == "one";
    let ty = if scalar { "i64" } else { "<32 x i64>" };
    let constant = |n: u64| if scalar { n.to_string() } else { format!("splat (i64 {n})") };
    let (length, shift, index) = (constant(mem::Arena::LENGTH), constant(32), constant(mem::Arena::INDEX));
    let granule = constant(mem::Arena::GRANULE.ilog2().into());
    format!(
        "  %length.{x} = and {ty} %entry.{x}, {length}\n  %high.{x} = lshr {ty} %entry.{x}, {shift}\n  \
           %index.{x} = and {ty} %high.{x}, {index}\n  %first.{x} = sub {ty} %granule.{x}, %index.{x}\n  \
           %start.{x} = shl {ty} %first.{x}, {granule}\n  %within.{x} = sub {ty} {offset}, %start.{x}\n  \
           %end.{x} = add {ty} %within.{x}, {bytes}\n  %over.{x} = icmp ugt {ty} %end.{x}, %length.{x}\n"
    )
}

/// Defines the vector of a scalar.
fn splat(name: &str) -> String {
    format!(
        "  %{name}.one = insertelement <32 x i64> poison, i64 %{name}, i32 0\n  \
           %{name}.all = shufflevector <32 x i64> %{name}.one, <32 x i64> poison, <32 x i32> zeroinitializer\n"
    )
}

/// The text of [`ASK`] for a helper.
pub(super) fn ask(name: &str, helper: Helper) -> String {
    fields(ASK).replace("NAME", name).replace("ENTRY", &entry(helper))
}

/// The text of [`GROUP`].
pub(super) fn group() -> String {
    fields(GROUP).replace("ENTRY", &entry(Helper::CheckGroup))
}

/// The declaration of the gather that [`NO_OBJECT`] calls.
const GATHER: &str = "declare <32 x i64> @llvm.masked.gather.v32i64.v32p0(<32 x ptr>, <32 x i1>, <32 x i64>)";

/// The declaration of what finds the first lane of a mask.
const FIRST: &str = "declare i32 @llvm.cttz.i32(i32, i1)";

/// The functions that check one access, except the one that asks the host.
pub(super) fn check() -> Vec<String> {
    lane_by_lane(fields(CHECK))
}

/// The function that checks a group, and what it calls.
pub(super) fn together() -> Vec<String> {
    lane_by_lane(fields(TOGETHER).replace("ENTRY", &entry(Helper::CheckTogether)))
}

/// The function that checks lines of a matrix.
pub(super) fn lines() -> String {
    fields(LINES).replace("ENTRY", &entry(Helper::CheckTogether))
}

/// A function that compares lane by lane, and what it calls.
fn lane_by_lane(function: String) -> Vec<String> {
    [FOREIGN, NO_OBJECT, OUTSIDE].map(fields).into_iter().chain([function, GATHER.into(), FIRST.into()]).collect()
}

/// Offset of a helper's entry in the table.
fn entry(helper: Helper) -> String {
    (helper as u64 * 8).to_string()
}
