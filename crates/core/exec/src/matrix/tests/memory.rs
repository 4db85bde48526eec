//! Moves of matrices between memory and fragments.

use super::*;

/// A flat memory of bytes, and whether accesses for all lanes at once succeed.
struct Bytes(Vec<u8>, bool);

impl Memory for Bytes {
    type Error = ();

    fn read(&mut self, _: usize, address: u64, to: &mut [u8]) -> Result<(), ()> {
        to.copy_from_slice(self.0.get(address as usize..).and_then(|b| b.get(..to.len())).ok_or(())?);
        Ok(())
    }

    fn write(&mut self, _: usize, address: u64, from: &[u8]) -> Result<(), ()> {
        self.0.get_mut(address as usize..).and_then(|b| b.get_mut(..from.len())).ok_or(())?.copy_from_slice(from);
        Ok(())
    }

    fn try_read(&mut self, address: u64, to: &mut [u8]) -> bool {
        self.1 && self.read(0, address, to).is_ok()
    }

    fn try_write(&mut self, address: u64, from: &[u8]) -> bool {
        self.1 && self.write(0, address, from).is_ok()
    }
}

#[test]
fn ldmatrix_stmatrix_and_movmatrix() {
    // Element (row, column) of matrix j is 64 j + 8 row + column; rows lie 32 bytes apart, matrices 512.
    let mut memory = Bytes(vec![0; 4096], false);
    let addresses: [u64; LANES] = std::array::from_fn(|l| (l as u64 / 8) * 512 + (l as u64 % 8) * 32);
    for (l, a) in addresses.iter().enumerate() {
        for column in 0..8 {
            memory.0[*a as usize + 2 * column] = (8 * l + column) as u8;
        }
    }
    let v = variant("ldmatrix.sync.aligned.m8n8.x4.shared.b16");
    let mut plain = [Row::ZERO; 4];
    ldmatrix(&v, &addresses, &mut memory, &mut plain).unwrap();
    for j in 0..4 {
        for lane in 0..LANES {
            let first = (64 * j + lane / 4 * 8 + lane % 4 * 2) as u32;
            assert_eq!(plain[j].0[lane], first | (first + 1) << 16);
        }
    }
    let trans = variant("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16");
    let mut turned = [Row::ZERO; 2];
    ldmatrix(&trans, &addresses, &mut memory, &mut turned).unwrap();
    for lane in 0..LANES {
        let first = (64 + lane % 4 * 2 * 8 + lane / 4) as u32;
        assert_eq!(turned[1].0[lane], first | (first + 8) << 16);
    }
    let mut moved = [Row::ZERO];
    let mov = variant("movmatrix.sync.aligned.m8n8.trans.b16");
    pure(&mov).unwrap()(&mov, u32::MAX, &[&plain[1..2]], &mut moved);
    assert_eq!(moved[0], turned[1]);
    for (text, registers) in [("x4", &plain[..]), ("x2.trans", &turned[..])] {
        let v = variant(&format!("stmatrix.sync.aligned.m8n8.{text}.shared.b16"));
        let mut copy = Bytes(vec![0; 4096], false);
        let src: Vec<&[Row]> = registers.chunks(1).collect();
        stmatrix(&v, &addresses, &src, &mut copy).unwrap();
        let end = 512 * registers.len();
        assert_eq!(copy.0[..end], memory.0[..end]);
    }
    assert!(ldmatrix(&v, &[4090; LANES], &mut memory, &mut plain).is_err());
}

/// Writes a matrix of random elements with a stride that leaves gaps, and loads it. Returns its elements by rows, and the fragment.
fn load_random(
    load: &Variant,
    (rows, columns): (usize, usize),
    registers: usize,
    rng: &mut sample::Rng,
) -> (Vec<f64>, Vec<Row>) {
    let e = Element::of(load.t(), load);
    let by_rows = load.has(Mod::Row);
    let stride = 32 + if by_rows { columns } else { rows };
    let mut memory = Bytes(vec![0; 16 * 1024], false);
    let mut values = vec![0.0; rows * columns];
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let (x, bits) = value(e, rng);
        values[row * columns + column] = x;
        let at = if by_rows { row * stride + column } else { column * stride + row };
        if e.bits < 8 {
            let per_byte = (8 / e.bits) as usize;
            memory.0[at / per_byte] |= (bits << (e.bits as usize * (at % per_byte))) as u8;
        } else {
            let size = e.bits as usize / 8;
            memory.0[at * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }
    let strides = [stride as u32; LANES];
    let [mut fragment, mut again] = [0, 1].map(|_| vec![Row::ZERO; registers]);
    wmma_load(load, &[0; LANES], Some(&strides), &mut memory, &mut fragment).unwrap();
    memory.1 = true;
    wmma_load(load, &[0; LANES], Some(&strides), &mut memory, &mut again).unwrap();
    assert_eq!(fragment, again, "{load}, all lanes at once");
    (values, fragment)
}

/// Stores a fragment of D by columns; the elements of its `m` by `n` matrix by rows.
fn stored(store: &Variant, fragment: &[Row], m: usize, n: usize) -> Vec<f64> {
    let e = Element::of(store.t(), store);
    let [mut memory, mut again] = [false, true].map(|at_once| Bytes(vec![0; 8 * 1024], at_once));
    let src: Vec<&[Row]> = fragment.chunks(1).collect();
    wmma_store(store, &[0; LANES], None, &src, &mut memory).unwrap();
    wmma_store(store, &[0; LANES], None, &src, &mut again).unwrap();
    assert_eq!(memory.0, again.0, "{store}, all lanes at once");
    let size = e.bits as usize / 8;
    let element = |row: usize, column: usize| {
        let mut raw = [0; 4];
        raw[..size].copy_from_slice(&memory.0[(column * m + row) * size..][..size]);
        let bits = u32::from_le_bytes(raw);
        if e.ty == Type::S32 { e.integer(bits) as f64 } else { e.float(bits) }
    };
    (0..m).flat_map(|row| (0..n).map(move |column| (row, column))).map(|(row, column)| element(row, column)).collect()
}

#[test]
fn wmma_from_memory_to_memory() {
    let mut rng = sample::Rng(9);
    let mut rng_forms = sample::Rng(2);
    let mut done = 0;
    let forms = Opcode::Wmma.row().forms.iter();
    for words in forms.flat_map(|form| sample::mnemonics(form, 64, &mut rng_forms)) {
        let v = resolve(Opcode::Wmma, &words, |_| true).unwrap().variant;
        let Some((m, n, k)) = shape(&v) else { continue };
        if !v.has(Mod::Mma) || v.t() == Type::F64 {
            continue;
        }
        done += 1;
        let layouts: Vec<_> =
            v.words.iter().filter(|w| matches!(w, Word::Mod(Mod::Row | Mod::Col))).map(|w| w.name()).collect();
        let ty = |x| v.ty(x).unwrap_or(Type::F16).name();
        let count = counts(&v);
        let mut load = |which: &str, layout: &str, ty: &str, size, registers| {
            let load = variant(&format!("wmma.load.{which}.sync.aligned.{layout}.m{m}n{n}k{k}.{ty}"));
            load_random(&load, size, registers, &mut rng)
        };
        let (a, a_fragment) = load("a", layouts[0], ty(Var::U), (m, k), count[1]);
        let (b, b_fragment) = load("b", layouts[1], ty(Var::V), (k, n), count[2]);
        let (c, c_fragment) = load("c", "row", ty(Var::W), (m, n), count[3]);
        let d = run(&v, [&a_fragment, &b_fragment, &c_fragment], &[]);
        let store = variant(&format!("wmma.store.d.sync.aligned.col.m{m}n{n}k{k}.{}", ty(Var::T)));
        let got = stored(&store, &d, m, n);
        let differs = v.ty(Var::U) == Some(Type::B1) && v.has(Mod::Xor);
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let pairs = (0..k).map(|i| (a[row * k + i], b[i * n + column]));
            let sum: f64 = pairs.map(|(x, y)| if differs { f64::from(x != y) } else { x * y }).sum();
            let want = sum + c[row * n + column];
            assert_eq!(got[row * n + column], want, "{v} at {row}, {column}");
        }
    }
    assert!(done > 50);
}
