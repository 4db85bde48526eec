//! The syntax of textures, samplers and surfaces in arguments: `filter=linear address=wrap normalized`.
//!
//! An array of numbers becomes an image. Its shape is `[w]`, `[h,w]` or `[d,h,w]`, unless options say otherwise:
//! ```text
//! channels=4      the last extent counts channels (1, 2 or 4)
//! layers, cube    the first extent counts layers, or faces (six a cube)
//! samples         the last extent (before channels) counts samples
//! size=8x4x2      extents of texels; then the array's own shape does not matter. layers=N, levels=N and samples=N add to
//!                 it; levels are consecutive, the finest first
//! unorm, snorm    integers are fractions of their largest value
//! linear          linear memory and no array (textures of one level only)
//! ```
//! Others set how it is sampled: `filter=point|linear`, `mip=point|linear`, `address=wrap|mirror|clamp|border` (for single dimensions
//! `wrap/clamp/border`), `normalized` (coordinates from 0 to 1), `read=normalized`, `border=R/G/B/A`, `lod=LOW/HIGH`,
//! `bias=X`, `compare=less|equal|...`, `unnormalized` (samplers of their own).

use crate::element::{Element, parse_f64};
pub use margay_exec::texture::Sampler;
use margay_exec::texture::{Address, Compare, Extent, Filter, Format, Scalar, Texels};
use margay_isa::{Kind, Type};
use margay_runtime::{Array, Buffer, Context, Error, Module, SurfaceObject, TextureObject, TextureOptions};
use std::sync::Arc;

/// The kind of object that an image becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A texture.
    Texture,
    /// A surface.
    Surface,
}

/// The parsed options of an image.
#[derive(Clone, PartialEq, Debug)]
pub struct ImageSpec {
    /// The kind of object.
    pub role: Role,
    /// How a texture samples it.
    pub options: TextureOptions,
    channels: u32,
    layered: bool,
    cube: bool,
    sampled: bool,
    size: Option<[u32; 3]>,
    layers: u32,
    levels: u32,
    samples: u32,
    fraction: Option<Scalar>,
    linear: bool,
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a valid number here"))
}

fn float(text: &str) -> Result<f32, String> {
    parse_f64(text).map(|v| v as f32).ok_or_else(|| format!("`{text}` is not a number"))
}

fn choice<T: Copy>(word: &str, text: &str, of: &[(&str, T)]) -> Result<T, String> {
    let names = || of.iter().map(|(n, _)| *n).collect::<Vec<_>>().join("|");
    of.iter().find(|(n, _)| *n == text).map(|(_, v)| *v).ok_or_else(|| format!("`{word}={text}`: expected {}", names()))
}

const FILTERS: &[(&str, Filter)] = &[("point", Filter::Point), ("nearest", Filter::Point), ("linear", Filter::Linear)];
const MODES: &[(&str, Address)] =
    &[("wrap", Address::Wrap), ("mirror", Address::Mirror), ("clamp", Address::Clamp), ("border", Address::Border)];
const COMPARES: &[(&str, Compare)] = &[
    ("never", Compare::Never),
    ("less", Compare::Less),
    ("equal", Compare::Equal),
    ("less_equal", Compare::LessEqual),
    ("greater", Compare::Greater),
    ("not_equal", Compare::NotEqual),
    ("greater_equal", Compare::GreaterEqual),
    ("always", Compare::Always),
];

/// Parses a sampling option; false if it is not one.
fn sampling(s: &mut Sampler, word: &str, value: &str) -> Result<bool, String> {
    match word {
        "filter" => s.filter = choice(word, value, FILTERS)?,
        "mip" => s.level_filter = choice(word, value, FILTERS)?,
        "address" => {
            let modes = value.split('/').map(|v| choice(word, v, MODES)).collect::<Result<Vec<_>, _>>()?;
            s.address = std::array::from_fn(|d| modes[d.min(modes.len() - 1)]);
        }
        "border" => {
            let parts = value.split('/').map(float).collect::<Result<Vec<_>, _>>()?;
            s.border = std::array::from_fn(|k| parts.get(k).copied().unwrap_or(0.0));
        }
        "lod" => {
            let (low, high) = value.split_once('/').ok_or_else(|| format!("`lod={value}`: expected `lod=LOW/HIGH`"))?;
            s.levels = (float(low)?, float(high)?);
        }
        "bias" => s.bias = float(value)?,
        "compare" => s.compare = choice(word, value, COMPARES)?,
        "unnormalized" => s.force_unnormalized = true,
        _ => return Ok(false),
    }
    Ok(true)
}

/// A sampler of its own.
pub fn sampler<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Sampler, String> {
    let mut sampler = Sampler::default();
    for text in words {
        let (word, value) = text.split_once('=').unwrap_or((text, ""));
        if !sampling(&mut sampler, word, value)? {
            return Err(format!(
                "`{text}` is not a sampler option; expected filter, mip, address, border, lod, bias, compare or unnormalized"
            ));
        }
    }
    Ok(sampler)
}

impl ImageSpec {
    /// Reads the options after `tex` or `surf`.
    pub fn parse<'a>(role: Role, words: impl IntoIterator<Item = &'a str>) -> Result<ImageSpec, String> {
        let mut spec = ImageSpec {
            role,
            options: TextureOptions::default(),
            channels: 1,
            layered: false,
            cube: false,
            sampled: false,
            size: None,
            layers: 0,
            levels: 1,
            samples: 1,
            fraction: None,
            linear: false,
        };
        for text in words {
            let (word, value) = text.split_once('=').unwrap_or((text, ""));
            match word {
                "channels" => spec.channels = number(value)?,
                "layers" if value.is_empty() => spec.layered = true,
                "layers" => spec.layers = number(value)?,
                "cube" => spec.cube = true,
                "samples" if value.is_empty() => spec.sampled = true,
                "samples" => spec.samples = number(value)?,
                "levels" => spec.levels = number(value)?,
                "size" => {
                    let parts = value.split('x').map(number).collect::<Result<Vec<u32>, _>>()?;
                    spec.size = Some(std::array::from_fn(|d| parts.get(d).copied().unwrap_or(0)));
                }
                "unorm" => spec.fraction = Some(Scalar::Unorm),
                "snorm" => spec.fraction = Some(Scalar::Snorm),
                "linear" => spec.linear = true,
                "normalized" => spec.options.normalized = true,
                "read" => {
                    spec.options.normalized_read = choice(word, value, &[("normalized", true), ("element", false)])?;
                }
                _ if role == Role::Texture && sampling(&mut spec.options.sampler, word, value)? => {}
                _ => {
                    return Err(format!(
                        "`{text}` is not an image option; expected channels, layers, cube, samples, levels, size, unorm, snorm, linear, \
                         or for textures filter, mip, address, normalized, read, border, lod, bias or compare"
                    ));
                }
            }
        }
        Ok(spec)
    }

    fn format(&self, element: Element) -> Result<Format, String> {
        let Element::Ptx(ty) = element else { return Err("an image consists of integers or floats".into()) };
        let scalar = self.fraction.unwrap_or(match ty.kind() {
            Kind::Float => Scalar::Float,
            Kind::Signed => Scalar::Signed,
            _ => Scalar::Unsigned,
        });
        let format = Format { scalar, bits: ty.bits() as u8, channels: self.channels as u8 };
        let odd = matches!(ty, Type::Bf16) || ty.bits() > 32 || self.channels > 4;
        (!odd && format.exists()).then_some(format).ok_or_else(|| {
            format!(
                "an image cannot have {} channels of {ty}; expected 1, 2 or 4 channels of 8, 16 or 32 bits",
                self.channels
            )
        })
    }

    /// Extents, from the options or from the array's shape.
    fn extent(&self, shape: &[u64]) -> Result<Extent, String> {
        if let Some([w, h, d]) = self.size {
            let (levels, samples) = (self.levels, self.samples);
            let layers = if self.cube { self.layers.max(6) } else { self.layers };
            return Ok(Extent { layers, cube: self.cube, levels, samples, ..Extent::new(w, h, d) });
        }
        let mut rest: Vec<u32> =
            shape.iter().map(|n| u32::try_from(*n).map_err(|_| "an extent is too large")).collect::<Result<_, _>>()?;
        let short = || format!("an array of {} dimensions is too small for this image", shape.len());
        if self.channels > 1 && rest.pop() != Some(self.channels) {
            return Err(format!("`channels={}` does not match the last extent", self.channels));
        }
        let samples = if self.sampled { rest.pop().ok_or_else(short)? } else { 1 };
        let layers = if self.layered || self.cube {
            if rest.is_empty() {
                return Err(short());
            }
            rest.remove(0)
        } else {
            0
        };
        let [w, h, d] = match rest[..] {
            [w] => [w, 0, 0],
            [h, w] => [w, h, 0],
            [d, h, w] if layers == 0 => [w, h, d],
            _ => return Err(format!("an array of {} dimensions cannot be such an image", shape.len())),
        };
        Ok(Extent { layers, cube: self.cube, samples, ..Extent::new(w, h, d) })
    }

    /// Creates the image on the device; `data` holds all levels.
    pub fn make(&self, context: &Arc<Context>, element: Element, shape: &[u64], data: &[u8]) -> Result<Image, String> {
        let (format, extent) = (self.format(element)?, self.extent(shape)?);
        let text = |e: Error| e.to_string();
        if self.linear {
            let buffer = context.buffer(data.len() as u64).map_err(text)?;
            buffer.write(0, data).map_err(text)?;
            let pitch = u64::from(extent.width) * u64::from(format.bytes());
            let made = context.linear_texels(buffer.address(), format, extent.width, extent.height, pitch);
            let texels = made.map_err(text)?;
            return Ok(Image { spec: self.clone(), store: Store::Linear(buffer, texels), handle: None });
        }
        let array = context.array(format, extent).map_err(text)?;
        let levels: Vec<u64> = (0..array.texels().levels()).map(|i| array.level_bytes(i)).collect();
        if levels.iter().sum::<u64>() != data.len() as u64 {
            let wanted = levels.iter().sum::<u64>();
            return Err(format!("the image needs {wanted} bytes, but the array has {}", data.len()));
        }
        let mut rest = data;
        for (i, bytes) in levels.iter().enumerate() {
            let (level, after) = rest.split_at(*bytes as usize);
            array.write(i as u32, level).map_err(text)?;
            rest = after;
        }
        Ok(Image { spec: self.clone(), store: Store::Array(array), handle: None })
    }
}

/// An image on the device.
#[derive(Debug)]
pub struct Image {
    spec: ImageSpec,
    store: Store,
    handle: Option<Handle>,
}

#[derive(Debug)]
enum Store {
    Array(Array),
    Linear(Buffer, Arc<Texels>),
}

#[derive(Debug)]
enum Handle {
    Texture(TextureObject),
    Surface(SurfaceObject),
}

impl Image {
    /// The handle for a kernel's 64-bit parameter.
    pub fn handle(&mut self, context: &Arc<Context>) -> Result<u64, String> {
        let made = match (&self.store, self.spec.role) {
            _ if self.handle.is_some() => None,
            (Store::Array(a), Role::Texture) => Some(Handle::Texture(context.texture(a, &self.spec.options))),
            (Store::Linear(_, t), Role::Texture) => {
                Some(Handle::Texture(context.linear_texture(t, &self.spec.options)))
            }
            (Store::Array(a), Role::Surface) => {
                Some(Handle::Surface(context.surface(a, 0).map_err(|e| e.to_string())?))
            }
            (Store::Linear(..), Role::Surface) => return Err("a surface needs an array, not linear memory".into()),
        };
        self.handle = self.handle.take().or(made);
        Ok(match &self.handle {
            Some(Handle::Texture(t)) => t.handle(),
            Some(Handle::Surface(s)) => s.handle(),
            None => 0,
        })
    }

    /// Binds it to a `.texref` or `.surfref` variable: `name`, or `name[3]`.
    pub fn bind(&self, module: &Module, name: &str) -> Result<(), Error> {
        let (name, index) = reference(name);
        match (&self.store, self.spec.role) {
            (Store::Array(a), Role::Texture) => module.bind_texture(name, index, a.texels(), &self.spec.options),
            (Store::Linear(_, t), Role::Texture) => module.bind_texture(name, index, t, &self.spec.options),
            (Store::Array(a), Role::Surface) => module.bind_surface(name, index, a, 0),
            (Store::Linear(..), Role::Surface) => {
                Err(Error::BadArray("a surface needs an array, not linear memory".into()))
            }
        }
    }

    /// Its contents: all levels.
    pub fn contents(&self) -> Result<Vec<u8>, Error> {
        match &self.store {
            Store::Linear(buffer, _) => buffer.to_vec(),
            Store::Array(array) => {
                let levels = (0..array.texels().levels()).map(|i| array.read(i));
                Ok(levels.collect::<Result<Vec<_>, _>>()?.concat())
            }
        }
    }
}

/// A reference by name, and by index in an array of references: `t`, `t[3]`.
pub fn reference(text: &str) -> (&str, u32) {
    let indexed = text.strip_suffix(']').and_then(|t| t.split_once('[')).and_then(|(n, i)| Some((n, i.parse().ok()?)));
    indexed.unwrap_or((text, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(words: &str, shape: &[u64]) -> Result<Extent, String> {
        ImageSpec::parse(Role::Texture, words.split_whitespace())?.extent(shape)
    }

    #[test]
    fn shapes_become_extents() {
        assert_eq!(extent("", &[5]), Ok(Extent::new(5, 0, 0)));
        assert_eq!(extent("", &[2, 3, 5]), Ok(Extent::new(5, 3, 2)));
        assert_eq!(extent("channels=4", &[3, 5, 4]), Ok(Extent::new(5, 3, 0)));
        assert_eq!(extent("layers", &[7, 3, 5]), Ok(Extent { layers: 7, ..Extent::new(5, 3, 0) }));
        assert_eq!(extent("cube", &[6, 3, 3]), Ok(Extent { layers: 6, cube: true, ..Extent::new(3, 3, 0) }));
        assert_eq!(extent("samples", &[3, 5, 2]), Ok(Extent { samples: 2, ..Extent::new(5, 3, 0) }));
        assert_eq!(extent("size=4x2 levels=3", &[99]), Ok(Extent { levels: 3, ..Extent::new(4, 2, 0) }));
        assert!(extent("layers", &[2, 3, 4, 5]).is_err() && extent("channels=2", &[3, 5]).is_err());
    }

    #[test]
    fn options_set_how_a_texture_is_sampled() {
        let spec = ImageSpec::parse(Role::Texture, ["filter=linear", "address=wrap/border", "normalized"]).unwrap();
        let s = spec.options.sampler;
        assert_eq!((s.filter, s.address), (Filter::Linear, [Address::Wrap, Address::Border, Address::Border]));
        assert!(spec.options.normalized);
        let wrong = |role, word| ImageSpec::parse(role, [word]).unwrap_err();
        assert!(wrong(Role::Texture, "filter=cubic").contains("point|nearest|linear"));
        assert!(wrong(Role::Surface, "filter=linear").contains("is not an image option"));
        assert!(sampler(["channels=2"]).is_err());
        assert_eq!(reference("t[3]"), ("t", 3));
    }
}
