//! Creates the buffers, images and the parameter block that the SPECs describe.

use super::title;
use crate::{cmd::Result, exit::Failure};
use margay::{
    element::Element,
    image::{Image, ImageSpec, reference},
    npy::Array,
    picture,
    quantity::count,
    spec::{BufferSpec, Fill, Init, MapOf, Spec, split_fields},
    tensormap::MapOptions,
};
use margay_exec::tensor_map;
use margay_isa::{Kind, Type};
use margay_runtime::{Buffer, Context, Kernel, Module, Param};
use std::{path::PathBuf, sync::Arc};

/// An argument of the launch, with its buffers.
pub struct Argument {
    /// The buffer, if the argument is one.
    pub buffer: Option<HostBuffer>,
    /// Buffers inside a struct.
    inner: Vec<HostBuffer>,
}

/// A buffer or an image with its type and files.
pub struct HostBuffer {
    device: Store,
    element: Element,
    shape: Vec<u64>,
    out: Option<PathBuf>,
}

/// Where a buffer's bytes are.
enum Store {
    Buffer(Buffer),
    Image(Image),
}

/// Binds images to references of the module (`--bind NAME=SPEC`). The images are kept for their output files.
pub fn bind(context: &Arc<Context>, module: &Module, specs: &[String]) -> Result<Vec<Argument>> {
    let mut bound = Vec::new();
    for text in specs {
        let wrong = |why: String| Failure::usage(format!("`--bind {text}`: {why}"));
        let (name, spec) = text.split_once('=').ok_or_else(|| {
            wrong(
                "expected NAME=tex:..., NAME=surf:... or NAME=sampler:..., such as `image=tex:x.npy,filter=linear`"
                    .into(),
            )
        })?;
        if let Some(words) = spec.strip_prefix("sampler:") {
            let sampler = margay::image::sampler(split_fields(words)).map_err(wrong)?;
            let (name, index) = reference(name);
            module.bind_sampler(name, index, sampler).map_err(|e| wrong(e.to_string()))?;
            continue;
        }
        let Spec::Image(buffer, image) = Spec::parse(spec).map_err(wrong)? else {
            return Err(wrong("expected `tex:...`, `surf:...` or `sampler:...`".into()));
        };
        let host = HostBuffer::image(context, &buffer, &image).map_err(wrong)?;
        if let Store::Image(image) = &host.device {
            image.bind(module, name).map_err(|e| wrong(e.to_string()))?;
        }
        bound.push(Argument { buffer: Some(host), inner: Vec::new() });
    }
    Ok(bound)
}

/// Creates all arguments and the parameter block.
pub fn make(context: &Arc<Context>, kernel: &Kernel, specs: &[String]) -> Result<(Vec<Argument>, Vec<u8>)> {
    let params = kernel.params();
    if specs.len() != params.len() {
        let names: Vec<String> = params.iter().map(|p| format!("`{}` {}", p.name, wants(p))).collect();
        let list = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let (name, n, given) = (kernel.name(), params.len(), specs.len());
        let expected = count(n as u64, "argument", "arguments");
        return Err(Failure::usage(format!("kernel `{name}` takes {expected}, found {given}{list}")));
    }
    let mut block = kernel.arguments();
    let mut arguments = Vec::new();
    for (index, (text, param)) in specs.iter().zip(params).enumerate() {
        let wrong = |why: String| Failure::usage(format!("{}: `{text}`: {why}", title(index, kernel)));
        let spec = Spec::parse(text).map_err(wrong)?;
        let (argument, bytes) = make_one(context, index, &spec, param, &arguments).map_err(wrong)?;
        block.push(&bytes).map_err(|e| wrong(e.to_string()))?;
        arguments.push(argument);
    }
    let block = block.finish().map_err(Failure::usage)?;
    Ok((arguments, block))
}

/// The kinds of argument that a parameter accepts, for messages.
fn wants(param: &Param) -> String {
    if param.array { format!("({} bytes by value)", param.size) } else { param.ty.to_string() }
}

fn make_one(
    context: &Arc<Context>,
    index: usize,
    spec: &Spec,
    param: &Param,
    earlier: &[Argument],
) -> std::result::Result<(Argument, Vec<u8>), String> {
    let size = param.size as usize;
    let plain = |bytes| (Argument { buffer: None, inner: Vec::new() }, bytes);
    let by_value = |bytes: Vec<u8>| match bytes.len() == size {
        true => Ok(bytes),
        false => Err(format!("found {} bytes for a parameter of {size} bytes", bytes.len())),
    };
    match spec {
        Spec::Scalar(text) if !param.array => Element::Ptx(param.ty).parse(text).and_then(by_value).map(plain),
        Spec::Scalar(_) => {
            Err(format!("the parameter is {size} bytes by value; write `hex:...` or `{{u8=3, f64=2.5}}`"))
        }
        Spec::Typed(element, text) => element.parse(text).and_then(by_value).map(plain),
        Spec::Bytes(bytes) => by_value(bytes.clone()).map(plain),
        Spec::Struct(fields) => {
            let mut inner = Vec::new();
            let (bytes, _) = layout(context, index, fields, &mut inner)?;
            Ok((Argument { buffer: None, inner }, by_value(bytes)?))
        }
        Spec::TensorMap(options, of) => tensor_map(context, index, (options, of), param, earlier),
        Spec::Image(spec, image) => {
            if !takes_handle(param) {
                return Err(format!(
                    "a handle requires a 64-bit parameter, such as `.u64`; this one is {}",
                    wants(param)
                ));
            }
            let mut buffer = HostBuffer::image(context, spec, image)?;
            let bytes = buffer.address(context)?.to_le_bytes().to_vec();
            Ok((Argument { buffer: Some(buffer), inner: Vec::new() }, bytes))
        }
        Spec::Buffer(spec) => {
            if param.array || !is_pointer(param.ty) {
                return Err(format!(
                    "a buffer requires a pointer parameter, such as `.u64`; this one is {}",
                    wants(param)
                ));
            }
            let mut buffer = HostBuffer::new(context, &format!("argument {index}"), spec)?;
            let address = buffer.address(context)?;
            if address >> (8 * size).min(63) != 0 {
                return Err(format!("the address {address:#x} does not fit the parameter's {size} bytes"));
            }
            let bytes = address.to_le_bytes()[..size].to_vec();
            Ok((Argument { buffer: Some(buffer), inner: Vec::new() }, bytes))
        }
    }
}

/// A tensor map of a new buffer or of the buffer of an earlier argument. The map itself is passed by value, or in a
/// buffer of its own if the parameter is a pointer.
fn tensor_map(
    context: &Arc<Context>,
    index: usize,
    (options, of): (&MapOptions, &MapOf),
    param: &Param,
    earlier: &[Argument],
) -> std::result::Result<(Argument, Vec<u8>), String> {
    let made = match of {
        MapOf::Buffer(spec) => Some(HostBuffer::new(context, &format!("argument {index}"), spec)?),
        MapOf::Argument(_) => None,
    };
    let buffer = match (of, &made) {
        (MapOf::Argument(n), _) => {
            let found = earlier.get(*n).and_then(|a| a.buffer.as_ref());
            found.ok_or_else(|| format!("argument {n} is not an earlier buffer argument"))?
        }
        (_, Some(made)) => made,
        (MapOf::Buffer(_), None) => return Err("no buffer".into()),
    };
    let map = options.encode(buffer.element, &buffer.shape, buffer.linear()?.address())?;
    let mut inner = Vec::new();
    let bytes = match param.size as usize {
        tensor_map::SIZE => map.to_vec(),
        _ if is_pointer(param.ty) && !param.array => {
            let shape = vec![tensor_map::SIZE as u64];
            let spec = BufferSpec { init: Init::Made(Element::Ptx(Type::U8), shape, Fill::Zeros), out: None };
            let holder = HostBuffer::new(context, &format!("the tensor map of argument {index}"), &spec)?;
            let device = holder.linear()?;
            device.write(0, &map).map_err(|e| e.to_string())?;
            let address = device.address();
            inner.push(holder);
            address.to_le_bytes()[..param.size as usize].to_vec()
        }
        size => return Err(format!("a tensor map has 128 bytes; the parameter has {size}")),
    };
    Ok((Argument { buffer: made, inner }, bytes))
}

/// 64-bit parameters take handles: integers, and references by their own types.
fn takes_handle(param: &Param) -> bool {
    !param.array && param.size == 8 && (is_pointer(param.ty) || param.ty.kind() == Kind::Opaque)
}

fn is_pointer(ty: Type) -> bool {
    matches!(ty.bits(), 32 | 64) && matches!(ty.kind(), Kind::Bits | Kind::Unsigned | Kind::Signed)
}

/// The bytes and the alignment of a struct whose members are laid out as C does; buffers are pointers of 8 bytes.
fn layout(
    context: &Arc<Context>,
    index: usize,
    fields: &[Spec],
    buffers: &mut Vec<HostBuffer>,
) -> std::result::Result<(Vec<u8>, usize), String> {
    let (mut bytes, mut align) = (Vec::new(), 1);
    for field in fields {
        let (field_bytes, field_align) = match field {
            Spec::Typed(element, text) => (element.parse(text)?, element.bytes()),
            Spec::Bytes(bytes) => (bytes.clone(), 1),
            Spec::Struct(fields) => layout(context, index, fields, buffers)?,
            Spec::Buffer(spec) => {
                let mut buffer =
                    HostBuffer::new(context, &format!("buffer {} of argument {index}", buffers.len()), spec)?;
                let address = buffer.address(context)?.to_le_bytes().to_vec();
                buffers.push(buffer);
                (address, 8)
            }
            Spec::TensorMap(..) => return Err("a tensor map cannot be a struct member".into()),
            Spec::Image(spec, image) => {
                let mut buffer = HostBuffer::image(context, spec, image)?;
                let handle = buffer.address(context)?.to_le_bytes().to_vec();
                buffers.push(buffer);
                (handle, 8)
            }
            Spec::Scalar(text) => return Err(format!("a struct member requires a type: `s32={text}` or `f32={text}`")),
        };
        bytes.resize(bytes.len().next_multiple_of(field_align), 0);
        bytes.extend(field_bytes);
        align = align.max(field_align);
    }
    bytes.resize(bytes.len().next_multiple_of(align), 0);
    Ok((bytes, align))
}

impl HostBuffer {
    fn new(context: &Arc<Context>, name: &str, spec: &BufferSpec) -> std::result::Result<HostBuffer, String> {
        let (element, shape, data) = contents(spec)?;
        let bytes = shape.iter().product::<u64>() * element.bytes() as u64;
        let device = context.named_buffer(name, bytes).map_err(|e| e.to_string())?;
        match (data, &spec.init) {
            (Some(data), _) => device.write(0, &data).map_err(|e| e.to_string())?,
            (None, Init::Made(_, _, Fill::Nothing)) => {}
            // It is zero already, which the kernel may rely on.
            (None, _) => context.device().memory().writes().mark(device.address(), bytes),
        }
        Ok(HostBuffer { device: Store::Buffer(device), element, shape, out: spec.out.clone() })
    }

    fn image(context: &Arc<Context>, spec: &BufferSpec, image: &ImageSpec) -> std::result::Result<HostBuffer, String> {
        let (element, shape, data) = contents(spec)?;
        let bytes = shape.iter().product::<u64>() as usize * element.bytes();
        let device = Store::Image(image.make(context, element, &shape, &data.unwrap_or_else(|| vec![0; bytes]))?);
        Ok(HostBuffer { device, element, shape, out: spec.out.clone() })
    }

    /// Its linear memory.
    fn linear(&self) -> std::result::Result<&Buffer, String> {
        match &self.device {
            Store::Buffer(buffer) => Ok(buffer),
            Store::Image(_) => Err("an image is not a buffer in linear memory".into()),
        }
    }

    /// The address or the handle to pass to a kernel.
    fn address(&mut self, context: &Arc<Context>) -> std::result::Result<u64, String> {
        match &mut self.device {
            Store::Buffer(buffer) => Ok(buffer.address()),
            Store::Image(image) => image.handle(context),
        }
    }

    /// The buffer's contents.
    pub fn array(&self) -> Result<Array> {
        let data = match &self.device {
            Store::Buffer(buffer) => buffer.to_vec(),
            Store::Image(image) => image.contents(),
        }
        .map_err(Failure::usage)?;
        Ok(Array { element: self.element, shape: self.shape.clone(), data })
    }

    fn save(&self) -> Result<()> {
        let Some(path) = &self.out else { return Ok(()) };
        let array = self.array()?;
        let bytes = match path.extension().and_then(|e| e.to_str()) {
            Some("png") => picture::png(&array).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?,
            Some("ppm") => picture::ppm(&array).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?,
            Some("bin") => array.data,
            _ => array.to_bytes(),
        };
        std::fs::write(path, bytes).map_err(|e| Failure::usage(format!("cannot write {}: {e}", path.display())))
    }
}

impl Argument {
    /// Writes the requested output files.
    pub fn save(&self) -> Result<()> {
        self.buffer.iter().chain(&self.inner).try_for_each(HostBuffer::save)
    }
}

/// The initial contents of a buffer: element type, shape, and bytes (`None` for zeros).
type Contents = (Element, Vec<u64>, Option<Vec<u8>>);

fn contents(spec: &BufferSpec) -> std::result::Result<Contents, String> {
    Ok(match &spec.init {
        Init::File(path) => {
            let array = Array::load(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            (array.element, array.shape, Some(array.data))
        }
        Init::Made(element, shape, fill) => {
            let n = shape.iter().product::<u64>();
            (*element, shape.clone(), fill_bytes(*element, n, fill)?)
        }
    })
}

/// `None` for zeros: fresh memory holds them.
fn fill_bytes(element: Element, n: u64, fill: &Fill) -> std::result::Result<Option<Vec<u8>>, String> {
    Ok(match fill {
        Fill::Zeros | Fill::Nothing => None,
        Fill::Iota => Some((0..n).flat_map(|i| element.iota(i)).collect()),
        Fill::Value(text) => Some(element.parse(text)?.repeat(n as usize)),
        Fill::Random(seed) => Some((0..n).flat_map(|i| element.random(*seed, i)).collect()),
    })
}
