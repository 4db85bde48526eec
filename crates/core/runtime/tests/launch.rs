//! Which launches are refused: the limits of the CUDA C++ Programming Guide, "Compute Capabilities", and of clusters ("Thread Block
//! Clusters": at most 8 CTAs, 16 where a kernel asks for more; the grid's size is a multiple of the cluster's).

use margay_runtime::{Device, Error, Kernel, LaunchConfig, LaunchShape, LoadOptions, SourceText};

const TEXT: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry plain(.param .u64 p) {
    ret;
}
.visible .entry fixed(.param .u64 p) .reqntid 32, 2 {
    ret;
}
.visible .entry bounded(.param .u64 p) .maxntid 64 {
    ret;
}";

fn kernel(name: &str) -> Kernel {
    let source = SourceText { name: "launch.ptx", text: TEXT };
    let context = Device::new().unwrap().context();
    context.load(&[source], &LoadOptions::default()).unwrap().kernel(name).unwrap()
}

/// Why a launch with eight bytes of parameters is refused.
fn refused(kernel: &Kernel, shape: LaunchShape) -> Option<String> {
    match kernel.check(&LaunchConfig::of(shape), &[0; 8]) {
        Ok(()) => None,
        Err(Error::BadLaunch(why)) => Some(why),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn grids_and_blocks_have_limits() {
    let plain = kernel("plain");
    let takes = |grid, block| refused(&plain, LaunchShape::new(grid, block)).is_none();
    assert!(takes([0x7fff_ffff, 1, 1], [1024, 1, 1]) && takes([1, 65535, 65535], [1, 16, 64]));
    assert!(
        !takes([0x8000_0000, 1, 1], [32, 1, 1])
            && !takes([1, 65536, 1], [32, 1, 1])
            && !takes([1, 1, 65536], [32, 1, 1])
    );
    assert!(!takes([1, 1, 1], [1025, 1, 1]) && !takes([1, 1, 1], [1, 1, 65]) && !takes([1, 1, 1], [1024, 2, 1]));
    assert!(!takes([1, 1, 1], [65536, 65536, 1]) && !takes([0, 1, 1], [32, 1, 1]) && !takes([1, 1, 1], [32, 0, 1]));
}

#[test]
fn clusters_divide_the_grid() {
    let plain = kernel("plain");
    let takes = |grid, cluster| {
        let shape = LaunchShape { cluster: Some(cluster), ..LaunchShape::new(grid, [32, 1, 1]) };
        refused(&plain, shape).is_none()
    };
    assert!(takes([8, 4, 2], [2, 2, 2]) && takes([16, 1, 1], [16, 1, 1]));
    assert!(!takes([8, 4, 2], [3, 1, 1]) && !takes([17, 1, 1], [17, 1, 1]) && !takes([8, 4, 2], [0, 1, 1]));
    // 2 to the power of 32 CTAs.
    assert!(!takes([65536, 32768, 2], [65536, 32768, 2]));
}

#[test]
fn kernels_bound_their_ctas() {
    let (fixed, bounded) = (kernel("fixed"), kernel("bounded"));
    let takes = |kernel: &Kernel, block| refused(kernel, LaunchShape::new([1, 1, 1], block)).is_none();
    assert!(takes(&fixed, [32, 2, 1]) && !takes(&fixed, [64, 1, 1]));
    assert!(takes(&bounded, [64, 1, 1]) && takes(&bounded, [8, 8, 1]) && !takes(&bounded, [65, 1, 1]));
}

#[test]
fn parameters_must_be_there() {
    let plain = kernel("plain");
    let config = LaunchConfig::new([1; 3], [32, 1, 1]);
    assert!(plain.check(&config, &[0; 8]).is_ok());
    assert!(matches!(plain.check(&config, &[0; 7]), Err(Error::BadLaunch(_))));
}
