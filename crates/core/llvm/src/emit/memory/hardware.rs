//! The text of code that accesses lanes by the host's gathers and scatters (AVX-512).

use crate::emit::{
    memory::{
        lanes::{ADDRESSES, SPILL},
        together::{join_rows, leave_few},
        unit::{Active, Direction},
    },
    text::{Elem, Ty, elements, fill},
};

/// The beginning of code with the host's gathers or scatters. Only lean code finds the addresses of few lanes in memory.
pub(super) fn begin(elem: Elem, lean: bool) -> String {
    let few = leave_few();
    let row = format!("  %list = alloca <32 x {}>, align 64\n", Ty::scalar(elem));
    if lean { format!("{ADDRESSES}{row}{SPILL}{few}") } else { format!("{ADDRESSES}{few}{SPILL}") }
}

/// How the host's gathers or scatters access eight lanes at a time. They access each element as a whole, and scatters the lowest
/// lane first, as loops over lanes do.
struct Hardware {
    /// The type of eight elements: bytes come from the words around them, which lie on the same page.
    eight: String,
    /// The intrinsic and its declaration.
    name: String,
    declared: String,
}

impl Hardware {
    fn new(elem: Elem, direction: Direction) -> Hardware {
        let word = if elem == Elem::I8 { Elem::I32 } else { elem };
        let suffix = match elem {
            Elem::F32 => "ps",
            Elem::F64 => "pd",
            _ if word.bits() == 32 => "pi",
            _ => "pq",
        };
        let eight = format!("<8 x {}>", Ty::scalar(word));
        let named = |verb: &str| format!("@llvm.x86.avx512.mask.{verb}.q{suffix}.512");
        let (name, declared) = match direction {
            Direction::Load => {
                let name = named("gather");
                let declared = format!("declare {eight} {name}({eight}, ptr, <8 x i64>, <8 x i1>, i32)");
                (name, declared)
            }
            Direction::Store => {
                let name = named("scatter");
                let declared = format!("declare void {name}(ptr, <8 x i1>, <8 x i64>, {eight}, i32)");
                (name, declared)
            }
        };
        Hardware { eight, name, declared }
    }

    /// Code that loads `%got…` from the addresses `%a…`, by the mask `on`; `lane` ends the names.
    fn load(&self, elem: Elem, on: &str, lane: &str) -> String {
        let Hardware { eight, name, .. } = self;
        let template = match elem {
            Elem::I8 => include_str!("hardware/load_bytes.ll"),
            _ => {
                "  %got{lane} = call {eight} {name}({eight} zeroinitializer, ptr null, <8 x i64> %a{lane}, <8 x i1> {on}, i32 1)"
            }
        };
        fill(template, &[("lane", &lane), ("eight", eight), ("name", name), ("on", &on)])
    }

    /// Code that stores `%v…` to the addresses `%a…`, by the mask `on`; `lane` ends the names.
    fn store(&self, on: &str, lane: &str) -> String {
        let Hardware { eight, name, .. } = self;
        format!("  call void {name}(ptr null, <8 x i1> {on}, <8 x i64> %a{lane}, {eight} %v{lane}, i32 1)\n")
    }
}

/// Code with the host's gathers or scatters, and the declarations that it needs: `%at` has the addresses, `%mask` the bits of the lanes,
/// `%values` what is stored. Inactive lanes take as long as active ones, so eight lanes are left out if all of them are inactive.
pub(super) fn by_hardware(elem: Elem, direction: Direction, active: Active) -> (String, String) {
    let t = Ty::scalar(elem);
    let (loads, masked) = (direction == Direction::Load, active == Active::Masked);
    let hardware = Hardware::new(elem, direction);
    let of = if elem == Elem::I8 { "<8 x i8>" } else { &hardware.eight };
    let mut text = match masked {
        true => "  %lanes.on = bitcast i32 %mask to <32 x i1>\n  br label %parts\nparts:\n".to_string(),
        false => String::new(),
    };
    for lane in (0..32).step_by(8) {
        if masked {
            let bits = (0xff_u32 << lane) as i32;
            text += &fill(include_str!("hardware/part.ll"), &[("lane", &lane), ("bits", &bits)]);
        }
        let picks = elements("i32", lane..lane + 8);
        let mut part = |name: &str, ty: &str, of: &str| {
            let line = format!("shufflevector <32 x {ty}> %{of}, <32 x {ty}> poison, <8 x i32> <{picks}>");
            text += &format!("  %{name}{lane} = {line}\n");
        };
        let on = if masked { format!("%m{lane}") } else { "splat (i1 true)".into() };
        part("a", "i64", "at");
        if masked {
            part("m", "i1", "lanes.on");
        }
        if loads {
            text += &hardware.load(elem, &on, &lane.to_string());
        } else {
            part("v", &t.to_string(), "values");
            text += &hardware.store(&on, &lane.to_string());
        }
        if masked {
            let before = if lane == 0 { "parts".to_string() } else { format!("over{}", lane - 8) };
            text += &format!("  br label %over{lane}\nover{lane}:\n");
            if loads {
                text += &format!(
                    "  %part.row{lane} = phi {of} [ zeroinitializer, %{before} ], [ %got{lane}, %on{lane} ]\n"
                );
            }
        }
    }
    text += &if loads { join_rows(elem, if masked { "part.row" } else { "got" }) } else { "  ret void\n".into() };
    (text, hardware.declared)
}

/// The same as [`by_hardware`] for masks, as a loop over eight lanes at a time, which is less code. It follows [`begin`].
pub(super) fn eights(elem: Elem, direction: Direction) -> (String, String) {
    let (t, hardware) = (Ty::scalar(elem), Hardware::new(elem, direction));
    let eight = format!("<8 x {t}>");
    let (content, access, end) = match direction {
        Direction::Load => (
            "zeroinitializer",
            fill(
                include_str!("hardware/eights_load.ll"),
                &[("gather", &hardware.load(elem, "%on", "")), ("eight", &eight)],
            ),
            format!("  %whole = load <32 x {t}>, ptr %list, align 64\n  ret <32 x {t}> %whole\n"),
        ),
        Direction::Store => (
            "%values",
            fill(
                include_str!("hardware/eights_store.ll"),
                &[("scatter", &hardware.store("%on", "")), ("eight", &eight)],
            ),
            "  ret void\n".into(),
        ),
    };
    let text = fill(
        include_str!("hardware/eights.ll"),
        &[("t", &t), ("content", &content), ("access", &access), ("end", &end)],
    );
    (text, hardware.declared)
}
