//! Faults and other stops, printed like diagnostics: the CUDA line, the PTX line, the thread, the call stack.

use super::human::{Excerpt, Message, render};
use margay_exec::{Access, Fault, FaultKind, Image, Stop, Unsupported};
use margay_ir::{FuncId, SourcePlace};
use margay_runtime::StopReport;
use margay_syntax::{Origin, Severity};

/// See [`super::stop`].
pub fn stop(report: &StopReport, color: bool) -> String {
    let image = &report.image;
    match &report.stop {
        Stop::Fault(fault) => of_fault(image, fault, Severity::Error, color),
        Stop::Unsupported(u) => of_unsupported(image, u, color),
        Stop::Exhausted(e) => format!("error: out of resources: {}", e.0),
        Stop::Bug(b) => {
            format!("margay has a bug: {}\n  please report it with the command line and the PTX file", b.0)
        }
    }
}

/// See [`super::undefined`].
pub fn undefined(report: &StopReport, color: bool) -> String {
    match &report.stop {
        Stop::Fault(fault) => {
            let mut fault = fault.clone();
            fault.notes.push("PTX leaves the result undefined; the launch continued as on a GPU".into());
            of_fault(&report.image, &fault, Severity::Warning, color)
        }
        _ => stop(report, color),
    }
}

fn of_unsupported(image: &Image, u: &Unsupported, color: bool) -> String {
    let title = format!("unsupported: {}", u.what);
    place(image, u.func.zip(u.at), (Severity::Error, &title, "margay does not support this"), None, &[], color)
}

fn of_fault(image: &Image, fault: &Fault, severity: Severity, color: bool) -> String {
    let (title, here) = words(&fault.kind);
    let title = readable(&title);
    let (mut notes, mut origin) = (Vec::new(), None);
    if let Some((func, at)) = fault.at {
        let name = demangled(&image.ir.func(func).name);
        let source = &image.ir.func(func).source;
        let origins: Vec<_> = source.tree.origins(at.span.start).into_iter().filter(|o| o.line > 0).collect();
        // The innermost one whose file exists; headers with intrinsics may be missing.
        let shown = (0..origins.len()).find(|i| {
            origin = Excerpt::read(&source.name, &origins[*i]);
            origin.is_some()
        });
        notes.push(match origins.first().filter(|_| shown.is_none()) {
            Some(line) => format!("at {line}, in `{name}`"),
            None => format!("in `{name}`"),
        });
        for (i, place) in origins.iter().enumerate().skip(usize::from(shown.is_none())) {
            match shown.is_some_and(|shown| i < shown) {
                true => notes.push(format!("in code from {place}")),
                false if Some(i) != shown => notes.push(format!("inlined at {place}")),
                false => {}
            }
        }
    }
    notes.push(format!("thread {} of CTA {}", triple(fault.thread), triple(fault.cta)));
    notes.extend(fault.notes.iter().map(|note| readable(note)));
    for frame in &fault.stack {
        let (func, at) = (image.ir.func(frame.func), frame.at);
        let line = func.source.lines().line(at.span.start);
        let cuda = cuda_line(image, frame.func, at).map(|l| format!(", {l}")).unwrap_or_default();
        notes.push(format!("called by `{}` at {}:{line}{cuda}", demangled(&func.name), func.source.name));
    }
    place(image, fault.at, (severity, &title, &here), origin.as_ref(), &notes, color)
}

fn place(
    image: &Image,
    at: Option<(FuncId, SourcePlace)>,
    (severity, title, here): (Severity, &str, &str),
    origin: Option<&Excerpt>,
    notes: &[String],
    color: bool,
) -> String {
    let Some((func, at)) = at else {
        let notes: String = notes.iter().map(|n| format!("  = note: {n}\n")).collect();
        let word = if severity == Severity::Error { "error" } else { "warning" };
        return format!("{word}: {title}\n{notes}");
    };
    let labels = vec![(at.span, here)];
    let message = Message { severity, code: None, title, origin, labels, notes, suggestions: &[] };
    render(&image.ir.func(func).source, &message, color)
}

/// `saxpy.cu:5:3`, from `.loc` and `.file`.
fn cuda_line(image: &Image, func: FuncId, at: SourcePlace) -> Option<String> {
    let (file, line, column) = at.loc;
    let name = image.ir.func(func).source.files.get(&file)?;
    (line > 0).then(|| Origin { file: name, line, column }.to_string())
}

/// A name without what nvcc adds to that of a part of a variable: `tile_$_0` is one element, in a variable of its own.
fn whole(name: &str) -> &str {
    let part = name.rsplit_once("_$_").filter(|(_, n)| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()));
    part.map_or(name, |(before, _)| whole(before))
}

/// A mangled C++ name, parsed. Other names could be read as types: `x` is `long long`.
fn symbol(name: &str) -> Option<cpp_demangle::Symbol<&str>> {
    name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()).flatten()
}

/// The demangled name of a function; the name itself if it is not mangled.
pub fn demangled(name: &str) -> String {
    let found = symbol(name).and_then(|symbol| symbol.demangle().ok());
    found.unwrap_or_else(|| name.into())
}

/// A message with the mangled names between its backquotes demangled.
fn readable(message: &str) -> String {
    let part = |(i, part): (usize, &str)| if i % 2 == 1 { demangled(part) } else { part.into() };
    message.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// The last part of a name, without template arguments and parameters: what a programmer calls a function or variable.
pub fn short_name(name: &str) -> String {
    let name = whole(name);
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    // A variable of a function, `_Z4kernPi::tile`, goes by its own name.
    let own = name.rsplit("::").next().unwrap_or(name);
    let full = symbol(own).and_then(|s| s.demangle_with_options(&options).ok()).unwrap_or_else(|| own.into());
    // `void k<ns::T>(int*)::tile`: the text in angle brackets is not part of the name.
    let (mut depth, mut short) = (0u32, String::new());
    for c in full.chars() {
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ':' | ' ' if depth == 0 => short.clear(),
            _ if depth == 0 => short.push(c),
            _ => {}
        }
    }
    if short.is_empty() { full } else { short }
}

fn triple(v: [u32; 3]) -> String {
    format!("({}, {}, {})", v[0], v[1], v[2])
}

/// A one-line description of the fault.
pub fn title(kind: &FaultKind) -> String {
    readable(&words(kind).0)
}

/// The title, and the label of the location.
fn words(kind: &FaultKind) -> (String, String) {
    let access =
        |a: &Access| format!("{} of {} bytes at {:#x}", if a.write { "write" } else { "read" }, a.size, a.address);
    let both = |title: String, here: &str| (title, here.to_string());
    match kind {
        FaultKind::OutOfBounds(a) => {
            let here = match a.address.is_multiple_of(u64::from(a.size.max(1))) {
                true => "no allocation here".to_owned(),
                false => format!("no allocation here; misaligned, too: must be a multiple of {}", a.size),
            };
            both(format!("out of bounds: {} in {} memory", access(a), a.space), &here)
        }
        FaultKind::UseAfterFree(a) => {
            both(format!("use after free: {} in {} memory", access(a), a.space), "this memory was freed")
        }
        FaultKind::Misaligned(a) => both(
            format!("misaligned: {} in {} memory", access(a), a.space),
            &format!("must be a multiple of {}", a.size),
        ),
        FaultKind::ReadOnly(a) => {
            both(format!("read-only: {} in {} memory", access(a), a.space), "this memory is read-only")
        }
        FaultKind::BadFree { address, twice: true } => {
            both(format!("freed twice: `free` of {address:#x}"), "this memory was already freed")
        }
        FaultKind::BadFree { address, twice: false } => {
            both(format!("bad free: `free` of {address:#x}"), "`malloc` did not return this address")
        }
        FaultKind::Trap => both("the kernel executed `trap`".into(), ""),
        FaultKind::Breakpoint => both("the kernel executed `brkpt`".into(), ""),
        FaultKind::Assert(message, file, line, function) => {
            both(format!("{file}:{line}: {function}: assertion `{message}` failed"), "")
        }
        FaultKind::Stack(why) => both(format!("stack: {why}"), ""),
        FaultKind::BadTarget(why) => both(format!("bad target: {why}"), ""),
        FaultKind::Deadlock(who) => both(format!("deadlock: {who}"), ""),
        FaultKind::Barrier(why) => both(format!("barrier: {why}"), ""),
        FaultKind::Descriptor(why) => both(format!("bad descriptor: {why}"), ""),
        FaultKind::Hazard(why) => both(why.clone(), ""),
        FaultKind::BadHandle(why) => both(format!("bad handle: {why}"), ""),
        FaultKind::Undefined(name) => both(format!("`{name}` is called but never defined"), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn short_names_are_what_programmers_wrote() {
        let names = [
            ("_Z4kernPi", "kern"),
            ("_ZZ4kernPiiE4tile", "tile"),
            ("_ZN2ns5outer3runEPf", "run"),
            ("saxpy", "saxpy"),
            ("x", "x"),
            ("k::_ZZ1kPiE1s", "s"),
            ("_Z4kernPi::tile", "tile"),
            ("_Z4kernPi::_ZZ4kernPiE4tile", "tile"),
            ("_ZL7counter", "counter"),
            ("_ZZ1kILi4EEvPiE4tile", "tile"),
            ("_ZZ1kILi4EEvPiE4tile_0", "tile"),
            ("_ZZ4kernPiiE4tile_$_0", "tile"),
            ("table_$_1_$_2", "table"),
            ("table_$_", "table_$_"),
            ("%SP", "%SP"),
        ];
        for (mangled, short) in names {
            assert_eq!(short_name(mangled), short, "{mangled}");
        }
    }
}
