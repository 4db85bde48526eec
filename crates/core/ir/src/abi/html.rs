//! `margay abi --html`: one self-contained page. Each function is a diagram: its parameters on the left, the registers and the
//! stack on the right, and a line from every piece to its location. A kernel is shown as its parameter block, sixteen bytes per row.

use super::{
    Abi, Place, Reg,
    report::{FuncReport, PieceReport, Report, Row, places},
};
use std::fmt::Write;

const STYLE: &str = "\
:root{--ink:#1b2430;--soft:#5b6878;--line:#d5dce6;--card:#fff;--page:#f4f6fa;--empty:#eef1f6}\
@media(prefers-color-scheme:dark){:root{--ink:#e7ecf3;--soft:#9aa7b8;--line:#36404e;--card:#1d242e;--page:#141a22;--empty:#28313d}}\
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:66rem;padding:1.5rem;color:var(--ink);background:var(--page)}\
h1{font-size:1.5rem;margin:.2rem 0}h2{font:600 1.05rem ui-monospace,monospace;margin:0 0 .6rem}\
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1rem 1.2rem;margin:1.2rem 0;overflow-x:auto}\
table{border-collapse:collapse;font:13px ui-monospace,monospace;margin-top:.8rem}\
td,th{padding:.2rem .9rem .2rem 0;text-align:left;border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500}\
.n,p.about,summary{color:var(--soft)}.n{margin:.5rem 0 0}svg{display:block;font:12px ui-monospace,monospace}\
svg text{fill:var(--ink)}svg .soft{fill:var(--soft)}svg .on{fill:#fff}\
.empty{fill:var(--empty);stroke:var(--line)}.frame{fill:none;stroke:var(--line)}\
.c{display:inline-block;width:.75em;height:.75em;border-radius:2px;margin-right:.5em}";

/// Colors of formals that most people can distinguish.
const COLORS: [&str; 8] = ["#2c6fb0", "#b5542a", "#2f7f57", "#7d4ba0", "#9a3b63", "#52701c", "#1f7a86", "#8a6a12"];
/// Height of a register or of a stack word in the diagram.
const CELL: u32 = 24;
/// Most words of the stack, and most rows of a kernel's block, that are drawn.
const MAX_ROWS: usize = 40;
/// Bytes in a row of a kernel's block.
const ROW: u32 = 16;

/// The page.
pub fn page(report: &Report, abi: &dyn Abi, file: &str) -> String {
    let title = format!("{}: parameters under the {} ABI", escape(file), escape(report.abi));
    let body: String = report.functions.iter().map(|f| section(f, abi)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><h1>{title}</h1>\n<p class=\"about\">{}: {}.</p>\n{body}</body></html>\n",
        escape(report.abi),
        escape(report.about)
    )
}

fn color(i: usize) -> &'static str {
    COLORS[i % COLORS.len()]
}

fn section(f: &FuncReport, abi: &dyn Abi) -> String {
    let mut out = format!("<section><h2>{}</h2>\n", escape(&f.title()));
    if let Some(why) = &f.no_plan {
        let _ = writeln!(out, "<p class=\"n\">This ABI cannot pass it: {}</p></section>", escape(why));
        return out;
    }
    out += &if f.block.is_some() { block(f) } else { diagram(f, abi) };
    out += &table(f);
    for note in f.notes() {
        let _ = writeln!(out, "<p class=\"n\">{}</p>", escape(&note));
    }
    if !f.calls.is_empty() {
        let _ = writeln!(out, "<details><summary>{} calls</summary><table>", f.calls.len());
        out += "<tr><th>line</th><th>callee</th><th>passes</th><th>gets</th></tr>\n";
        for c in &f.calls {
            let side = |list: &[super::report::Passed], arrow: &str| {
                let one = |p: &super::report::Passed| format!("{} {arrow} {}", p.what, places(&p.pieces));
                escape(&list.iter().map(one).collect::<Vec<_>>().join(", "))
            };
            let args = c.no_plan.as_ref().map_or_else(|| side(&c.args, "→"), |why| escape(why));
            let (callee, rets) = (escape(&c.callee), side(&c.rets, "←"));
            let _ = writeln!(out, "<tr><td>{}</td><td>{callee}</td><td>{args}</td><td>{rets}</td></tr>", c.line);
        }
        out += "</table></details>\n";
    }
    out + "</section>\n"
}

/// Returns, then formals, with the number that decides their color.
fn values(f: &FuncReport) -> Vec<(usize, &'static str, &Row)> {
    let rets = f.rets.iter().map(|r| ("result", r));
    rets.chain(f.params.iter().map(|r| ("argument", r))).enumerate().map(|(i, (role, r))| (i, role, r)).collect()
}

fn table(f: &FuncReport) -> String {
    if f.params.is_empty() && f.rets.is_empty() {
        return "<p class=\"n\">no parameters, no results</p>\n".into();
    }
    let mut out = String::from(
        "<table><tr><th></th><th>name</th><th>type</th><th>bytes</th><th>align</th><th>padding</th><th>place</th></tr>\n",
    );
    for (i, role, r) in values(f) {
        let taken = if r.address_taken { " (address taken)" } else { "" };
        let _ = writeln!(
            out,
            "<tr><td><span class=\"c\" style=\"background:{}\"></span>{role}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}{taken}</td></tr>",
            color(i),
            escape(&r.name),
            escape(&r.ty),
            r.size(),
            r.align,
            r.padding,
            escape(&r.places())
        );
    }
    out + "</table>\n"
}

/// The content of a register: color, name, bytes used.
type Held<'a> = Option<(usize, &'a Row, &'a PieceReport)>;

/// Width of a character of the pictures' typeface, in tenths.
const TENTHS: u32 = 73;
/// Width of a register at the call, of one at the return, and what lies between them.
const REGISTER: u32 = 200;
const BETWEEN: u32 = 6;
/// Width of a word of memory: as wide as both registers.
const WORD: u32 = 2 * REGISTER + BETWEEN;
/// Room for the lines, and for the names of places, which no line enters.
const LINES: u32 = 120;
const NAMES: u32 = 52;

fn text_width(text: &str) -> u32 {
    text.chars().count() as u32 * TENTHS / 10
}

/// Characters that fit into a width.
fn fitting(width: u32) -> usize {
    (width.saturating_sub(6) * 10 / TENTHS) as usize
}

/// Where places are drawn: registers, and below them words of memory.
struct Layout {
    /// Left edge of the places.
    places: u32,
    regs: Vec<Reg>,
    words: Words,
    /// Top of the first register and of the first word.
    reg_top: u32,
    word_top: u32,
}

impl Layout {
    fn register_y(&self, r: Reg) -> Option<u32> {
        self.regs.iter().position(|x| *x == r).map(|i| self.reg_top + i as u32 * CELL)
    }

    fn word_y(&self, offset: u32) -> Option<u32> {
        let shown = self.words.iter().take(MAX_ROWS);
        shown.into_iter().position(|w| w.0 <= offset && offset < w.0 + 8).map(|k| self.word_top + k as u32 * CELL)
    }
}

fn value_label(role: &str, row: &Row) -> String {
    format!("{} {} {}", if role == "result" { "←" } else { "→" }, row.name, row.ty)
}

/// Formals on the left, the places on the right: registers at the call and at the return, and below them the outgoing area.
fn diagram(f: &FuncReport, abi: &dyn Abi) -> String {
    let values = values(f);
    if values.is_empty() {
        return String::new();
    }
    let mut regs = abi.argument_registers();
    for p in values.iter().flat_map(|v| &v.2.pieces) {
        match p.place {
            Place::Reg(r) | Place::Behind(r) if !regs.contains(&r) => regs.push(r),
            Place::Reg(_) | Place::Behind(_) | Place::Stack { .. } | Place::Space { .. } => {}
        }
    }
    let widest = values.iter().map(|(_, role, row)| text_width(&value_label(role, row))).max().unwrap_or(0);
    let boxes = (widest + 18).clamp(140, 400);
    let below = if regs.is_empty() { 0 } else { regs.len() as u32 * CELL + 30 };
    let layout =
        Layout { places: boxes + LINES + NAMES, regs, words: memory_words(f), reg_top: 24, word_top: 24 + below };
    let mut svg = String::new();
    registers(&mut svg, &layout, &values, abi);
    memory(&mut svg, &layout, &values);
    let mut lines = String::new();
    let mut y = layout.reg_top;
    for (i, role, row) in &values {
        let _ = write!(
            svg,
            "<rect x=\"0\" y=\"{y}\" width=\"{boxes}\" height=\"{}\" rx=\"4\" fill=\"{}\"><title>{} {}</title></rect>\
             <text class=\"on\" x=\"8\" y=\"{}\">{}</text>",
            CELL - 2,
            color(*i),
            escape(&row.name),
            escape(&row.ty),
            y + 16,
            escape(&shorten(&value_label(role, row), fitting(boxes - 8)))
        );
        for p in &row.pieces {
            let target = match p.place {
                // The registers of the return value are on the right, where a line would cross those of the call: their color
                // identifies them.
                Place::Reg(_) if *role == "result" => None,
                Place::Reg(r) | Place::Behind(r) => layout.register_y(r),
                Place::Stack { offset } | Place::Space { offset } => layout.word_y(offset),
            };
            if let Some(target) = target {
                let (from, to, end) = (y + CELL / 2, target + CELL / 2, boxes + LINES);
                let middle = boxes + LINES / 2;
                let _ = write!(
                    lines,
                    "<path d=\"M{boxes} {from}C{middle} {from} {middle} {to} {end} {to}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" opacity=\".7\"/>",
                    color(*i)
                );
            }
        }
        y += CELL + 6;
    }
    let words = layout.words.len().min(MAX_ROWS) as u32;
    let height = (layout.word_top + words * CELL + 24).max(y + 4);
    let width = layout.places + WORD + 2;
    format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">{lines}{svg}</svg>\n"
    )
}

/// The registers, each as it is at the call and at the return.
fn registers(svg: &mut String, layout: &Layout, values: &[(usize, &'static str, &Row)], abi: &dyn Abi) {
    let x = layout.places;
    let second = x + REGISTER + BETWEEN;
    if layout.regs.is_empty() {
        return;
    }
    let _ = write!(svg, "<text class=\"soft\" x=\"{x}\" y=\"14\">registers at the call</text>");
    let _ = write!(svg, "<text class=\"soft\" x=\"{second}\" y=\"14\">at the return</text>");
    for (k, reg) in layout.regs.iter().enumerate() {
        let find = |role: &str| -> Held<'_> {
            let of = values.iter().filter(|v| v.1 == role);
            of.flat_map(|v| v.2.pieces.iter().map(move |p| (v.0, v.2, p)))
                .find(|(_, _, p)| matches!(p.place, Place::Reg(r) | Place::Behind(r) if r == *reg))
        };
        let y = layout.reg_top + k as u32 * CELL;
        place_name(svg, x, y, &abi.register_name(*reg));
        cell(svg, x, y, find("argument"), u32::from(reg.bytes));
        cell(svg, second, y, find("result"), u32::from(reg.bytes));
    }
}

fn place_name(svg: &mut String, x: u32, y: u32, name: &str) {
    let _ = write!(svg, "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>", x - 6, y + 16);
}

/// The words of the outgoing area.
fn memory(svg: &mut String, layout: &Layout, values: &[(usize, &'static str, &Row)]) {
    let (x, top, words) = (layout.places, layout.word_top, &layout.words);
    if words.is_empty() {
        return;
    }
    let space = values.iter().flat_map(|v| &v.2.pieces).any(|p| matches!(p.place, Place::Space { .. }));
    let what = if space { "parameter space" } else { "stack" };
    let _ = write!(svg, "<text class=\"soft\" x=\"{x}\" y=\"{}\">{what}</text>", top - 10);
    for (k, word) in words.iter().take(MAX_ROWS).enumerate() {
        let y = top + k as u32 * CELL;
        place_name(svg, x, y, &format!("+{}", word.0));
        let _ = write!(svg, "<rect class=\"empty\" x=\"{x}\" y=\"{y}\" width=\"{WORD}\" height=\"{}\"/>", CELL - 2);
        for (i, from, to, name) in &word.1 {
            let (x, w) = (x + from * WORD / 8, (to - from) * WORD / 8);
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>\
                 <text class=\"on\" x=\"{}\" y=\"{}\">{}</text>",
                CELL - 2,
                color(*i),
                escape(name),
                x + 4,
                y + 16,
                escape(&shorten(name, fitting(w)))
            );
        }
    }
    if words.len() > MAX_ROWS {
        let y = top + MAX_ROWS as u32 * CELL + 14;
        let _ = write!(svg, "<text class=\"soft\" x=\"{x}\" y=\"{y}\">… {} more words</text>", words.len() - MAX_ROWS);
    }
}

/// A register: filled as far as it is used.
fn cell(svg: &mut String, x: u32, y: u32, held: Held<'_>, bytes: u32) {
    let height = CELL - 2;
    let _ = write!(svg, "<rect class=\"empty\" x=\"{x}\" y=\"{y}\" width=\"{REGISTER}\" height=\"{height}\"/>");
    let Some((i, row, p)) = held else { return };
    let pointer = matches!(p.place, Place::Behind(_));
    let used = if pointer { bytes } else { (p.bytes.end - p.bytes.start).min(bytes) };
    let label = match (pointer, row.pieces.len()) {
        (true, _) => format!("→{}", row.name),
        (_, 1) => row.name.clone(),
        _ => format!("{}+{}", row.name, p.bytes.start),
    };
    let width = REGISTER * used / bytes.max(1);
    // A name that does not fit in a part of a register is written next to it.
    let inside = text_width(&label) + 8 <= width || width == REGISTER;
    let (class, at, room) = if inside { ("on", x + 4, width) } else { ("", x + width + 4, REGISTER - width) };
    let _ = write!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"><title>{} bytes {}..{}</title></rect>\
         <text class=\"{class}\" x=\"{at}\" y=\"{}\">{}</text>",
        color(i),
        escape(&row.name),
        p.bytes.start,
        p.bytes.end,
        y + 16,
        escape(&shorten(&label, fitting(room)))
    );
}

/// The outgoing area in words of eight bytes that hold anything: offset, and (color, from, to, name) in it.
type Words = Vec<(u32, Vec<(usize, u32, u32, String)>)>;

fn memory_words(f: &FuncReport) -> Words {
    let mut words: Words = Vec::new();
    for (i, _, row) in values(f) {
        for p in &row.pieces {
            let (Place::Stack { offset } | Place::Space { offset }) = p.place else { continue };
            let end = offset.saturating_add((p.bytes.end - p.bytes.start).max(1));
            let mut at = offset;
            while at < end && words.len() <= 4 * MAX_ROWS {
                let (word, stop) = (at / 8 * 8, end.min(at / 8 * 8 + 8));
                let part = (i, at - word, stop - word, row.name.clone());
                match words.iter_mut().find(|w| w.0 == word) {
                    Some(w) => w.1.push(part),
                    None => words.push((word, vec![part])),
                }
                at = stop;
            }
        }
    }
    words.sort_by_key(|w| w.0);
    words
}

/// A kernel's parameter block.
fn block(f: &FuncReport) -> String {
    let Some(size) = f.block.map(|b| b.size).filter(|s| *s > 0) else { return String::new() };
    let mut svg = String::new();
    let rows = size.div_ceil(ROW);
    let shown = rows.min(MAX_ROWS as u32);
    let byte = 36;
    for k in 0..shown {
        let y = 20 + k * CELL;
        let _ = write!(svg, "<text class=\"soft\" x=\"44\" y=\"{}\" text-anchor=\"end\">+{}</text>", y + 16, k * ROW);
        let width = byte * ROW.min(size - k * ROW);
        let _ = write!(svg, "<rect class=\"empty\" x=\"50\" y=\"{y}\" width=\"{width}\" height=\"{}\"/>", CELL - 2);
    }
    for b in 0..ROW {
        let _ = write!(
            svg,
            "<text class=\"soft\" x=\"{}\" y=\"12\" text-anchor=\"middle\">{b}</text>",
            50 + b * byte + byte / 2
        );
    }
    for (i, row) in f.params.iter().enumerate() {
        let Some(Place::Space { offset }) = row.pieces.first().map(|p| p.place) else { continue };
        let (mut at, end) = (offset, offset.saturating_add(row.bytes));
        while at < end && at / ROW < shown {
            let stop = end.min(at / ROW * ROW + ROW);
            let (x, y, w) = (50 + at % ROW * byte, 20 + at / ROW * CELL, (stop - at) * byte);
            let label = if at == offset { shorten(&row.name, fitting(w)) } else { String::new() };
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{} at {offset}, {} bytes</title></rect>\
                 <text class=\"on\" x=\"{}\" y=\"{}\">{}</text>",
                w - 1,
                CELL - 2,
                color(i + f.rets.len()),
                escape(&row.name),
                row.bytes,
                x + 4,
                y + 16,
                escape(&label)
            );
            at = stop;
        }
    }
    let mut height = 24 + shown * CELL;
    if shown < rows {
        let _ = write!(svg, "<text class=\"soft\" x=\"50\" y=\"{}\">… up to +{size}</text>", height + 8);
        height += 16;
    }
    format!("<svg width=\"640\" height=\"{height}\" viewBox=\"0 0 640 {height}\" role=\"img\">{svg}</svg>\n")
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_string()
    } else {
        text.chars().take(most.saturating_sub(1)).collect::<String>() + "…"
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
