//! `cudaDeviceProp` (CUDA Runtime API, "Data Structures") in the layouts of the releases: CUDA 12 appended members, and
//! CUDA 13 removed some.

use crate::{device::attribute, driver, error::Outcome, raw::Ptr};

/// A layout of the structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // no release has all
pub enum Layout {
    /// CUDA 11, and the older function of CUDA 12.
    Cuda11,
    /// `cudaGetDeviceProperties_v2` of CUDA 12.
    Cuda12,
    /// CUDA 13.
    Cuda13,
}

/// 32-bit members: driver attribute, offset in CUDA 11 and 12, offset in CUDA 13; 0 if absent.
#[rustfmt::skip]
const FIELDS: &[(u32, usize, usize)] = &[
    (12, 304, 304), (10, 308, 308), (1, 320, 320), (2, 324, 324), (3, 328, 328), (4, 332, 332), (5, 336, 336),
    (6, 340, 340), (7, 344, 344), (75, 360, 360), (76, 364, 364), (16, 388, 384), (18, 396, 388), (19, 400, 392),
    (21, 408, 396), (77, 412, 400), (22, 420, 404), (23, 424, 408), (73, 428, 412), (74, 432, 416), (70, 436, 420),
    (71, 440, 424), (72, 444, 428), (45, 448, 432), (46, 452, 436), (24, 456, 440), (25, 460, 444), (26, 464, 448),
    (47, 468, 452), (48, 472, 456), (49, 476, 460), (52, 480, 464), (42, 484, 468), (43, 488, 472), (27, 492, 476),
    (28, 496, 480), (29, 500, 484), (53, 504, 488), (54, 508, 492), (55, 512, 496), (56, 516, 500), (57, 520, 504),
    (58, 524, 508), (59, 528, 512), (60, 532, 516), (61, 536, 520), (62, 540, 524), (63, 544, 528), (64, 548, 532),
    (65, 552, 536), (66, 556, 540), (67, 560, 544), (68, 564, 548), (31, 576, 560), (32, 580, 564), (33, 584, 568),
    (34, 588, 572), (50, 592, 576), (35, 596, 580), (40, 600, 584), (41, 604, 588), (37, 612, 592), (38, 616, 596),
    (108, 620, 600), (39, 624, 604), (78, 628, 608), (79, 632, 612), (80, 636, 616), (82, 648, 632), (83, 652, 636),
    (84, 656, 640), (85, 660, 644), (86, 664, 648), (88, 672, 652), (89, 676, 656), (90, 680, 660), (91, 684, 664),
    (95, 688, 668), (100, 704, 680), (101, 708, 684), (106, 712, 688), (109, 716, 692), (99, 728, 704), (112, 732, 708),
    (113, 736, 712), (114, 740, 716), (115, 744, 720), (116, 748, 724), (117, 752, 728), (118, 756, 732), (119, 760, 736),
    (121, 764, 740), (125, 768, 744), (120, 772, 748), (129, 776, 752), (130, 0, 756), (131, 0, 760), (133, 0, 764),
    (134, 0, 768), (139, 0, 772), (140, 0, 776), (13, 348, 0), (15, 384, 0), (17, 392, 0), (20, 404, 0), (69, 416, 0),
    (36, 608, 0), (87, 668, 0), (96, 692, 0),
];

/// 64-bit members, likewise.
#[rustfmt::skip]
const LONG_FIELDS: &[(u32, usize, usize)] = &[
    (8, 296, 296), (11, 312, 312), (9, 352, 352), (14, 368, 368), (51, 376, 376), (30, 568, 552), (81, 640, 624),
    (97, 696, 672), (111, 720, 696),
];

impl Layout {
    /// Size of the structure in bytes.
    fn size(self) -> usize {
        match self {
            Layout::Cuda11 => 728,
            Layout::Cuda12 => 1032,
            Layout::Cuda13 => 1008,
        }
    }

    /// Offset of a member, if the layout has it.
    fn place(self, before: usize, since: usize) -> Option<usize> {
        let at = if self == Layout::Cuda13 { since } else { before };
        (at != 0 && at < self.size()).then_some(at)
    }

    /// Fills the structure; name, UUID and memory size are at 0, 256 and 288 in all layouts.
    pub fn fill(self, out: Ptr, device: i32) -> Outcome {
        for offset in (0..self.size()).step_by(8) {
            out.write(offset, 0u64)?;
        }
        driver::cuDeviceGetName(out, 256, device)?;
        driver::cuDeviceGetUuid_v2(Ptr::at(out.number() + 256), device)?;
        driver::cuDeviceTotalMem_v2(Ptr::at(out.number() + 288), device)?;
        for (number, before, since) in FIELDS {
            if let Some(offset) = self.place(*before, *since) {
                out.write(offset, attribute(*number, device)?)?;
            }
        }
        for (number, before, since) in LONG_FIELDS {
            if let Some(offset) = self.place(*before, *since) {
                out.write(offset, attribute(*number, device)? as u64)?;
            }
        }
        Ok(())
    }
}
