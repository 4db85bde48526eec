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

/// The checks of accesses that a table lists: a site, the size of an access, its distance from the checked address, the bits that must
/// be zero, and the size in a lane's own window. `size` is that of the window, or -1 for the ranges cached for the sites. Returns the
/// number of the access that fails, from 1 on, or 0.
const CHECKS: &str = "\
define internal i32 @margay.checks(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %start, i64 %size, ptr %members, i32 %count) #2 {
  %cached = icmp eq i64 %size, -1
  %sites.p = getelementptr i8, ptr %ctx, i64 SITES
  %sites = load ptr, ptr %sites.p, align 8
  br label %each
each:
  %i = phi i32 [ 0, %0 ], [ %next, %good ]
  %next = add i32 %i, 1
  %entry = getelementptr MEMBER, ptr %members, i32 %i
  %site = load i32, ptr %entry, align 8
  %bytes.p = getelementptr i8, ptr %entry, i64 4
  %bytes.4 = load i32, ptr %bytes.p, align 4
  %bytes = zext i32 %bytes.4 to i64
  %plus.p = getelementptr i8, ptr %entry, i64 8
  %plus = load i64, ptr %plus.p, align 8
  %odd.p = getelementptr i8, ptr %entry, i64 16
  %odd = load i64, ptr %odd.p, align 8
  %own.p = getelementptr i8, ptr %entry, i64 24
  %own = load i64, ptr %own.p, align 8
  br i1 %cached, label %range, label %window
range:
  %lanes = add i32 %site, 1
  %range.p = getelementptr [2 x i64], ptr %sites, i32 %lanes
  %range.low = load i64, ptr %range.p, align 8
  %limit.p = getelementptr i8, ptr %range.p, i64 8
  %range.limit = load i64, ptr %limit.p, align 8
  br label %check
window:
  %last = sub i64 %bytes, 1
  %places = call i64 @llvm.usub.sat.i64(i64 %size, i64 %last)
  br label %check
check:
  %low = phi i64 [ %range.low, %range ], [ %start, %window ]
  %limit = phi i64 [ %range.limit, %range ], [ %places, %window ]
  %status = call i32 @margay.check(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %own)
  %stopped = icmp ne i32 %status, 0
  br i1 %stopped, label %end, label %good
good:
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %end
end:
  %failed = phi i32 [ %next, %check ], [ 0, %good ]
  ret i32 %failed
}";

/// The same for accesses of a group, which are first checked together.
const GROUP_CHECKS: &str = "\
define internal i32 @margay.checks.group(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %start, i64 %size, ptr %members, i32 %count, ptr %group) #2 {
  %cached = icmp eq i64 %size, -1
  %sites.p = getelementptr i8, ptr %ctx, i64 SITES
  %sites = load ptr, ptr %sites.p, align 8
  %lead = load i32, ptr %group, align 8
  %span.p = getelementptr GROUP, ptr %group, i32 0, i32 1
  %span.4 = load i32, ptr %span.p, align 4
  %span = zext i32 %span.4 to i64
  %least.p = getelementptr GROUP, ptr %group, i32 0, i32 2
  %least = load i64, ptr %least.p, align 8
  %odds.p = getelementptr GROUP, ptr %group, i32 0, i32 3
  %odds = load i64, ptr %odds.p, align 8
  %skew.p = getelementptr GROUP, ptr %group, i32 0, i32 4
  %skew = load i64, ptr %skew.p, align 8
  %lead.size.p = getelementptr GROUP, ptr %group, i32 0, i32 5
  %lead.size.4 = load i32, ptr %lead.size.p, align 8
  %lead.size = zext i32 %lead.size.4 to i64
  %generic.p = getelementptr GROUP, ptr %group, i32 0, i32 6
  %generic.4 = load i32, ptr %generic.p, align 4
  %generic = icmp ne i32 %generic.4, 0
  br i1 %cached, label %all.range, label %all.window
all.range:
  %lead.lanes = add i32 %lead, 1
  %lead.range.p = getelementptr [2 x i64], ptr %sites, i32 %lead.lanes
  %lead.low = load i64, ptr %lead.range.p, align 8
  %lead.limit.p = getelementptr i8, ptr %lead.range.p, i64 8
  %lead.limit = load i64, ptr %lead.limit.p, align 8
  %longer = sub i64 %span, %lead.size
  %lead.places = call i64 @llvm.usub.sat.i64(i64 %lead.limit, i64 %longer)
  br label %compare
all.window:
  %span.last = sub i64 %span, 1
  %span.places = call i64 @llvm.usub.sat.i64(i64 %size, i64 %span.last)
  br label %compare
compare:
  %all.low = phi i64 [ %lead.low, %all.range ], [ %start, %all.window ]
  %all.limit = phi i64 [ %lead.places, %all.range ], [ %span.places, %all.window ]
  %apart = call i32 @margay.together(ptr %ctx, i32 %lead, i32 %mask, <32 x i64> %at, i64 %least, i64 %all.low, i64 %all.limit, i64 %odds, i64 %skew, i64 %span, i1 %generic)
  %fine = icmp eq i32 %apart, 0
  br i1 %fine, label %good, label %each
each:
  %failed = call i32 @margay.checks(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %start, i64 %size, ptr %members, i32 %count)
  ret i32 %failed
good:
  ret i32 0
}";

/// Asks a helper of the host about all lanes of one access; a template for `@margay.ask`, which asks [`Helper::Check`] about an access that
/// may fail, and `@margay.ask.earlier`, which asks [`Helper::CheckEarlier`] about one before an access that has failed.
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

/// LLVM's type of an entry of a table for [`CHECKS`].
pub(super) const MEMBER: &str = "{ i32, i32, i64, i64, i64 }";

/// LLVM's type of the description of a group for [`GROUP_CHECKS`]: the site of the access that all are checked like, the bytes from the first
/// byte accessed to the last, the distance of the first from the checked address, the bits that must be zero, how far behind the first
/// byte, the size of the lead's access, and whether addresses are generic.
pub(super) const GROUP: &str = "{ i32, i32, i64, i64, i64, i32, i32 }";

/// Replaces the names of fields of the context, and of types.
fn fields(text: &str) -> String {
    let offsets = [
        ("WINDOW", at::LOCAL),
        ("STRIDE", at::LOCAL_STRIDE),
        ("SIZE", at::LOCAL_SIZE),
        ("SITES", at::SITES),
        ("HELPERS", at::HELPERS),
    ];
    let text = offsets.iter().fold(text.to_string(), |text, (name, at)| text.replace(name, &at.to_string()));
    text.replace("LANES", &per_lane(Elem::I64, i128::from).to_string())
        .replace("MEMBER", MEMBER)
        .replace("GROUP", GROUP)
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

/// The function that checks what a table lists.
pub(super) fn checks() -> String {
    fields(CHECKS)
}

/// The function that checks a group whose accesses a table lists.
pub(super) fn group_checks() -> String {
    fields(GROUP_CHECKS)
}

/// Offset of a helper's entry in the table.
fn entry(helper: Helper) -> String {
    (helper as u64 * 8).to_string()
}
