//! Only Python's entry point is visible: the SIMD engine defines LLVM's names, which a program may have from a library of its own.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
}
