//! `margay abi --html`: one self-contained page, with every block of bytes drawn to scale.

use super::model::{Entry, Row};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1c2430}\
h2{margin:2.2rem 0 .4rem;font:600 17px ui-monospace,monospace}table{border-collapse:collapse;font:13px ui-monospace,monospace}\
td,th{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #e3e7ee}th{color:#5a6779;font-weight:500}\
.bytes{display:flex;margin:.6rem 0;font:12px ui-monospace,monospace;overflow-x:auto}\
.piece{border:1px solid #fff;color:#fff;padding:.35rem .3rem;min-width:1.1rem;box-sizing:border-box;white-space:nowrap;overflow:hidden}\
.pad{background:repeating-linear-gradient(45deg,#dfe4ec 0 4px,#f2f4f8 4px 8px);color:#5a6779}\
.note{color:#5a6779}";

const COLOURS: [&str; 6] = ["#2f6f9f", "#7a4fa3", "#2e7d5b", "#b0562c", "#96406b", "#596b1f"];

/// The page.
pub fn page(file: &str, abi: &str, entries: &[Entry]) -> String {
    let title = format!("{}: parameters under the {} ABI", escape(file), escape(abi));
    let body: String = entries.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><h1>{title}</h1>\n{body}</body></html>\n"
    )
}

fn section(entry: &Entry) -> String {
    let mut out = format!("<h2>{} {}</h2>\n", entry.kind, escape(&entry.name));
    if let Some(why) = &entry.no_plan {
        return out + &format!("<p class=\"note\">This ABI cannot carry it: {}</p>\n", escape(why));
    }
    out += &picture(entry);
    if !entry.rows.is_empty() {
        let cell = |tag: &str, text: &str| format!("<{tag}>{}</{tag}>", escape(text));
        let header: String = Row::header(entry.is_kernel).iter().map(|h| cell("th", h)).collect();
        let row = |r: &Row| {
            format!("<tr>{}</tr>\n", r.cells(entry.is_kernel).iter().map(|c| cell("td", c)).collect::<String>())
        };
        out += &format!("<table><tr>{header}</tr>\n{}</table>\n", entry.rows.iter().map(row).collect::<String>());
    }
    out + &entry.notes.iter().map(|n| format!("<p class=\"note\">{}</p>\n", escape(n))).collect::<String>()
}

/// One bar: every piece as wide as it has bytes, with padding hatched.
fn picture(entry: &Entry) -> String {
    let mut bar = String::new();
    for (i, row) in entry.rows.iter().enumerate() {
        if row.padding > 0 {
            bar += &piece("pad", row.padding, "", &format!("{} bytes of padding", row.padding), "");
        }
        for (range, place) in &row.pieces {
            let bytes = (range.end - range.start).max(1);
            let label = format!("{} {place}", row.name);
            let colour = format!("background:{}", COLOURS[i % COLOURS.len()]);
            bar += &piece("", bytes, &label, &format!("{} bytes {}..{}", row.name, range.start, range.end), &colour);
        }
    }
    if bar.is_empty() { bar } else { format!("<div class=\"bytes\">{bar}</div>\n") }
}

fn piece(class: &str, bytes: u32, label: &str, hint: &str, style: &str) -> String {
    let (label, hint, width) = (escape(label), escape(hint), bytes.min(64) * 18);
    format!("<div class=\"piece {class}\" title=\"{hint}\" style=\"width:{width}px;{style}\">{label}</div>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
