//! The library: functions that the code of many kernels calls, such as gathers.
//!
//! The light tier compiles them together with the first kernels that call them, since launches wait for these. Full code links them, and so
//! does light code once several kernels have called them: each is compiled once, with full effort, and kept in the cache like a kernel.

use crate::code::{cache, compile::compile_text, compile::trailer, key::CacheKey, link::Linked};
use margay_exec::{Effort, Log, NoCode};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Definitions shorter than this many lines, with what they call, are part of every kernel's module: a module of its own costs more, about
/// as much as 50 lines.
const SHORT: usize = 30;
/// Kernels of this process whose light code brings a function of its own, before the function is compiled for all further ones.
const BRINGING: u32 = 2;

/// A function of the library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LibraryFunction {
    pub symbol: String,
    pub key: CacheKey,
}

/// Linked library functions. Callers must hold this.
pub type Library = Vec<(LibraryFunction, Arc<Linked>)>;

/// A library function with the text of its module.
pub struct Source {
    function: LibraryFunction,
    text: String,
}

/// What the functions of a kernel need beside themselves, taken apart, by name: declarations, constants, and definitions.
#[derive(Default)]
pub struct Texts<'t> {
    declarations: BTreeMap<&'t str, &'t str>,
    constants: BTreeMap<&'t str, &'t str>,
    definitions: BTreeMap<&'t str, String>,
}

/// The names `@…` that a text mentions.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').map(|(at, _)| {
        let name = &text[at + 1..];
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_').unwrap_or(name.len());
        &name[..end]
    })
}

impl<'t> Texts<'t> {
    /// Takes apart texts as emitters write them: declarations, one a line, constants, and definitions, followed by the declarations that
    /// they need.
    pub fn new(declared: &'t BTreeSet<String>) -> Texts<'t> {
        let mut texts = Texts::default();
        for text in declared {
            let mut lines = text.lines();
            while let Some(line) = lines.next() {
                let Some(name) = names(line).next() else { continue };
                if line.starts_with("declare") {
                    texts.declarations.insert(name, line);
                } else if line.starts_with('@') {
                    texts.constants.insert(name, line);
                } else if line.starts_with("define") {
                    let mut definition = format!("{line}\n");
                    for line in lines.by_ref() {
                        definition.push_str(line);
                        definition.push('\n');
                        if line == "}" {
                            break;
                        }
                    }
                    texts.definitions.insert(name, definition);
                }
            }
        }
        texts
    }

    /// The definitions that a text needs, directly or not, but those in `without`.
    fn needed(&self, text: &str, without: &BTreeSet<&'t str>) -> BTreeSet<&'t str> {
        let mut needed = BTreeSet::new();
        let mut work: Vec<&str> = vec![text];
        while let Some(text) = work.pop() {
            for name in names(text) {
                let Some((name, definition)) = self.definitions.get_key_value(name) else { continue };
                if !without.contains(name) && needed.insert(*name) {
                    work.push(definition);
                }
            }
        }
        needed
    }

    /// Definitions, and the declarations and constants that they and `text` need.
    fn assemble(&self, text: &str, definitions: &BTreeSet<&str>) -> String {
        let bodies: String = definitions.iter().map(|name| self.definitions[name].as_str()).collect();
        let mentioned: BTreeSet<&str> = names(text).chain(names(&bodies)).collect();
        let mut out = String::with_capacity(bodies.len() + 4096);
        for (_, line) in self.declarations.iter().chain(&self.constants).filter(|(name, _)| mentioned.contains(*name)) {
            out.push_str(line);
            out.push('\n');
        }
        out.push_str(&bodies);
        out
    }

    /// The functions that `bodies` and the definitions in its module call of the library, if all long definitions are there.
    pub fn library(&self, bodies: &str) -> Vec<Source> {
        let none = BTreeSet::new();
        let all = self.needed(bodies, &none);
        let lines = |name: &&str| {
            let needed = self.needed(&self.definitions[name], &none);
            needed.iter().chain([name]).map(|n| self.definitions[n].lines().count()).sum::<usize>()
        };
        let long: BTreeSet<&str> = all.into_iter().filter(|name| lines(name) >= SHORT).collect();
        let own = self.needed(bodies, &long);
        let mut called: BTreeSet<&str> = names(bodies).collect();
        own.iter().for_each(|name| called.extend(names(&self.definitions[name])));
        long.intersection(&called).map(|name| self.source(name)).collect()
    }

    fn source(&self, name: &str) -> Source {
        // Other objects call it.
        let public = self.definitions[name].replacen("define internal ", "define ", 1);
        let mut needed = self.needed(&public, &BTreeSet::new());
        needed.remove(name);
        let text = self.assemble(&public, &needed) + &public + trailer();
        Source { function: LibraryFunction { symbol: name.to_owned(), key: CacheKey::of_text(&text) }, text }
    }

    /// The module of `bodies`, which links the library functions of these names.
    pub fn module(&self, bodies: &str, library: &[&str]) -> String {
        let mut out = String::new();
        let mut linked = BTreeSet::new();
        for symbol in library {
            let Some((name, definition)) = self.definitions.get_key_value(symbol) else { continue };
            linked.insert(*name);
            let header = definition.lines().next().unwrap_or_default();
            let header = header.replacen("define internal ", "declare ", 1);
            out.push_str(header.trim_end_matches([' ', '{']));
            out.push('\n');
        }
        let own = self.needed(bodies, &linked);
        out + &self.assemble(bodies, &own) + bodies + trailer()
    }
}

/// What this process knows of a library function.
#[derive(Default)]
struct Known {
    linked: Option<Arc<Linked>>,
    /// Kernels whose light code brings one of its own.
    bringing: u32,
}

static KNOWN: Mutex<Option<HashMap<CacheKey, Known>>> = Mutex::new(None);

/// Reads or changes what is known of a function.
fn known<T>(key: CacheKey, of: impl FnOnce(&mut Known) -> T) -> T {
    let mut all = KNOWN.lock();
    of(all.get_or_insert_default().entry(key).or_default())
}

impl LibraryFunction {
    /// Finds the function's code in this process or in the cache.
    pub fn find(&self) -> Option<Arc<Linked>> {
        if let Some(linked) = known(self.key, |known| known.linked.clone()) {
            return Some(linked);
        }
        let entry = cache::find(self.key, Effort::Full)?;
        Some(self.keep(Linked::object(&entry.object, &Library::new()).ok()?))
    }

    fn keep(&self, linked: Linked) -> Arc<Linked> {
        known(self.key, |known| known.linked.get_or_insert_with(|| Arc::new(linked)).clone())
    }
}

impl Source {
    /// Finds or compiles the function. LLVM is loaded.
    fn ready(&self) -> Result<Arc<Linked>, NoCode> {
        if let Some(linked) = self.function.find() {
            return Ok(linked);
        }
        let claim = cache::claim(self.function.key, Effort::Full);
        if claim.waited
            && let Some(linked) = self.function.find()
        {
            return Ok(linked);
        }
        // The kernel's log takes all of this as one step.
        let (object, _) = compile_text(&self.text, u32::MAX, Effort::Full, &Log::default()).map_err(NoCode::Bug)?;
        let linked = Linked::object(&object, &Library::new()).map_err(NoCode::Bug)?;
        cache::store(self.function.key, Effort::Full, &[], &object);
        Ok(self.function.keep(linked))
    }
}

/// The library functions that a kernel's code of a tier links; see the module's documentation. LLVM is loaded.
pub fn link(sources: &[Source], effort: Effort) -> Result<Library, NoCode> {
    let mut library = Library::new();
    for source in sources {
        let bring = || {
            known(source.function.key, |known| {
                known.bringing += 1;
                known.bringing <= BRINGING
            })
        };
        let linked = match source.function.find() {
            Some(linked) => linked,
            None if effort == Effort::Light && bring() => continue,
            None => source.ready()?,
        };
        library.push((source.function.clone(), linked));
    }
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(name: &str, calls: &str) -> String {
        let body = "  %x = add i32 %a, 1\n".repeat(SHORT);
        format!(
            "define internal i32 @{name}(i32 %a) #1 {{\nentry:\n{body}  call void @{calls}()\n  ret i32 0\n}}\ndeclare void @llvm.{name}()"
        )
    }

    /// Long definitions are modules of their own; short ones are copied to those that call them.
    #[test]
    fn long_definitions_are_in_the_library() {
        let short = "define internal void @short() #1 {\n  call void @llvm.short()\n  ret void\n}\n";
        let declared = BTreeSet::from([
            long("a", "short"),
            long("b", "a"),
            format!("{short}declare void @llvm.short()"),
            "@k = internal constant i8 0".into(),
        ]);
        let texts = Texts::new(&declared);
        let calls = "define i32 @f() {\n  call i32 @b(i32 0)\n  ret i32 0\n}\n";
        let library = texts.library(calls);
        assert_eq!(library.len(), 1, "`a` is called by `b` alone");
        let text = &library[0].text;
        assert!(text.contains("define i32 @b(") && text.contains("define internal i32 @a("), "{text}");
        assert!(text.contains("define internal void @short(") && text.contains("declare void @llvm.short()"), "{text}");
        assert!(!text.contains("@k"), "{text}");
        let module = |bodies: &str, library: &[&str]| texts.module(bodies, library).replace(trailer(), "");
        assert_eq!(module(calls, &["b"]), format!("declare i32 @b(i32 %a) #1\n{calls}"));
        let whole = module(calls, &[]);
        for header in ["internal i32 @a(", "internal i32 @b(", "internal void @short("] {
            assert_eq!(whole.matches(header).count(), 1, "{header}: {whole}");
        }
        let other = "  call void @short()\n  load i8, ptr @k\n";
        assert!(texts.library(other).is_empty());
        let own = "declare void @llvm.short()\n@k = internal constant i8 0\n";
        assert_eq!(module(other, &[]), format!("{own}{short}{other}"));
    }
}
