//! The library's name for the dynamic linker: programs ask for `libnvidia-ml.so.1`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
}
