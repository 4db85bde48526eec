//! CTA barriers with wrong counts and numbers, in divergent code, in functions, after exits (manual, section 9.7.13.1).

use super::payload::{Blame, Payload, Who};
use crate::random::Random;

pub fn make(r: &mut Random, b: &mut Payload) {
    b.blame = Blame::Anybody;
    b.fix(r.pick(&[[1, 1, 1], [2, 1, 1]]), r.pick(&[[32, 1, 1], [64, 1, 1], [96, 1, 1], [128, 1, 1], [33, 1, 1]]));
    let threads = b.threads();
    let ctas = b.shape.grid.iter().product::<u32>();
    // A full warp, a part of one, one thread, or all.
    let who = match r.below(4) {
        0 => Who::All,
        1 => Who::Lanes {
            cta: r.below(ctas as usize) as u32,
            warp: r.below(threads as usize / 32) as u32,
            mask: u32::MAX,
        },
        _ => Who::draw(r, ctas, threads),
    };
    b.who = Some(who);
    let id = r.pick(&["0", "1", "2", "15", "%r1", "%r1"]);
    let number = r.pick(&[0u32, 1, 3, 15, 16, 17, 0xffff_ffff]);
    let counted = r.pick(&[0u32, 1, 32, 33, 64, 96, 128, 1024, 0xffff_ffe0]);
    b.all(format!("mov.u32 %r1, {number}; mov.u32 %r2, {counted};"));
    let count = r.pick(&["32", "64", "96", "128", "1024", "%r2", "%r2"]);
    b.crowded = count.parse().unwrap_or(counted) < threads;
    let barrier = |r: &mut Random| match r.below(9) {
        0 => "bar.sync 0;".to_owned(),
        1 => format!("bar.sync {id};"),
        2 => format!("bar.sync {id}, {count};"),
        3 => format!("bar.arrive {id}, {count};"),
        4 => format!("barrier.sync {id}, {count};"),
        5 => format!("barrier.cta.sync.aligned {id};"),
        6 => format!("bar.red.popc.u32 %r3, {id}, %p1;"),
        7 => "barrier.sync 0;".into(),
        _ => format!("barrier.arrive {id}, {count};"),
    };
    b.all("setp.eq.u32 %p1, %lane, 1;");
    arrive(r, b, &barrier);
    // The kernel's own next barrier, which is the first, may be what completes one of these: then it orders nothing, and what threads
    // read after it is up to the schedule.
    let first = |text: &String| {
        ["sync 0", "arrive 0", "sync.aligned 0", "u32 %r3, 0"].iter().any(|barrier| text.contains(barrier))
            || number == 0 && text.contains("%r1")
    };
    b.quiet = b.module.iter().chain(&b.body).chain(&b.rest).any(first);
}

/// Lets some threads arrive at barriers that `barrier` draws, and others elsewhere or not at all.
fn arrive(r: &mut Random, b: &mut Payload, barrier: &dyn Fn(&mut Random) -> String) {
    match r.below(8) {
        // Only the threads with the payload arrive.
        0..2 => {
            let text = barrier(r);
            b.body(text);
        }
        // The others arrive at another barrier.
        2 | 3 => {
            let (one, other) = (barrier(r), barrier(r));
            b.body(format!("{one} bra.uni JOIN;"));
            b.rest(format!("@!%executes {}", other));
            b.rest("JOIN:");
        }
        // The others have exited, before or afterwards.
        4 => {
            let text = barrier(r);
            b.body(text);
            b.rest("@!%executes exit; bar.sync 0;");
        }
        5 => {
            b.body("exit;");
            let text = barrier(r);
            b.rest(text);
        }
        // In a function from which lanes return at different times.
        6 => {
            let f = b.name("meets");
            let text = r.pick(&["bar.sync 0;", "bar.sync 1, 32;", "bar.sync 2, 64;", "barrier.sync 3;"]);
            b.crowded = text.contains(',');
            b.module(format!(".func {f}(.param .b32 x) {{ .reg .b32 %w; .reg .pred %p; ld.param.b32 %w, [x]; setp.eq.u32 %p, %w, 1; @%p ret; {text} ret; }}"));
            b.body(format!(
                "{{ .param .b32 x; and.b32 %r3, %lane, {}; st.param.b32 [x], %r3; call {f}, (x); }}",
                r.pick(&[0, 1, 3])
            ));
        }
        // Repeatedly, by some threads more often than by others.
        _ => {
            let text = barrier(r);
            // Whether a warp arrives twice before the others arrive once is a race.
            b.loose = text.contains("arrive");
            b.all("mov.u32 %r4, 3;");
            b.body(format!("mov.u32 %r4, {};", r.pick(&[2, 4, 100])));
            b.rest(format!("AGAIN: {text} sub.u32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra AGAIN;"));
        }
    }
}
