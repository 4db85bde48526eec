//! The library's name for the dynamic linker: programs ask for `libcuda.so.1`, however the file is called.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
