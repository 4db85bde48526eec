//! The text of the functions that compiled code calls where the comparison before an access fails, as for lanes that are inactive, for
//! memory that the site has not accessed yet, and for addresses of `.local` memory.

use crate::{
    ctx::{Helper, at},
    emit::text::{Elem, per_lane},
};

/// Lanes whose addresses are not in their own local windows, with room for an access of `own` bytes.
const FOREIGN: &str = "\
define internal i32 @margay.foreign(ptr %ctx, <32 x i64> %at, i64 %own) #2 {
  %window.p = getelementptr i8, ptr %ctx, i64 WINDOW
  %window = load i64, ptr %window.p, align 8
  %stride.p = getelementptr i8, ptr %ctx, i64 STRIDE
  %stride = load i64, ptr %stride.p, align 8
  %size.p = getelementptr i8, ptr %ctx, i64 SIZE
  %size = load i64, ptr %size.p, align 8
  %narrow = icmp ult i64 %size, %stride
  %room = select i1 %narrow, i64 %size, i64 %stride
  %fits = icmp uge i64 %room, %own
  %rest.1 = sub i64 %room, %own
  %rest.2 = add i64 %rest.1, 1
  %starts.count = select i1 %fits, i64 %rest.2, i64 0
  %window.1 = insertelement <32 x i64> poison, i64 %window, i32 0
  %windows = shufflevector <32 x i64> %window.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %stride.4 = and i64 %stride, 4294967295
  %stride.1 = insertelement <32 x i64> poison, i64 %stride.4, i32 0
  %strides = shufflevector <32 x i64> %stride.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %place.1 = insertelement <32 x i64> poison, i64 %starts.count, i32 0
  %places = shufflevector <32 x i64> %place.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %behind = mul <32 x i64> %strides, LANES
  %starts = add <32 x i64> %windows, %behind
  %within = sub <32 x i64> %at, %starts
  %foreign = icmp uge <32 x i64> %within, %places
  %bits = bitcast <32 x i1> %foreign to i32
  ret i32 %bits
}";

/// Slow path of a check: compares lane by lane, with a range and, if `own` is the size of a generic access, with each
/// lane's local window; calls the helper for lanes that fail.
const CHECK: &str = "\
define internal i32 @margay.check(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %from, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %own) #2 {
  %plus.1 = insertelement <32 x i64> poison, i64 %plus, i32 0
  %pluss = shufflevector <32 x i64> %plus.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %at = add <32 x i64> %from, %pluss
  %low.1 = insertelement <32 x i64> poison, i64 %low, i32 0
  %lows = shufflevector <32 x i64> %low.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %limit.1 = insertelement <32 x i64> poison, i64 %limit, i32 0
  %limits = shufflevector <32 x i64> %limit.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %odd.1 = insertelement <32 x i64> poison, i64 %odd, i32 0
  %odds = shufflevector <32 x i64> %odd.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %offset = sub <32 x i64> %at, %lows
  %outside = icmp uge <32 x i64> %offset, %limits
  %rest = and <32 x i64> %at, %odds
  %misaligned = icmp ne <32 x i64> %rest, zeroinitializer
  %odd.bits = bitcast <32 x i1> %misaligned to i32
  %outside.bits = bitcast <32 x i1> %outside to i32
  %bad = or i32 %outside.bits, %odd.bits
  %active = and i32 %bad, %mask
  %any = icmp ne i32 %active, 0
  br i1 %any, label %again, label %fine
again:
  %generic = icmp ne i64 %own, 0
  br i1 %generic, label %local, label %ask
local:
  %foreign = call i32 @margay.foreign(ptr %ctx, <32 x i64> %at, i64 %own)
  %wrong = or i32 %foreign, %odd.bits
  %left = and i32 %wrong, %active
  %some = icmp ne i32 %left, 0
  br i1 %some, label %ask, label %fine
ask:
  %status = call i32 @margay.ask(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at)
  ret i32 %status
fine:
  ret i32 0
}";

/// Whether the lanes may access all that a group accesses: `span` bytes from `plus` behind the checked address, in one allocation or in a
/// lane's own window, aligned `skew` bytes further. Returns 0 if they may; if not, nothing is said about the group's single accesses.
const TOGETHER: &str = "\
define internal i32 @margay.together(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %from, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %skew, i64 %span, i1 %generic) #2 {
  %buffer = alloca <32 x i64>, align 64
  %plus.1 = insertelement <32 x i64> poison, i64 %plus, i32 0
  %pluss = shufflevector <32 x i64> %plus.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %at = add <32 x i64> %from, %pluss
  %skew.1 = insertelement <32 x i64> poison, i64 %skew, i32 0
  %skews = shufflevector <32 x i64> %skew.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %odd.1 = insertelement <32 x i64> poison, i64 %odd, i32 0
  %odds = shufflevector <32 x i64> %odd.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %further = add <32 x i64> %at, %skews
  %rest = and <32 x i64> %further, %odds
  %misaligned = icmp ne <32 x i64> %rest, zeroinitializer
  %odd.bits = bitcast <32 x i1> %misaligned to i32
  %crooked = and i32 %odd.bits, %mask
  %some = icmp ne i32 %crooked, 0
  br i1 %some, label %apart, label %aligned
aligned:
  %low.1 = insertelement <32 x i64> poison, i64 %low, i32 0
  %lows = shufflevector <32 x i64> %low.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %limit.1 = insertelement <32 x i64> poison, i64 %limit, i32 0
  %limits = shufflevector <32 x i64> %limit.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %offset = sub <32 x i64> %at, %lows
  %outside = icmp uge <32 x i64> %offset, %limits
  %outside.bits = bitcast <32 x i1> %outside to i32
  %active = and i32 %outside.bits, %mask
  %any = icmp ne i32 %active, 0
  br i1 %any, label %again, label %fine
again:
  br i1 %generic, label %local, label %ask
local:
  %foreign = call i32 @margay.foreign(ptr %ctx, <32 x i64> %at, i64 %span)
  %left = and i32 %foreign, %active
  %more = icmp ne i32 %left, 0
  br i1 %more, label %ask, label %fine
ask:
  store <32 x i64> %at, ptr %buffer, align 64
  %table.p = getelementptr i8, ptr %ctx, i64 HELPERS
  %table = load ptr, ptr %table.p, align 8
  %entry = getelementptr i8, ptr %table, i64 ENTRY
  %helper = load ptr, ptr %entry, align 8
  %status = call i32 %helper(ptr %ctx, i32 %site, i32 %mask, ptr %buffer, i64 %span)
  ret i32 %status
fine:
  ret i32 0
apart:
  ret i32 1
}";

/// Asks a helper of the host about all lanes of one access; a template for `@margay.ask`, which asks [`Helper::Check`] about an access that
/// may fail, `@margay.ask.earlier`, which asks [`Helper::CheckEarlier`] about one before an access that has failed, and
/// `@margay.ask.group`, which asks [`Helper::CheckGroup`].
const ASK: &str = "\
define internal i32 NAME(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at) #2 {
  %buffer = alloca <32 x i64>, align 64
  store <32 x i64> %at, ptr %buffer, align 64
  %table.p = getelementptr i8, ptr %ctx, i64 HELPERS
  %table = load ptr, ptr %table.p, align 8
  %entry = getelementptr i8, ptr %table, i64 ENTRY
  %helper = load ptr, ptr %entry, align 8
  %status = call i32 %helper(ptr %ctx, i32 %site, i32 %mask, ptr %buffer)
  ret i32 %status
}";

/// Replaces the names of fields of the context, and of types.
fn fields(text: &str) -> String {
    let offsets =
        [("WINDOW", at::LOCAL), ("STRIDE", at::LOCAL_STRIDE), ("SIZE", at::LOCAL_SIZE), ("HELPERS", at::HELPERS)];
    let text = offsets.iter().fold(text.to_string(), |text, (name, at)| text.replace(name, &at.to_string()));
    text.replace("LANES", &per_lane(Elem::I64, i128::from).to_string())
}

/// The text of [`ASK`] for a helper.
pub(super) fn ask(name: &str, helper: Helper) -> String {
    fields(ASK).replace("NAME", name).replace("ENTRY", &entry(helper))
}

/// The functions that check one access, without that which asks the host.
pub(super) fn check() -> [String; 2] {
    [fields(FOREIGN), fields(CHECK)]
}

/// The function that checks a group, and what it calls.
pub(super) fn together() -> [String; 2] {
    [fields(FOREIGN), fields(TOGETHER).replace("ENTRY", &entry(Helper::CheckTogether))]
}

/// Offset of a helper's entry in the table.
fn entry(helper: Helper) -> String {
    (helper as u64 * 8).to_string()
}
