//! Allocation, freeing and reuse, with and without running launches.

use super::{raw::lent, *};
use std::sync::mpsc;

#[test]
fn reads_what_was_written_and_refuses_the_rest() {
    let m = Memory::new(1000);
    let a = m.alloc(13, 1).unwrap();
    let data: Vec<u8> = (0..13).collect();
    m.write(a, &data).unwrap();
    let mut back = [0; 9];
    m.read(a + 3, &mut back).unwrap();
    assert_eq!(back, [3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert!(m.write(a + 5, &data).is_err());
    assert!(m.alloc(988, 8).is_err(), "13 bytes are in use");
    assert_eq!(m.describe(8), "a null pointer, or near one");
    assert_eq!(m.describe(a ^ 1 << 50), "far from all allocations");
    assert!(m.describe(a + 20).contains("7 bytes after the end"), "{}", m.describe(a + 20));
    let epoch = m.epoch();
    let window = Allocation::new(Reach::Full, 8, 8, Kind::Shared, "").unwrap();
    assert_eq!(m.remember(a + 12, &window).unwrap().block.base(), a);
    m.free(a).unwrap();
    assert_ne!(m.epoch(), epoch);
    assert!(m.free(a).is_err());
    assert!(m.describe(a + 3).starts_with("3 bytes into the allocation of 13 bytes"), "{}", m.describe(a + 3));
    assert!(m.describe(a + 3).ends_with("which the host freed"), "{}", m.describe(a + 3));
    assert!(m.read(a, &mut back).is_err());
    assert_eq!(m.usage().0, 0);
}

#[test]
fn copies_overlapping_ranges_both_ways() {
    let m = Memory::default();
    let a = m.alloc(64, 16).unwrap();
    let data: Vec<u8> = (0..64).collect();
    for (to, from) in [(3, 0), (0, 3), (8, 16), (17, 16)] {
        m.write(a, &data).unwrap();
        m.copy(a + to, a + from, 40).unwrap();
        let mut want = data.clone();
        want.copy_within(from as usize..from as usize + 40, to as usize);
        let mut got = vec![0; 64];
        m.read(a, &mut got).unwrap();
        assert_eq!(got, want, "{from} to {to}");
    }
    m.fill(a + 1, &[0xab, 0xcd], 3).unwrap();
    let mut got = [0; 8];
    m.read(a, &mut got).unwrap();
    assert_eq!(got[1..7], [0xab, 0xcd, 0xab, 0xcd, 0xab, 0xcd]);
}

#[test]
fn a_request_that_is_refused_takes_no_room_from_others() {
    let m = Memory::new(1 << 20);
    let rounds = if cfg!(miri) { 50 } else { 20_000 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                assert!(m.alloc(u64::MAX / 2, 16).is_err());
                assert_eq!(m.heap_alloc(Reach::Full, u64::MAX / 2), 0);
            }
        });
        for _ in 0..rounds {
            let a = m.alloc(16, 16).unwrap();
            m.free(a).unwrap();
            let a = m.heap_alloc(Reach::Full, 16);
            assert_ne!(a, 0);
            m.heap_free(a, Initiator::Host, Path::default()).unwrap();
        }
    });
    assert_eq!(m.usage().0, 0);
}

#[test]
fn the_device_heap_has_its_limit() {
    let m = Memory::default();
    m.set_heap_limit(100);
    let a = m.heap_alloc(Reach::Full, 60);
    assert!(a != 0 && a % 16 == 0);
    assert_eq!(m.heap_alloc(Reach::Full, 60), 0);
    let by = Initiator::Thread([1, 2, 3], [4, 5, 6]);
    assert!(!m.heap_free(a + 16, by, Path::default()).unwrap_err().twice);
    m.heap_free(0, by, Path::default()).unwrap();
    m.heap_free(a, by, Path::default()).unwrap();
    assert!(m.heap_free(a, by, Path::default()).unwrap_err().twice);
    assert!(!m.heap_free(a + 16, by, Path::default()).unwrap_err().twice, "nothing began there");
    assert!(m.describe(a).ends_with("which thread (1, 2, 3) of CTA (4, 5, 6) freed"), "{}", m.describe(a));
    assert_ne!(m.heap_alloc(Reach::Full, 100), 0);
}

/// A cached allocation of a running launch: a weak reference to it.
fn remembered(m: &Memory, address: u64) -> std::sync::Weak<Allocation> {
    let window = Allocation::new(Reach::Full, 8, 8, Kind::Shared, "").unwrap();
    Arc::downgrade(&m.remember(address, &window).unwrap())
}

#[test]
fn what_is_freed_stays_until_the_launches_have_ended() {
    let m = Memory::default();
    let first = m.begin();
    let a = m.alloc(64, 16).unwrap();
    let alive = remembered(&m, a);
    let second = m.begin();
    m.free(a).unwrap();
    assert_eq!(m.usage().0, 0);
    assert!(m.find(a).is_none());
    let third = m.begin();
    drop(first);
    assert!(alive.upgrade().is_some(), "the second launch ran too");
    drop(second);
    assert!(alive.upgrade().is_none(), "the third began later");
    drop(third);
    let b = m.alloc(64, 16).unwrap();
    let alive = remembered(&m, b);
    m.free(b).unwrap();
    assert!(alive.upgrade().is_none(), "nothing runs");
}

#[test]
fn freeing_empties_the_tables_of_running_launches() {
    let m = Memory::default();
    let (a, b) = (m.alloc(64, 16).unwrap(), m.alloc(64, 16).unwrap());
    let table = Arc::new(Ranges::new(2));
    let launch = m.begin();
    launch.watch(&table);
    let _ = (remembered(&m, a), remembered(&m, b));
    let set = |at, address| table.set(at, address, 61);
    set(0, a);
    set(1, b);
    m.free(b).unwrap();
    assert_eq!((table.places(0), table.places(1)), (61, 0));
    drop(launch);
    set(1, b);
    m.free(a).unwrap();
    assert_eq!(table.places(0), 61, "nobody looks after tables that nobody uses");
}

#[test]
#[cfg_attr(miri, ignore = "it takes minutes there")]
fn the_device_heap_reuses_memory_once_much_was_freed() {
    let m = Memory::default();
    m.set_heap_limit(1 << 20);
    let launch = m.begin();
    let (mut before, mut again) = (std::collections::HashSet::new(), 0);
    for size in (1..2000).cycle().take(20_000) {
        let a = m.heap_alloc(Reach::Full, size);
        assert_ne!(a, 0);
        let mut bytes = vec![1; size as usize];
        m.read(a, &mut bytes).unwrap();
        assert!(bytes.iter().all(|b| *b == 0));
        assert!(m.read(a + size - 1, &mut [0; 2]).is_err(), "not a byte more");
        m.fill(a, &[0xff], size).unwrap();
        let _ = remembered(&m, a);
        again += u32::from(!before.insert(a));
        m.heap_free(a, Initiator::Host, Path::default()).unwrap();
        assert!(m.find(a).is_none());
    }
    // All of it would be 20 MiB and 15 MiB of what lies around it; a block is 1024 bytes on average.
    assert!(before.len() < 4000 && again > 16_000, "{} blocks", before.len());
    assert_eq!(m.usage().0, 0);
    drop(launch);
}

#[test]
fn borrowed_memory_is_returned_when_the_launches_have_ended() {
    let owner = Block::new(64, 64).unwrap();
    let m = Arc::new(Memory::default());
    let base = owner.base();
    m.adopt(lent(&owner), Kind::Global).unwrap();
    let alive = remembered(&m, base);
    let kept = alive.upgrade().unwrap();
    let launch = m.begin();
    let (done, over) = mpsc::channel();
    let other = m.clone();
    let waiting = std::thread::spawn(move || {
        other.free(base).unwrap();
        done.send(()).unwrap();
    });
    while m.find(base).is_some() {
        std::thread::yield_now();
    }
    assert!(over.try_recv().is_err(), "a launch runs");
    drop(launch);
    over.recv().unwrap();
    waiting.join().unwrap();
    assert!(!kept.block.contains(base, 1), "whoever kept it finds nothing");
}

#[test]
fn loans_are_exchanged_atomically() {
    let owner = Block::new(128, 64).unwrap();
    let m = Memory::default();
    let base = owner.base();
    m.adopt(lent(&owner), Kind::Global).unwrap();
    let own = m.alloc(8, 8).unwrap();
    let (gone, made) = m.exchange(&[base, own], vec![lent(&owner)], Kind::Global);
    assert!(made.is_ok() && gone.len() == 1, "what the device owns is no loan");
    assert!(m.find(base + 127).is_some() && m.find(own).is_some());
    m.settle(gone);
    let (gone, made) = m.exchange(&[base], Vec::new(), Kind::Global);
    assert!(made.is_ok() && m.find(base).is_none());
    m.settle(gone);
}

/// Each thread uses a little of its stack; with large pages, all of it would count.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn local_windows_occupy_what_threads_touch() {
    let (len, stride) = (64 << 20, 64 << 10);
    let window = Allocation::new(Reach::Full, len, 256, Kind::Local, "").unwrap();
    let touch = |i| fill(&window.block, window.block.base() + i * stride, &[1], 16).unwrap();
    (0..len / stride).for_each(touch);
    // proc_pid_smaps(5): a mapping's range starts its first line, and `Rss` counts its pages in memory.
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut inside, mut resident) = (false, None);
    for line in smaps.lines() {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let ends = words[0]
            .split_once('-')
            .and_then(|(from, to)| Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?)));
        match (ends, words[0]) {
            (Some((from, to)), _) => inside = (from..to).contains(&(window.block.base() + len / 2)),
            (None, "Rss:") if inside => resident = words[1].parse::<u64>().ok(),
            _ => {}
        }
    }
    let resident = resident.expect("the window is mapped") << 10;
    assert!(resident < len / 4, "{resident} bytes of {len} are in memory");
}
