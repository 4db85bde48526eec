//! Which release of the CUDA runtime this package is, the library's name, and the version of its symbols: programs that nvcc made
//! with `-cudart shared` ask for `cudaMalloc@libcudart.so.13`. GNU's linker makes that from the name (`--default-symver`); others
//! do not know the option.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cuda11, cuda12, cuda13)");
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let (release, name) = match package.as_str() {
        "margay-cudart11" => ("cuda11", "libcudart.so.11.0"),
        "margay-cudart12" => ("cuda12", "libcudart.so.12"),
        _ => ("cuda13", "libcudart.so.13"),
    };
    println!("cargo::rustc-cfg={release}");
    println!("cargo:rustc-cdylib-link-arg=-fuse-ld=bfd");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{name}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--default-symver");
}
