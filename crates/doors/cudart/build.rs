//! The library's name, and the version of its symbols: programs that nvcc made with `-cudart shared` ask for
//! `cudaMalloc@libcudart.so.13`. GNU's linker makes that from the name (`--default-symver`); others do not know the option.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-fuse-ld=bfd");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcudart.so.13");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--default-symver");
}
