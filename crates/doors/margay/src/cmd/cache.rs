//! `margay cache`: shows, trims or clears the cache of compiled code.

use super::Result;
use crate::{args::CacheArgs, exit::Failure};

#[cfg(not(feature = "simd"))]
pub fn run(_: &CacheArgs) -> Result {
    Err(Failure::usage("this margay was built without the SIMD engine and has no cache of compiled code"))
}

#[cfg(feature = "simd")]
pub fn run(args: &CacheArgs) -> Result {
    use crate::{args::CacheAction, exit::Outcome, report::emit};
    use margay::quantity::{count, size};
    use margay_exec::Effort;
    use margay_llvm::cache::{self, FileKind};

    let Some(folder) = cache::folder() else {
        return Err(Failure::usage("the cache is disabled (`MARGAY_CACHE=off`), or there is no home directory"));
    };
    let limit = match &args.to {
        Some(_) if args.action != CacheAction::Trim => return Err(Failure::usage("`--to` requires `trim`")),
        Some(text) => Some(cache::parse_size(text).ok_or_else(|| {
            Failure::usage(format!("`{text}` is not a size; expected bytes, such as 300, 64K, 64M or 2G"))
        })?),
        None => None,
    };
    let removed = match args.action {
        CacheAction::Show => {
            let files = cache::files(&folder);
            let of = |kind| files.iter().filter(|f| f.kind == kind).count();
            let bytes: u64 = files.iter().map(|f| f.size).sum();
            emit(&format!(
                "{}\n{} of {}: {} of the light tier, {} fully optimized, {} to be compiled at their next launch\n",
                folder.display(),
                size(bytes),
                size(cache::bound()),
                count(of(FileKind::Code(Effort::Light)) as u64, "kernel", "kernels"),
                of(FileKind::Code(Effort::Full)),
                of(FileKind::Demand)
            ));
            return Ok(Outcome::Clean);
        }
        CacheAction::Trim => cache::trim(&folder, limit.unwrap_or_else(cache::bound)),
        CacheAction::Clear => cache::trim(&folder, 0),
    };
    let (files, bytes) = removed;
    let files = count(files as u64, "file", "files");
    emit(&format!("{}\n{files} of {} removed\n", folder.display(), size(bytes)));
    Ok(Outcome::Clean)
}
