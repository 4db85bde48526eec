//! The size limit of kernel parameters (manual, section 5.1.6.1 and release notes).

use crate::report::{Report, lacking, since};
use crate::{Function, Module};
use margay_isa::Version;
use margay_syntax::diag::{Code, Diagnostic};

/// Before PTX ISA 1.5.
const FIRST: u64 = 256;
/// Since 1.5.
const USUAL: u64 = 4352;
/// Since 8.1 on sm_70.
const LARGE: u64 = 32_764;

/// The parameters of a kernel with their padding must fit.
pub(crate) fn kernel_parameters(module: &Module, f: &Function, report: &mut Report) {
    let mut end = 0u64;
    let mut places = Vec::with_capacity(f.params.len());
    for p in &f.params {
        let at = end.next_multiple_of(u64::from(p.align.max(1)));
        places.push((p, at, at - end));
        end = at.saturating_add(u64::from(p.size));
    }
    let known = module.version_at.is_some();
    let limit = match module.version {
        v if known && v < Version::new(1, 5) => FIRST,
        _ if lacking(module, &since(8, 1, 70)).is_none() => LARGE,
        _ => USUAL,
    };
    if end <= limit {
        if module.target.sm < 90 {
            alignment(f, end, report);
        }
        return;
    }
    let mut d = Diagnostic::new(
        Code::KernelParameterSpace,
        f.span,
        format!("`{}` has {end} bytes of parameters; the limit is {limit}", f.name),
    );
    places.sort_by_key(|(p, at, _)| (std::cmp::Reverse(p.size), *at));
    for (p, at, padding) in places.iter().take(8) {
        let padded = if *padding > 0 { format!(", {padding} of padding before it") } else { String::new() };
        d = d.label(p.span, format!("{} bytes at offset {at}{padded}", p.size));
    }
    if limit == USUAL && end <= LARGE {
        let mut needs = Vec::new();
        if module.version < Version::new(8, 1) {
            needs.push("`.version 8.1`");
        }
        if module.target.sm < 70 {
            needs.push("`.target sm_70`");
        }
        d = d.help(format!("up to {LARGE} bytes with {}", needs.join(" and ")));
    } else {
        d = d.help("pass a pointer to the data instead");
    }
    report.push(d);
}

/// Up to sm_89, parameters are in a bank of 64 KiB, after data of the driver: an alignment of this size leaves no room for
/// them.
fn alignment(f: &Function, end: u64, report: &mut Report) {
    const BANK: u64 = 64 << 10;
    let Some(p) = f.params.iter().max_by_key(|p| p.align).filter(|p| u64::from(p.align) >= BANK && end > 0) else {
        return;
    };
    let message = format!("`{}` is aligned to {} bytes, but the parameter bank has {BANK} bytes", p.name, p.align);
    let d = Diagnostic::new(Code::KernelParameterSpace, p.span, message).help("use the alignment of its type");
    report.ptxas_only(d);
}
