//! Every pure row of the table has its lane function.

use crate::harness::widths;
use margay_exec::{Convergence, LANES, Row, lanes, only_converges, sem::pure};
use margay_isa::{Effect, Mod, Opcode, Slot, Variant, Word, resolve};

/// Every choice of a slot.
fn choices(slot: &Slot) -> Vec<Option<Word>> {
    let mods = |of: &[Mod]| of.iter().map(|m| Some(Word::Mod(*m))).collect::<Vec<_>>();
    match slot {
        Slot::One(m) => vec![Some(Word::Mod(*m))],
        Slot::Req(c) => mods(c.of),
        Slot::Opt(c) => [vec![None], mods(c.of)].concat(),
        Slot::Type(_, ts) => ts.iter().map(|t| Some(Word::Type(*t))).collect(),
        Slot::OptType(_, ts) => std::iter::once(None).chain(ts.iter().map(|t| Some(Word::Type(*t)))).collect(),
    }
}

/// Every variant of a form.
pub fn variants(op: Opcode, form: &'static margay_isa::Form) -> Vec<Variant> {
    let mut lists: Vec<Vec<Word>> = vec![Vec::new()];
    for slot in form.slots {
        let choices = choices(slot);
        lists = lists.iter().flat_map(|l| choices.iter().map(move |c| l.iter().copied().chain(*c).collect())).collect();
    }
    lists
        .into_iter()
        .filter_map(|words| resolve(op, &words, |f| std::ptr::eq(f.row(), form)).ok())
        .filter(|found| std::ptr::eq(found.variant.row(), form))
        .map(|found| found.variant)
        .collect()
}

#[test]
fn every_pure_variant_has_a_total_function() {
    let mut missing = Vec::new();
    let mut count = 0;
    for op in Opcode::ALL.iter().copied().filter(|op| op.row().effect == Effect::Pure) {
        for v in op.row().forms.iter().flat_map(|f| variants(op, f)) {
            let (src, dst) = widths(&v);
            count += 1;
            let Some(f) = pure(&v, &src, &dst) else {
                // ptxas takes `testp` without a property and makes no instruction of it; nor does lowering.
                let meaningless = op == Opcode::Testp && v.words.len() == 1;
                // What these compute is not settled: every engine refuses them by name.
                if !meaningless && !margay_exec::unmodeled(&v) {
                    missing.push(v.to_string());
                }
                continue;
            };
            for fill in [0, u32::MAX, 0x7fc0_0001, 0x8000_0000, 0x0001_8001] {
                let rows: Vec<Vec<Row>> = src.iter().map(|b| vec![Row([fill; LANES]); lanes::rows(*b)]).collect();
                let slices: Vec<&[Row]> = rows.iter().map(Vec::as_slice).collect();
                let mut out = vec![Row::ZERO; dst.iter().map(|b| lanes::rows(*b)).sum()];
                f(&v, u32::MAX, &slices, &mut out);
            }
        }
    }
    assert!(count > 1000);
    assert!(missing.is_empty(), "{} of {count} variants lack semantics: {missing:#?}", missing.len());
}

/// `.sync`: "the executing thread waits until all threads in the warp execute the same instruction", or those of a member mask (manual,
/// sections 9.7.9.6, 9.7.13.2, 9.7.14 to 9.7.16, 9.7.19.5). Barriers of the CTA count threads.
#[test]
fn every_form_with_sync_waits_for_its_warp() {
    let mut waits = 0;
    for op in Opcode::ALL {
        for v in op.row().forms.iter().flat_map(|f| variants(*op, f)) {
            use Opcode::{Bar, Barrier, Elect, Fabric, Match, Redux, Shfl, Vote};
            let sync = v.has(Mod::Sync);
            let expected = match op {
                Bar | Barrier if !v.has(Mod::Warp) => Convergence::Independent,
                Bar | Elect | Fabric | Match | Redux | Shfl | Vote if sync => Convergence::Members,
                _ if sync => Convergence::Warp,
                _ => Convergence::Independent,
            };
            assert_eq!(Convergence::of(&v), expected, "{v}");
            let whole = expected == Convergence::Warp;
            assert!(whole || !only_converges(&v), "{v}");
            waits += u32::from(whole);
        }
    }
    assert!(waits > 1000);
}
