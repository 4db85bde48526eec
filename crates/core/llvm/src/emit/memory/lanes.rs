//! The text of LLVM functions that access memory lane by lane, each at an address of its own.

use crate::emit::{
    memory::{
        partial::{MaskedAlign, masked_align},
        unit::Kind,
    },
    text::{Elem, Ty, mangle},
};

/// A helper that loops over the set bits of `%mask`; `step` is the code for lane `%lane` and its pointer `%p`. Vectors
/// are spilled first, since extracting elements one by one costs more.
pub(in crate::emit) fn lane_loop(header: &str, before: &str, step: &str, after: &str) -> String {
    row_loop(header, before, "", step, after)
}

/// The same after code that may have handled all lanes together.
fn row_loop(header: &str, before: &str, together: &str, step: &str, after: &str) -> String {
    let (jump, from) = if together.is_empty() { ("", "entry") } else { ("  br label %loop\nloop:\n", "loop") };
    format!(
        "define internal {header} #1 {{\nentry:\n{SPILL}{before}{together}{jump}  %some = icmp ne i32 %mask, 0\n  br i1 %some, label %each, label %end\neach:\n  \
         %left = phi i32 [ %mask, %{from} ], [ %rest, %each ]\n  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)\n  \
         %less = sub i32 %left, 1\n  %rest = and i32 %left, %less\n  %ap = getelementptr i64, ptr %addresses, i32 %lane\n  \
         %a = load i64, ptr %ap, align 8\n  %p = inttoptr i64 %a to ptr\n{step}  %more = icmp ne i32 %rest, 0\n  \
         br i1 %more, label %each, label %end\nend:\n{after}}}\ndeclare i32 @llvm.cttz.i32(i32, i1)"
    )
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
    let spills = format!("{SPILL}{before}");
    // Only what the entry block allocates is part of the frame.
    let (variables, spills): (Vec<&str>, Vec<&str>) =
        spills.split_inclusive('\n').partition(|l| l.contains(" alloca "));
    let (variables, spills) = (variables.concat(), spills.concat());
    format!("define internal {header} #1 {{\nentry:\n{variables}{together}{spills}{body}{after}}}")
}

/// The alignment in bytes that helpers assume: weak accesses may be several of smaller elements ([`super::fused`]).
fn align_of(elem: Elem, kind: Kind) -> u32 {
    if kind == Kind::Weak { 1 } else { elem.bits() / 8 }
}

/// Lanes whose addresses are compared with consecutive ones at run time: a row of a tile, or the part of it that a swizzle
/// keeps together.
const ROW: u32 = 8;

/// The begin of an unrolled helper that handles rows of consecutive addresses at once and goes on with single lanes otherwise;
/// `rows` is the code for rows that begin at `%b0`, `%b8`, `%b16`, `%b24`.
fn consecutive(bytes: u32, rows: &str) -> String {
    let list = |f: &dyn Fn(u32) -> String| (0..32).map(f).collect::<Vec<_>>().join(", ");
    let (firsts, steps) =
        (list(&|lane| format!("i32 {}", lane / ROW * ROW)), list(&|lane| format!("i64 {}", lane % ROW * bytes)));
    let starts: String = (0..32)
        .step_by(ROW as usize)
        .map(|lane| {
            format!(
                "  %s{lane} = extractelement <32 x i64> %at, i32 {lane}\n  %b{lane} = inttoptr i64 %s{lane} to ptr\n"
            )
        })
        .collect();
    format!(
        "  %firsts = shufflevector <32 x i64> %at, <32 x i64> poison, <32 x i32> <{firsts}>\n  \
         %wanted = add <32 x i64> %firsts, <{steps}>\n  %differ = icmp ne <32 x i64> %at, %wanted\n  \
         %apart = bitcast <32 x i1> %differ to i32\n  %scattered = icmp ne i32 %apart, 0\n  \
         br i1 %scattered, label %single, label %rows\nrows:\n{starts}{rows}single:\n"
    )
}

const SPILL: &str =
    "  %addresses = alloca <32 x i64>, align 64\n  store volatile <32 x i64> %at, ptr %addresses, align 64\n";

/// Leaves few lanes to the code for single lanes, which takes less time for them than looking for rows.
const FEW: &str = "  %count = call i32 @llvm.ctpop.i32(i32 %mask)\n  %few = icmp ult i32 %count, 9\n  \
                   br i1 %few, label %apart.lanes, label %many\nmany:\n";

/// Code with the host's gathers or scatters (AVX-512), eight lanes at a time, and the declarations that it needs: `%at` has the addresses,
/// `%mask` the bits of the lanes, `%values` what is stored. They access each element as a whole, and scatters the lowest lane first, as the
/// loops do. Inactive lanes take as long as active ones, so eight lanes are left out if all of them are inactive.
fn by_hardware(elem: Elem, loads: bool, masked: bool) -> (String, String) {
    let (t, bytes) = (Ty::scalar(elem), elem == Elem::I8);
    // Bytes come from the words around them, which lie on the same page.
    let word = if bytes { Elem::I32 } else { elem };
    let suffix = match elem {
        Elem::F32 => "ps",
        Elem::F64 => "pd",
        _ if word.bits() == 32 => "pi",
        _ => "pq",
    };
    let (eight, addresses, lanes) = (format!("<8 x {}>", Ty::scalar(word)), "<8 x i64>", "<8 x i1>");
    let verb = if loads { "gather" } else { "scatter" };
    let name = format!("@llvm.x86.avx512.mask.{verb}.q{suffix}.512");
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
        if bytes {
            text.push_str(&format!(
                "  %d{lane} = and {addresses} %a{lane}, splat (i64 -4)\n  \
                 %w{lane} = call {eight} {name}({eight} zeroinitializer, ptr null, {addresses} %d{lane}, {lanes} {on}, i32 1)\n  \
                 %o{lane} = trunc {addresses} %a{lane} to {eight}\n  %p{lane} = and {eight} %o{lane}, splat (i32 3)\n  \
                 %q{lane} = shl {eight} %p{lane}, splat (i32 3)\n  %r{lane} = lshr {eight} %w{lane}, %q{lane}\n  \
                 %g{lane} = trunc {eight} %r{lane} to <8 x i8>\n"
            ));
        } else if loads {
            let from = format!("{eight} zeroinitializer, ptr null, {addresses} %a{lane}, {lanes} {on}, i32 1");
            text.push_str(&format!("  %g{lane} = call {eight} {name}({from})\n"));
        } else {
            part("v", &t.to_string(), "values");
            let to = format!("ptr null, {lanes} {on}, {addresses} %a{lane}, {eight} %v{lane}, i32 1");
            text.push_str(&format!("  call void {name}({to})\n"));
        }
        if masked {
            let before = if lane == 0 { "parts".to_string() } else { format!("over{}", lane - 8) };
            text.push_str(&format!("  br label %over{lane}\nover{lane}:\n"));
            if loads {
                text.push_str(&format!(
                    "  %y{lane} = phi {eight} [ zeroinitializer, %{before} ], [ %g{lane}, %on{lane} ]\n"
                ));
            }
        }
    }
    let declared = match loads {
        true => {
            text.push_str(&join_rows(elem, if masked { 'y' } else { 'g' }));
            format!("declare {eight} {name}({eight}, ptr, {addresses}, {lanes}, i32)")
        }
        false => {
            text.push_str("  ret void\n");
            format!("declare void {name}(ptr, {lanes}, {addresses}, {eight}, i32)")
        }
    };
    (text, declared)
}

/// The begin of a loop over the lanes of a mask that loads from consecutive addresses at once: whatever lanes there are if they access one
/// row, and rows of all lanes, or single elements that the lanes of such rows share. Lanes run apart where their loops end at different
/// times, and those left still access rows, as the light tier's code does where it counts rows as varying.
fn load_together(elem: Elem) -> (String, String) {
    let (t, bytes, align) = (Ty::scalar(elem), elem.bits() / 8, align_of(elem, Kind::Weak));
    let all = Ty::lanes(elem);
    let name = format!("llvm.masked.load.{}.p0", mangle(all));
    let MaskedAlign { declared, attribute, argument } = masked_align(align_of(elem, Kind::Weak));
    let steps = (0..32).map(|lane| format!("i64 {}", lane * bytes)).collect::<Vec<_>>().join(", ");
    let same = load_same(elem, "%fa");
    let one = format!(
        "  %low = call i32 @llvm.cttz.i32(i32 %mask, i1 false)\n  %first = and i32 %low, 31\n  \
         %fp = getelementptr i64, ptr %addresses, i32 %first\n  %fa = load i64, ptr %fp, align 8\n  \
         %far = zext i32 %first to i64\n  %back = mul i64 %far, {bytes}\n  %begin = sub i64 %fa, %back\n  \
         %begins.0 = insertelement <32 x i64> poison, i64 %begin, i32 0\n  \
         %begins = shufflevector <32 x i64> %begins.0, <32 x i64> poison, <32 x i32> zeroinitializer\n  \
         %row = add <32 x i64> %begins, <{steps}>\n  %known = freeze <32 x i64> %at\n  \
         %off = icmp ne <32 x i64> %known, %row\n  %off.bits = bitcast <32 x i1> %off to i32\n  %off.some = and i32 %off.bits, %mask\n  \
         %in = icmp eq i32 %off.some, 0\n  br i1 %in, label %one, label %several\none:\n  \
         %base = inttoptr i64 %begin to ptr\n  %on = bitcast i32 %mask to <32 x i1>\n  \
         %found = call {all} @{name}(ptr {attribute}%base{argument}, <32 x i1> %on, {all} zeroinitializer)\n  ret {all} %found\n\
         several:\n  %firsts.1 = insertelement <32 x i64> poison, i64 %fa, i32 0\n  \
         %firsts.all = shufflevector <32 x i64> %firsts.1, <32 x i64> poison, <32 x i32> zeroinitializer\n  \
         %unlike = icmp ne <32 x i64> %known, %firsts.all\n  %unlike.bits = bitcast <32 x i1> %unlike to i32\n  \
         %unlike.some = and i32 %unlike.bits, %mask\n  %alike = icmp eq i32 %unlike.some, 0\n  \
         br i1 %alike, label %same, label %mixed\nsame:\n{same}  %same.on = bitcast i32 %mask to <32 x i1>\n  \
         %same.some = select <32 x i1> %same.on, {all} %same.all, {all} zeroinitializer\n  ret {all} %same.some\nmixed:\n  %every = icmp eq i32 %mask, -1\n  br i1 %every, label %full, label %apart.lanes\nfull:\n"
    );
    let mut shared = String::from(
        "  %other = icmp ne <32 x i64> %at, %firsts\n  %other.bits = bitcast <32 x i1> %other to i32\n  \
         %alone = icmp ne i32 %other.bits, 0\n  br i1 %alone, label %apart.lanes, label %share\nshare:\n",
    );
    for lane in (0..32).step_by(ROW as usize) {
        shared.push_str(&format!(
            "  %e{lane} = load {t}, ptr %c{lane}, align {align}\n  \
             %h{lane} = insertelement <{ROW} x {t}> poison, {t} %e{lane}, i32 0\n  \
             %k{lane} = shufflevector <{ROW} x {t}> %h{lane}, <{ROW} x {t}> poison, <{ROW} x i32> zeroinitializer\n"
        ));
    }
    let starts: String = (0..32)
        .step_by(ROW as usize)
        .map(|l| format!("  %d{l} = extractelement <32 x i64> %at, i32 {l}\n  %c{l} = inttoptr i64 %d{l} to ptr\n"))
        .collect();
    let shared = shared.replace("share:\n", &format!("share:\n{starts}"));
    let text = format!("{one}{}{shared}{}apart.lanes:\n", consecutive(bytes, &load_rows(elem)), join_rows(elem, 'k'));
    (text, format!("declare {all} @{name}(ptr{declared}, <32 x i1>, {all})"))
}

/// A load of one element for all lanes, `%same.all`.
fn load_same(elem: Elem, address: &str) -> String {
    let (t, align, all) = (Ty::scalar(elem), align_of(elem, Kind::Weak), Ty::lanes(elem));
    format!(
        "  %same.p = inttoptr i64 {address} to ptr\n  %same.v = load {t}, ptr %same.p, align {align}\n  \
         %same.1 = insertelement {all} poison, {t} %same.v, i32 0\n  \
         %same.all = shufflevector {all} %same.1, {all} poison, <32 x i32> zeroinitializer\n"
    )
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
        on = row_mask(width),
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
        on = row_mask(width),
    )
}

/// The lowest `width` bits of `%mask` as the mask `%on`.
fn row_mask(width: u32) -> String {
    match width {
        32 => "  %on = bitcast i32 %mask to <32 x i1>\n".into(),
        _ => format!("  %low = trunc i32 %mask to i{width}\n  %on = bitcast i{width} %low to <{width} x i1>\n"),
    }
}

pub(super) fn gather_some(elem: Elem, kind: Kind, hardware: bool) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, kind));
    if hardware {
        let (together, rows) = load_together(elem);
        let (variable, store) = SPILL.split_at(SPILL.find("  store").unwrap_or(0));
        let (body, declared) = by_hardware(elem, true, true);
        let header = format!("<32 x {t}> @margay.gather.{t}(<32 x i64> %at, i32 %mask)");
        return format!(
            "define internal {header} #1 {{\nentry:\n{variable}{FEW}{store}{together}{body}}}\n{declared}\n{rows}\n\
             declare i32 @llvm.cttz.i32(i32, i1)\ndeclare i32 @llvm.ctpop.i32(i32)"
        );
    }
    let before =
        format!("  %out = alloca <32 x {t}>, align 64\n  store <32 x {t}> zeroinitializer, ptr %out, align 64\n");
    let load = kind.load(&t.to_string(), "%p", align);
    let step = format!(
        "  %v = {load}\n  %op = getelementptr {t}, ptr %out, i32 %lane\n  store {t} %v, ptr %op, align {align}\n"
    );
    let after = format!("  %result = load <32 x {t}>, ptr %out, align 64\n  ret <32 x {t}> %result\n");
    let together = (kind == Kind::Weak && elem.bits() <= 64).then(|| {
        let (text, declared) = load_together(elem);
        (format!("{FEW}{text}"), format!("{declared}\ndeclare i32 @llvm.ctpop.i32(i32)"))
    });
    let (together, declared) = together.unwrap_or_default();
    let text = row_loop(
        &format!("<32 x {t}> @margay.gather.{t}{}(<32 x i64> %at, i32 %mask)", kind.suffix()),
        &before,
        &together,
        &step,
        &after,
    );
    format!("{text}\n{declared}")
}

pub(super) fn gather_all(elem: Elem, kind: Kind, hardware: bool) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, kind));
    if hardware {
        let (rows, (body, declared)) = (load_all_together(elem), by_hardware(elem, true, false));
        let header = format!("<32 x {t}> @margay.gather.all.{t}(<32 x i64> %at)");
        return format!("define internal {header} #1 {{\n{rows}{body}}}\n{declared}");
    }
    let load = kind.load(&t.to_string(), "%p#", align);
    let mut text = row_list(
        &format!("<32 x {t}> @margay.gather.all.{t}{}(<32 x i64> %at)", kind.suffix()),
        &if kind == Kind::Weak { load_all_together(elem) } else { String::new() },
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

/// The begin of an unrolled helper that loads rows of consecutive addresses, or one element for all lanes, at once.
fn load_all_together(elem: Elem) -> String {
    let all = Ty::lanes(elem);
    let rows = consecutive(elem.bits() / 8, &load_rows(elem));
    format!(
        "{rows}  %firsts.1 = shufflevector <32 x i64> %at, <32 x i64> poison, <32 x i32> zeroinitializer\n  \
         %unlike = icmp ne <32 x i64> %at, %firsts.1\n  %unlike.bits = bitcast <32 x i1> %unlike to i32\n  \
         %alike = icmp eq i32 %unlike.bits, 0\n  br i1 %alike, label %same, label %mixed\nsame:\n  \
         %same.a = extractelement <32 x i64> %at, i32 0\n{}  ret {all} %same.all\nmixed:\n",
        load_same(elem, "%same.a")
    )
}

fn load_rows(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, Kind::Weak));
    let mut text = String::new();
    for lane in (0..32).step_by(ROW as usize) {
        text.push_str(&format!("  %l{lane} = load <{ROW} x {t}>, ptr %b{lane}, align {align}\n"));
    }
    text + &join_rows(elem, 'l')
}

/// Joins four rows of eight lanes, named by a letter and their first lanes, and returns them.
fn join_rows(elem: Elem, row: char) -> String {
    let t = Ty::scalar(elem);
    let mut text = String::new();
    let join = |n: u32, name: &str, a: &str, b: &str| {
        let picks = (0..n).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ");
        let half = n / 2;
        format!("  %{name} = shufflevector <{half} x {t}> %{a}, <{half} x {t}> %{b}, <{n} x i32> <{picks}>\n")
    };
    text.push_str(&join(16, &format!("{row}.low"), &format!("{row}0"), &format!("{row}8")));
    text.push_str(&join(16, &format!("{row}.high"), &format!("{row}16"), &format!("{row}24")));
    text.push_str(&join(32, &format!("{row}.whole"), &format!("{row}.low"), &format!("{row}.high")));
    text + &format!("  ret <32 x {t}> %{row}.whole\n")
}

fn store_rows(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, Kind::Weak));
    let mut text = String::new();
    for lane in (0..32).step_by(ROW as usize) {
        let picks = (lane..lane + ROW).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ");
        text.push_str(&format!(
            "  %w{lane} = shufflevector <32 x {t}> %values, <32 x {t}> poison, <{ROW} x i32> <{picks}>\n  \
             store <{ROW} x {t}> %w{lane}, ptr %b{lane}, align {align}\n"
        ));
    }
    text + "  ret void\n"
}

pub(super) fn scatter_some(elem: Elem, kind: Kind, hardware: bool) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, kind));
    if hardware {
        let (body, declared) = by_hardware(elem, false, true);
        let header = format!("void @margay.scatter.{t}(<32 x i64> %at, <32 x {t}> %values, i32 %mask)");
        return format!("define internal {header} #1 {{\n{body}}}\n{declared}");
    }
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
