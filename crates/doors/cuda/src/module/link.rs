//! Linking (CUDA Driver API, "Module Management": `cuLink*`). Input and output are PTX; the texts are linked again when
//! the result is loaded.

use crate::{
    api::{api, report_error},
    code::{Code, Outcome},
    driver::{current, driver},
    handle::Handle,
    module::{
        Module, file_bytes,
        image::{self, JitOptions},
    },
    raw::{Host, In, Out, Text},
};
use parking_lot::Mutex;

/// `CUjitInputType`
mod input {
    pub const CUBIN: u32 = 0;
    pub const PTX: u32 = 1;
    pub const FATBIN: u32 = 2;
    pub const OBJECT: u32 = 3;
    pub const LIBRARY: u32 = 4;
}

/// How machine code begins.
const ELF: &[u8] = b"\x7fELF";

/// A link in progress.
pub struct Link {
    texts: Mutex<Vec<String>>,
    image: Mutex<Vec<u8>>,
    /// Where the program wants the errors; it keeps these values until it destroys the link, as the API specifies.
    options: JitOptions,
}

fn add(link: Handle<Link>, kind: u32, data: impl FnOnce() -> Result<Vec<u8>, Code>) -> Outcome {
    let link = driver()?.links.get(link)?;
    let texts = match kind {
        // What NVRTC and nvJitLink return in place of machine code under `margay exec` is PTX.
        input::CUBIN => {
            Some(data()?).filter(|data| !data.starts_with(ELF)).map_or(Ok(Vec::new()), |data| image::texts_of(&data))?
        }
        input::PTX | input::FATBIN => image::texts_of(&data()?)?,
        input::OBJECT | input::LIBRARY => image::inside(&data()?)?.into_iter().map(image::with_own_runtime).collect(),
        _ => Vec::new(),
    };
    if texts.is_empty() {
        let who = image::name().map_or_else(String::new, |name| format!("{name}: "));
        report_error(&format!("margay: {who}only PTX can be linked; this is machine code or NVVM's intermediate code"));
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    link.texts.lock().extend(texts);
    Ok(())
}

api! {
    6050 fn cuLinkCreate_v2(count: u32, options: In<u32>, values: Out<u64>, link: Out<Handle<Link>>) {
        current()?;
        let options = JitOptions::new(count, options, values);
        link.set(driver()?.links.add(Link { texts: Mutex::default(), image: Mutex::default(), options }))
    }
    6050 fn cuLinkAddData_v2(
        link: Handle<Link>, kind: u32, data: Host, size: usize, name: Text, count: u32, options: In<u32>,
        values: Out<u64>,
    ) {
        JitOptions::new(count, options, values).report("")?;
        image::named(name.text().ok(), || add(link, kind, || data.bytes(0, size)))
    }
    6050 fn cuLinkAddFile_v2(
        link: Handle<Link>, kind: u32, path: Text, count: u32, options: In<u32>, values: Out<u64>,
    ) {
        JitOptions::new(count, options, values).report("")?;
        image::named(path.text().ok(), || add(link, kind, || file_bytes(path)))
    }
    5050 fn cuLinkComplete(link: Handle<Link>, image: Out<u64>, size: Out<usize>) {
        let link = driver()?.links.get(link)?;
        let texts = link.texts.lock();
        if texts.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        Module::load(&current()?, &texts, &link.options)?;
        // Owned by the link until that is destroyed, as the API specifies.
        let mut made = link.image.lock();
        *made = image::pack(&texts);
        image.set(Host::of(&made).address())?;
        size.offer(made.len());
        Ok(())
    }
    5050 fn cuLinkDestroy(link: Handle<Link>) { driver()?.links.remove(link).map(drop) }
}
