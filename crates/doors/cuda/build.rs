//! The library's name for the dynamic linker: programs ask for `libcuda.so.1`, however the file is called. Only this crate's
//! own functions are visible: the SIMD engine defines LLVM's names, which a program may have from a library of its own.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
}
