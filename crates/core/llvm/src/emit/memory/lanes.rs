//! The text of LLVM functions that access memory lane by lane, each at an address of its own.

use crate::emit::{
    memory::{
        branchless::{SPARE, SPARSE, fewer, load_lanes, store_lanes},
        partial::{MaskedAlign, lanes_of_bits, masked_align},
        together::{
            consecutive, few_loads, join_rows, leave_few, load_all_together, load_together, may_be_together,
            store_rows, store_together,
        },
        unit::Kind,
    },
    text::{Elem, Ty, mangle, per_lane},
};

/// A helper that loops over the set bits of `%mask`; `step` is the code for lane `%lane` and its pointer `%p`. Vectors
/// are spilled first, since extracting elements one by one costs more.
pub(in crate::emit) fn lane_loop(header: &str, before: &str, step: &str, after: &str) -> String {
    row_loop(header, before, "", &Step { pointer: BY_ADDRESS, code: step, collects: None }, after)
}

/// What a loop does for each lane.
pub(super) struct Step<'a> {
    /// Code for the lane's pointer `%p`.
    pub pointer: &'a str,
    pub code: &'a str,
    /// It yields `%v` of this type, of which `%result` collects a vector, with zeros for inactive lanes.
    pub collects: Option<Elem>,
}

/// The pointer of a lane whose address is in a list.
const BY_ADDRESS: &str = "  %ap = getelementptr i64, ptr %addresses, i32 %lane\n  %a = load i64, ptr %ap, align 8\n  \
                          %p = inttoptr i64 %a to ptr\n";

impl Step<'_> {
    /// The begin and the end of the loop's body, and what follows the loop, which begins after the block `from`.
    ///
    /// Results are collected in registers: a vector that was just stored element by element can be loaded only when all stores are over,
    /// which takes longer than to load some lanes.
    fn collect(&self, from: &str) -> [String; 3] {
        let Some(elem) = self.collects else { return Default::default() };
        let all = Ty::lanes(elem);
        let sources = format!("[ zeroinitializer, %{from} ], [ %collected.next, %each ]");
        [
            format!("  %collected = phi {all} {sources}\n"),
            collected(elem, "%v", ["%collected", "%collected.next"]),
            format!("  %result = phi {all} {sources}\n"),
        ]
    }

    /// A loop over the lanes of `%mask`, from the lowest one on, after the block `from`. What follows it is in the block `end`.
    pub(super) fn repeat(&self, from: &str) -> String {
        let [first, last, end] = self.collect(from);
        let Step { pointer, code, .. } = self;
        format!(
            "  %some = icmp ne i32 %mask, 0\n  br i1 %some, label %each, label %end\neach:\n  \
             %left = phi i32 [ %mask, %{from} ], [ %rest, %each ]\n{first}  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)\n  \
             %less = sub i32 %left, 1\n  %rest = and i32 %left, %less\n{pointer}{code}{last}  %more = icmp ne i32 %rest, 0\n  \
             br i1 %more, label %each, label %end\nend:\n{end}"
        )
    }
}

/// Code that puts an element into a vector, at the place `%lane`.
fn collected(elem: Elem, v: &str, [before, after]: [&str; 2]) -> String {
    let (t, all, place) = (Ty::scalar(elem), Ty::lanes(elem), Elem::int(elem.bits()));
    let (number, numbers) = (Ty::scalar(place), Ty::lanes(place));
    let resized = match place.bits() {
        32 => "%place.32 = add i32 %lane, 0".to_string(),
        bits => format!("%place.{bits} = {} i32 %lane to {number}", if bits < 32 { "trunc" } else { "zext" }),
    };
    format!(
        "  {resized}\n  %place.one = insertelement {numbers} poison, {number} %place.{bits}, i32 0\n  \
         %place.all = shufflevector {numbers} %place.one, {numbers} poison, <32 x i32> zeroinitializer\n  \
         %is.place = icmp eq {numbers} %place.all, {places}\n  %v.one = insertelement {all} poison, {t} {v}, i32 0\n  \
         %v.all = shufflevector {all} %v.one, {all} poison, <32 x i32> zeroinitializer\n  \
         {after} = select <32 x i1> %is.place, {all} %v.all, {all} {before}\n",
        bits = place.bits(),
        places = per_lane(place, i128::from),
    )
}

/// The same after code that may have handled all lanes together, and goes to `%loop` or falls through otherwise.
fn row_loop(header: &str, before: &str, together: &str, step: &Step<'_>, after: &str) -> String {
    let from = if together.is_empty() { "entry" } else { "loop" };
    let jump = match together {
        "" => "",
        // The code has returned, or has gone to the loop.
        _ if together.trim_end().lines().last().is_some_and(|line| line.starts_with("  ret ")) => "loop:\n",
        _ => "  br label %loop\nloop:\n",
    };
    let (variables, before) = variables_apart(before);
    format!(
        "define internal {header} #1 {{\nentry:\n{ADDRESSES}{variables}{SPILL}{together}{jump}{before}{}{after}}}\ndeclare i32 @llvm.cttz.i32(i32, i1)",
        step.repeat(from)
    )
}

/// The allocations of variables in a text, and the rest: only what the entry block allocates is part of the frame.
fn variables_apart(text: &str) -> (String, String) {
    let (variables, rest): (Vec<&str>, Vec<&str>) = text.split_inclusive('\n').partition(|l| l.contains(" alloca "));
    (variables.concat(), rest.concat())
}

/// A helper unrolled over all 32 lanes; in `step`, `#` denotes the lane.
pub(in crate::emit) fn lane_list(header: &str, before: &str, step: &str, after: &str) -> String {
    row_list(header, "", before, step, after)
}

/// The same after code that may have handled all lanes together.
fn row_list(header: &str, together: &str, before: &str, step: &str, after: &str) -> String {
    let mut body = String::new();
    for lane in 0..32 {
        let one = "  %ap# = getelementptr i64, ptr %addresses, i32 #\n  %a# = load volatile i64, ptr %ap#, align 8\n  \
                   %p# = inttoptr i64 %a# to ptr\n";
        body.push_str(&format!("{one}{step}").replace('#', &lane.to_string()));
    }
    let (variables, spills) = variables_apart(&format!("{ADDRESSES}{SPILL}{before}"));
    format!("define internal {header} #1 {{\nentry:\n{variables}{together}{spills}{body}{after}}}")
}

/// The alignment in bytes that helpers assume: weak accesses may be several of smaller elements ([`super::fused`]).
pub(super) fn align_of(elem: Elem, kind: Kind) -> u32 {
    if kind == Kind::Weak { 1 } else { elem.bits() / 8 }
}

/// The variable in which code for single lanes finds their addresses, and the store to it.
const ADDRESSES: &str = "  %addresses = alloca <32 x i64>, align 64\n";
const SPILL: &str = "  store volatile <32 x i64> %at, ptr %addresses, align 64\n";

/// The begin of code with the host's gathers or scatters. Only lean code finds the addresses of few lanes in memory.
fn begin(elem: Elem, lean: bool) -> String {
    let few = leave_few();
    let row = format!("  %list = alloca <32 x {}>, align 64\n", Ty::scalar(elem));
    if lean { format!("{ADDRESSES}{row}{SPILL}{few}") } else { format!("{ADDRESSES}{few}{SPILL}") }
}

/// How the host's gathers or scatters (AVX-512) access eight lanes at a time. They access each element as a whole, and scatters the lowest
/// lane first, as loops over lanes do.
struct Hardware {
    /// The type of eight elements: bytes come from the words around them, which lie on the same page.
    eight: String,
    /// The intrinsic and its declaration.
    name: String,
    declared: String,
}

impl Hardware {
    fn new(elem: Elem, loads: bool) -> Hardware {
        let word = if elem == Elem::I8 { Elem::I32 } else { elem };
        let suffix = match elem {
            Elem::F32 => "ps",
            Elem::F64 => "pd",
            _ if word.bits() == 32 => "pi",
            _ => "pq",
        };
        let eight = format!("<8 x {}>", Ty::scalar(word));
        let verb = if loads { "gather" } else { "scatter" };
        let name = format!("@llvm.x86.avx512.mask.{verb}.q{suffix}.512");
        let declared = match loads {
            true => format!("declare {eight} {name}({eight}, ptr, <8 x i64>, <8 x i1>, i32)"),
            false => format!("declare void {name}(ptr, <8 x i1>, <8 x i64>, {eight}, i32)"),
        };
        Hardware { eight, name, declared }
    }

    /// Code that loads `%g…` from the addresses `%a…`, by the mask `on`; `lane` ends the names.
    fn load(&self, elem: Elem, on: &str, lane: &str) -> String {
        let Hardware { eight, name, .. } = self;
        let from = |a: &str| format!("{eight} zeroinitializer, ptr null, <8 x i64> %{a}{lane}, <8 x i1> {on}, i32 1");
        match elem {
            Elem::I8 => format!(
                "  %d{lane} = and <8 x i64> %a{lane}, splat (i64 -4)\n  %w{lane} = call {eight} {name}({})\n  \
                 %o{lane} = trunc <8 x i64> %a{lane} to {eight}\n  %p{lane} = and {eight} %o{lane}, splat (i32 3)\n  \
                 %q{lane} = shl {eight} %p{lane}, splat (i32 3)\n  %r{lane} = lshr {eight} %w{lane}, %q{lane}\n  \
                 %g{lane} = trunc {eight} %r{lane} to <8 x i8>\n",
                from("d")
            ),
            _ => format!("  %g{lane} = call {eight} {name}({})\n", from("a")),
        }
    }

    /// Code that stores `%v…` to the addresses `%a…`, by the mask `on`; `lane` ends the names.
    fn store(&self, on: &str, lane: &str) -> String {
        let Hardware { eight, name, .. } = self;
        format!("  call void {name}(ptr null, <8 x i1> {on}, <8 x i64> %a{lane}, {eight} %v{lane}, i32 1)\n")
    }
}

/// Code with the host's gathers or scatters, and the declarations that it needs: `%at` has the addresses, `%mask` the bits of the lanes,
/// `%values` what is stored. Inactive lanes take as long as active ones, so eight lanes are left out if all of them are inactive.
fn by_hardware(elem: Elem, loads: bool, masked: bool) -> (String, String) {
    let t = Ty::scalar(elem);
    let hardware = Hardware::new(elem, loads);
    let of = if elem == Elem::I8 { "<8 x i8>" } else { &hardware.eight };
    let mut text = match masked {
        true => "  %lanes.on = bitcast i32 %mask to <32 x i1>\n  br label %parts\nparts:\n".to_string(),
        false => String::new(),
    };
    for lane in (0..32).step_by(8) {
        if masked {
            text.push_str(&format!(
                "  %part{lane} = and i32 %mask, {}\n  %none{lane} = icmp eq i32 %part{lane}, 0\n  \
                 br i1 %none{lane}, label %over{lane}, label %on{lane}\non{lane}:\n",
                (0xff_u32 << lane) as i32
            ));
        }
        let picks = (lane..lane + 8).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ");
        let mut part = |name: &str, ty: &str, of: &str| {
            let line = format!("shufflevector <32 x {ty}> %{of}, <32 x {ty}> poison, <8 x i32> <{picks}>");
            text.push_str(&format!("  %{name}{lane} = {line}\n"));
        };
        let on = if masked { format!("%m{lane}") } else { "splat (i1 true)".into() };
        part("a", "i64", "at");
        if masked {
            part("m", "i1", "lanes.on");
        }
        if loads {
            text.push_str(&hardware.load(elem, &on, &lane.to_string()));
        } else {
            part("v", &t.to_string(), "values");
            text.push_str(&hardware.store(&on, &lane.to_string()));
        }
        if masked {
            let before = if lane == 0 { "parts".to_string() } else { format!("over{}", lane - 8) };
            text.push_str(&format!("  br label %over{lane}\nover{lane}:\n"));
            if loads {
                text.push_str(&format!(
                    "  %y{lane} = phi {of} [ zeroinitializer, %{before} ], [ %g{lane}, %on{lane} ]\n"
                ));
            }
        }
    }
    text.push_str(&if loads { join_rows(elem, if masked { 'y' } else { 'g' }) } else { "  ret void\n".into() });
    (text, hardware.declared)
}

/// The same as [`by_hardware`] for masks, as a loop over eight lanes at a time, which is less code. It follows [`begin`].
fn eights(elem: Elem, loads: bool) -> (String, String) {
    let (t, hardware) = (Ty::scalar(elem), Hardware::new(elem, loads));
    let eight = format!("<8 x {t}>");
    let access = match loads {
        true => format!(
            "{}  %gp = getelementptr {eight}, ptr %list, i32 %part\n  store {eight} %g, ptr %gp, align 8\n",
            hardware.load(elem, "%on", "")
        ),
        false => format!(
            "  %vp = getelementptr {eight}, ptr %list, i32 %part\n  %v = load {eight}, ptr %vp, align 8\n{}",
            hardware.store("%on", "")
        ),
    };
    let (content, end) = match loads {
        true => {
            ("zeroinitializer", format!("  %whole = load <32 x {t}>, ptr %list, align 64\n  ret <32 x {t}> %whole\n"))
        }
        false => ("%values", "  ret void\n".into()),
    };
    let text = format!(
        "  store volatile <32 x {t}> {content}, ptr %list, align 64\n  br label %parts\nparts:\n  \
         %part = phi i32 [ 0, %apart.lanes ], [ %next, %over ]\n  %left = phi i32 [ %mask, %apart.lanes ], [ %rest, %over ]\n  \
         %low = trunc i32 %left to i8\n  %idle = icmp eq i8 %low, 0\n  br i1 %idle, label %over, label %some\nsome:\n  \
         %on = bitcast i8 %low to <8 x i1>\n  %ap = getelementptr <8 x i64>, ptr %addresses, i32 %part\n  \
         %a = load <8 x i64>, ptr %ap, align 64\n{access}  br label %over\nover:\n  %next = add i32 %part, 1\n  \
         %rest = lshr i32 %left, 8\n  %more = icmp ne i32 %rest, 0\n  br i1 %more, label %parts, label %end\nend:\n{end}"
    );
    (text, hardware.declared)
}

/// The functions of a text, and one that calls its first function with addresses as one number and a word for each lane
/// ([`crate::emit::text::Writer::base_and_words`]). The name ends with `.at`.
pub(super) fn at_words(text: &str) -> Option<String> {
    let (head, _) = text.split_once(") #")?;
    let (result, rest) = head.strip_prefix("define internal ")?.split_once(" @")?;
    let (name, args) = rest.split_once('(')?;
    let own = args.replace("<32 x i64> %at", "i64 %base, <32 x i32> %words");
    let (assign, value) = if result == "void" { ("", "") } else { ("%result = ", " %result") };
    Some(format!(
        "define internal {result} @{name}.at({own}) #1 {{\n  %wide = zext <32 x i32> %words to <32 x i64>\n  \
         %one = insertelement <32 x i64> poison, i64 %base, i32 0\n  \
         %bases = shufflevector <32 x i64> %one, <32 x i64> poison, <32 x i32> zeroinitializer\n  %at = add <32 x i64> %bases, %wide\n  \
         {assign}call {result} @{name}({args})\n  ret {result}{value}\n}}"
    ))
}

/// A function that loads the lanes of a row at consecutive addresses that the bits of `%mask` name, and zeros for the others.
pub(super) fn load_row(elem: Elem, width: u32) -> String {
    let piece = Ty::lanes(elem).part(width);
    let name = format!("llvm.masked.load.v{width}{}.p0", mangle(Ty::scalar(elem)));
    let MaskedAlign { declared, attribute, argument } = masked_align(align_of(elem, Kind::Weak));
    format!(
        "define internal {piece} @margay.load.{width}.{elem}(ptr %at, i32 %mask) #1 {{\n{on}  \
         %v = call {piece} @{name}(ptr {attribute}%at{argument}, <{width} x i1> %on, {piece} zeroinitializer)\n  ret {piece} %v\n}}\n\
         declare {piece} @{name}(ptr{declared}, <{width} x i1>, {piece})",
        elem = Ty::scalar(elem),
        on = lanes_of_bits(elem, width, "mask", &[("on", 0)]),
    )
}

/// A function that stores the lanes of a row at consecutive addresses that the bits of `%mask` name.
pub(super) fn store_row(elem: Elem, width: u32) -> String {
    let piece = Ty::lanes(elem).part(width);
    let name = format!("llvm.masked.store.v{width}{}.p0", mangle(Ty::scalar(elem)));
    let MaskedAlign { declared, attribute, argument } = masked_align(align_of(elem, Kind::Weak));
    format!(
        "define internal void @margay.store.{width}.{elem}(ptr %at, {piece} %v, i32 %mask) #1 {{\n{on}  \
         call void @{name}({piece} %v, ptr {attribute}%at{argument}, <{width} x i1> %on)\n  ret void\n}}\n\
         declare void @{name}({piece}, ptr{declared}, <{width} x i1>)",
        elem = Ty::scalar(elem),
        on = lanes_of_bits(elem, width, "mask", &[("on", 0)]),
    )
}

pub(super) fn gather_some(elem: Elem, kind: Kind, hardware: bool, lean: bool) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, kind));
    if hardware {
        let (together, rows) = load_together(elem, hardware, lean);
        let (body, declared) = if lean { eights(elem, true) } else { by_hardware(elem, true, true) };
        let header = format!("<32 x {t}> @margay.gather.{t}(<32 x i64> %at, i32 %mask)");
        let begin = begin(elem, lean);
        return format!(
            "define internal {header} #1 {{\nentry:\n{begin}{together}{body}}}\n{declared}\n{rows}\n\
             declare i32 @llvm.cttz.i32(i32, i1)\ndeclare i32 @llvm.ctpop.i32(i32)"
        );
    }
    let load = kind.load(&t.to_string(), "%p", align);
    let collects = (elem.bits() <= 64).then_some(elem);
    let (before, step, after) = match collects {
        Some(_) => (String::new(), format!("  %v = {load}\n"), String::new()),
        None => (
            format!("  %out = alloca <32 x {t}>, align 64\n  store <32 x {t}> zeroinitializer, ptr %out, align 64\n"),
            format!(
                "  %v = {load}\n  %op = getelementptr {t}, ptr %out, i32 %lane\n  store {t} %v, ptr %op, align {align}\n"
            ),
            format!("  %result = load <32 x {t}>, ptr %out, align 64\n"),
        ),
    };
    let after = format!("{after}  ret <32 x {t}> %result\n");
    let together = (kind == Kind::Weak && elem.bits() <= 64).then(|| {
        let (text, declared) = load_together(elem, hardware, lean);
        // Lean code is short, and asks for few lanes only whether they are few.
        let (few, many) = match lean {
            true => (leave_few(), String::new()),
            false => {
                let few = few_loads(Ty::scalar(elem), Ty::lanes(elem), align);
                (
                    format!("{SPARE}{}dense:\n{}{few}", fewer(SPARSE, ["loop", "dense"]), may_be_together(elem)),
                    load_lanes(elem, align),
                )
            }
        };
        (format!("{few}{text}{many}"), format!("{declared}\ndeclare i32 @llvm.ctpop.i32(i32)"))
    });
    let (together, declared) = together.unwrap_or_default();
    let text = row_loop(
        &format!("<32 x {t}> @margay.gather.{t}{}(<32 x i64> %at, i32 %mask)", kind.suffix()),
        &before,
        &together,
        &Step { pointer: BY_ADDRESS, code: &step, collects },
        &after,
    );
    format!("{text}\n{declared}")
}

pub(super) fn gather_all(elem: Elem, kind: Kind, hardware: bool) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, kind));
    if hardware {
        let (rows, (body, declared)) = (load_all_together(elem, hardware), by_hardware(elem, true, false));
        let header = format!("<32 x {t}> @margay.gather.all.{t}(<32 x i64> %at)");
        return format!("define internal {header} #1 {{\n{rows}{body}}}\n{declared}");
    }
    let load = kind.load(&t.to_string(), "%p#", align);
    let mut text = row_list(
        &format!("<32 x {t}> @margay.gather.all.{t}{}(<32 x i64> %at)", kind.suffix()),
        &if kind == Kind::Weak { load_all_together(elem, hardware) } else { String::new() },
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

pub(super) fn scatter_some(elem: Elem, kind: Kind, hardware: bool, lean: bool) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, kind));
    if hardware {
        let (together, rows) = store_together(elem, hardware);
        let (body, declared) = if lean { eights(elem, false) } else { by_hardware(elem, false, true) };
        let header = format!("void @margay.scatter.{t}(<32 x i64> %at, <32 x {t}> %values, i32 %mask)");
        let begin = begin(elem, lean);
        return format!("define internal {header} #1 {{\nentry:\n{begin}{together}{body}}}\n{declared}\n{rows}");
    }
    let before = format!("  %in = alloca <32 x {t}>, align 64\n  store <32 x {t}> %values, ptr %in, align 64\n");
    let store = kind.store(&t.to_string(), "%v", "%p", align);
    let step =
        format!("  %ip = getelementptr {t}, ptr %in, i32 %lane\n  %v = load {t}, ptr %ip, align {align}\n  {store}\n");
    let header = format!("void @margay.scatter.{t}{}(<32 x i64> %at, <32 x {t}> %values, i32 %mask)", kind.suffix());
    if kind == Kind::Strong || elem.bits() > 64 {
        return lane_loop(&header, &before, &step, "  ret void\n");
    }
    let (together, declared) = store_together(elem, hardware);
    let (spare, likely, many) = match lean {
        true => ("", String::new(), String::new()),
        false => {
            let (_, spill) = variables_apart(&before);
            (SPARE, may_be_together(elem), store_lanes(elem, align, &spill))
        }
    };
    let text = row_loop(
        &header,
        &before,
        &format!("{spare}{}{likely}{together}{many}", leave_few()),
        &Step { pointer: BY_ADDRESS, code: &step, collects: None },
        "  ret void\n",
    );
    format!("{text}\n{declared}")
}

pub(super) fn scatter_all(elem: Elem, kind: Kind, hardware: bool) -> String {
    let (t, align, bytes) = (Ty::scalar(elem), align_of(elem, kind), elem.bits() / 8);
    if hardware {
        let (rows, (body, declared)) = (consecutive(bytes, &store_rows(elem)), by_hardware(elem, false, false));
        let header = format!("void @margay.scatter.all.{t}(<32 x i64> %at, <32 x {t}> %values)");
        return format!("define internal {header} #1 {{\n{rows}{body}}}\n{declared}");
    }
    let before =
        format!("  %in = alloca <32 x {t}>, align 64\n  store volatile <32 x {t}> %values, ptr %in, align 64\n");
    let store = kind.store(&t.to_string(), "%v#", "%p#", align);
    let step = format!(
        "  %ip# = getelementptr {t}, ptr %in, i32 #\n  %v# = load volatile {t}, ptr %ip#, align {align}\n  {store}\n"
    );
    row_list(
        &format!("void @margay.scatter.all.{t}{}(<32 x i64> %at, <32 x {t}> %values)", kind.suffix()),
        &if kind == Kind::Weak { consecutive(bytes, &store_rows(elem)) } else { String::new() },
        &before,
        &step,
        "  ret void\n",
    )
}
