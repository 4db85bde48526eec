//! How fast the front end is: MB/s of lexing, parsing, checking and formatting, bytes of tree for each byte of text, and the
//! whole command `margay check` with its peak memory.
//!
//! `cargo bench -p margay --bench frontend [-- MEGABYTES [FILE]]` takes a module of our own making, always the same, and writes it
//! to FILE if one is named; `-- FILE` alone measures that module instead. Where a ptxas is installed, at `MARGAY_PTXAS` or by
//! `make oracle`, its time for the same module (`-arch=compute_80`, which parses and checks only) stands beside.

use std::{
    fmt::Write,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wanted = args.iter().find_map(|a| a.parse::<usize>().ok());
    let text = match (wanted, args.iter().find(|a| a.ends_with(".ptx"))) {
        (None, Some(path)) => std::fs::read_to_string(path).expect("the module is read"),
        (wanted, path) => {
            let text = module(wanted.unwrap_or(8) * 1_000_000);
            if let Some(path) = path {
                std::fs::write(path, &text).expect("the module is written");
            }
            text
        }
    };
    println!("{} bytes, {} lines", text.len(), text.lines().count());

    // As the command has it: the text is in memory, and the tree keeps it.
    let text = Arc::new(text);
    let tokens = margay_syntax::count_tokens(&text);
    row("lex", text.len(), best(|| black_box(margay_syntax::count_tokens(black_box(&text)))));
    row("parse", text.len(), best(|| black_box(margay_syntax::parse_shared(black_box(text.clone())))));
    let parsed = margay_syntax::parse_shared(text.clone());
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics.first());
    let options = margay_check::Options::default();
    let check = || margay_check::check(margay_syntax::parse_shared(black_box(text.clone())), &options);
    let (checked, diagnostics) = check();
    if checked.is_none() {
        println!("the module is refused: {:?}", diagnostics.first().map(|d| (d.span(), &d.message)));
    }
    row("parse + check", text.len(), best(|| black_box(check())));
    row("one body at a time", text.len(), best(|| black_box(margay_check::examine(black_box(text.clone()), &options))));
    row("format", text.len(), best(|| black_box(margay_syntax::format(&parsed, &Default::default()))));
    println!("{:18} {:9.2}", "bytes per token", text.len() as f64 / tokens as f64);
    println!("{:18} {:9.2}", "tree per byte", parsed.tree.bytes() as f64 / text.len() as f64);
    let path = std::env::temp_dir().join(format!("margay-frontend-{}.ptx", std::process::id()));
    std::fs::write(&path, &*text).expect("the module is written");
    command("margay check", text.len(), Command::new(env!("CARGO_BIN_EXE_margay")).arg("check").arg(&path));
    if let Some(ptxas) = ptxas() {
        command("ptxas", text.len(), Command::new(ptxas).args(["-arch=compute_80", "-o", "/dev/null"]).arg(&path));
    }
    let _ = std::fs::remove_file(&path);
}

fn row(name: &str, bytes: usize, time: Duration) {
    println!("{name:18} {:9.1} MB/s {:9.1} ms", bytes as f64 / 1e6 / time.as_secs_f64(), time.as_secs_f64() * 1e3);
}

/// The best of several runs; the results are dropped outside the measured time.
fn best<T>(run: impl Fn() -> T) -> Duration {
    (0..7)
        .map(|_| {
            let start = Instant::now();
            let result = run();
            let time = start.elapsed();
            drop(result);
            time
        })
        .min()
        .unwrap_or_default()
}

/// The reference, where it is installed: `MARGAY_PTXAS` names it or its folder.
fn ptxas() -> Option<PathBuf> {
    let named = std::env::var_os("MARGAY_PTXAS").map(PathBuf::from);
    let path = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.oracle/bin"));
    let path = if path.is_dir() { path.join("ptxas") } else { path };
    path.is_file().then_some(path)
}

/// A whole process: the best time of three, and the most memory that it was seen to hold.
fn command(name: &str, bytes: usize, command: &mut Command) {
    let (mut best, mut peak) = (Duration::MAX, 0);
    for _ in 0..3 {
        let start = Instant::now();
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = child else { return println!("{name:18} does not run") };
        let status = loop {
            peak = peak.max(resident(child.id()));
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => std::thread::sleep(Duration::from_micros(200)),
                Err(e) => return println!("{name:18} {e}"),
            }
        };
        best = best.min(start.elapsed());
        if !status.success() {
            return println!("{name:18} refuses the module");
        }
    }
    row(name, bytes, best);
    println!("{:18} {:9.2} bytes of memory for each of text", "", peak as f64 / bytes as f64);
}

/// The maximum memory that a process held so far, in bytes; 0 where the system does not say.
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<usize>().ok()).unwrap_or(0) * 1024
}

/// A linear congruential generator (the constants of MMIX): the module is the same everywhere and for ever.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// A module of about that many bytes, as compilers write them: kernels and functions, calls, tables, line information.
fn module(bytes: usize) -> String {
    let mut dice = Lcg(1);
    let mut out = String::with_capacity(bytes + 10_000);
    out.push_str(
        "//\n// Made by the benchmark of the front end\n//\n\n.version 8.0\n.target sm_80\n.address_size 64\n\n",
    );
    out.push_str(".file 1 \"kernels.cu\"\n.shared .align 16 .b8 tile[4096];\n");
    let mut n = 0;
    while out.len() < bytes {
        match n % 8 {
            0 => table(&mut out, &mut dice, n),
            1 => function(&mut out, &mut dice, n),
            _ => kernel(&mut out, &mut dice, n),
        }
        n += 1;
    }
    out
}

fn table(out: &mut String, dice: &mut Lcg, n: usize) {
    let _ = write!(out, ".global .align 4 .b8 table_{n}[512] = {{");
    for i in 0..512 {
        let _ = write!(out, "{}{}", if i > 0 { ", " } else { "" }, dice.below(256));
    }
    out.push_str("};\n\n");
}

const REGISTERS: &str =
    "\t.reg .pred \t%p<17>;\n\t.reg .f32 \t%f<65>;\n\t.reg .b32 \t%r<65>;\n\t.reg .b64 \t%rd<33>;\n\n";

fn function(out: &mut String, dice: &mut Lcg, n: usize) {
    let _ = write!(
        out,
        ".func  (.param .b32 func_retval0) helper_{n}(\n\t.param .b64 helper_{n}_param_0,\n\t.param .b32 helper_{n}_param_1\n)\n{{\n{REGISTERS}\
         \tld.param.u64 \t%rd1, [helper_{n}_param_0];\n\tld.param.u32 \t%r1, [helper_{n}_param_1];\n"
    );
    body(out, dice, n, 60, None);
    out.push_str("\tst.param.b32 \t[func_retval0+0], %r1;\n\tret;\n\n}\n\n");
}

fn kernel(out: &mut String, dice: &mut Lcg, n: usize) {
    let _ = write!(
        out,
        ".visible .entry _Z6kernel{n}PfS_i(\n\t.param .u64 _Z6kernel{n}PfS_i_param_0,\n\t.param .u64 _Z6kernel{n}PfS_i_param_1,\n\
         \t.param .u32 _Z6kernel{n}PfS_i_param_2\n)\n.maxntid 256, 1, 1\n{{\n{REGISTERS}\
         \tld.param.u64 \t%rd1, [_Z6kernel{n}PfS_i_param_0];\n\tld.param.u64 \t%rd2, [_Z6kernel{n}PfS_i_param_1];\n\
         \tld.param.u32 \t%r2, [_Z6kernel{n}PfS_i_param_2];\n\tcvta.to.global.u64 \t%rd3, %rd1;\n\
         \tmov.u32 \t%r3, %ctaid.x;\n\tmov.u32 \t%r4, %ntid.x;\n\tmov.u32 \t%r5, %tid.x;\n\tmad.lo.s32 \t%r1, %r3, %r4, %r5;\n\
         \tsetp.ge.s32 \t%p1, %r1, %r2;\n\t@%p1 bra \t$L__END_{n};\n\n"
    );
    body(out, dice, n, 250, Some(n / 8 * 8 + 1).filter(|f| *f < n));
    let _ = write!(out, "$L__END_{n}:\n\tret;\n\n}}\n\n");
}

fn body(out: &mut String, dice: &mut Lcg, n: usize, count: usize, callee: Option<usize>) {
    for i in 0..count {
        let mut r = |n: u64| 1 + dice.below(n);
        let (a, b, c, d) = (r(60), r(60), r(60), r(30));
        let _ = match r(18) {
            1 => writeln!(out, "\t.loc\t1 {} {}", a * b, c),
            2 | 3 => writeln!(out, "\tadd.s32 \t%r{a}, %r{b}, {c};"),
            4 | 5 => writeln!(out, "\tfma.rn.f32 \t%f{a}, %f{b}, %f{c}, %f{a};"),
            6 => write!(out, "\tmul.wide.s32 \t%rd{d}, %r{a}, 4;\n\tadd.s64 \t%rd{d}, %rd3, %rd{d};\n"),
            7 | 8 => writeln!(out, "\tld.global.f32 \t%f{a}, [%rd{d}+{}];", b * 4),
            9 => writeln!(out, "\tst.global.f32 \t[%rd{d}+{}], %f{a};", b * 4),
            10 => writeln!(out, "\tmov.f32 \t%f{a}, 0f{:08X};", (a * b * 0x1234567) & 0x7f7f_ffff),
            11 => writeln!(out, "\tld.shared.v4.f32 \t{{%f{a}, %f{b}, %f{c}, %f{d}}}, [tile+{}];", (a % 60) * 16),
            12 => write!(
                out,
                "\tsetp.lt.f32 \t%p{}, %f{a}, %f{b};\n\tselp.f32 \t%f{c}, %f{a}, %f{b}, %p{};\n",
                a % 16,
                a % 16
            ),
            13 => write!(
                out,
                "\tsetp.ne.s32 \t%p{}, %r{a}, 0;\n\t@%p{} bra \t$L__BB{n}_{i};\n\tshl.b32 \t%r{a}, %r{b}, {};\n\n$L__BB{n}_{i}:\n",
                b % 16,
                b % 16,
                c % 32
            ),
            14 => writeln!(out, "\tshfl.sync.bfly.b32 \t%r{a}|%p{}, %r{b}, {}, 31, -1;", c % 16, d % 32),
            15 => writeln!(
                out,
                "\tmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f1, %f2, %f3, %f4}}, {{%r{a}, %r{b}, %r{c}, %r{d}}}, {{%r{a}, %r{b}}}, {{%f1, %f2, %f3, %f4}};"
            ),
            16 => write!(out, "\tcvt.rn.f32.s32 \t%f{a}, %r{b};\n\tex2.approx.ftz.f32 \t%f{c}, %f{a};\n"),
            17 => match callee {
                Some(f) => write!(
                    out,
                    "\t{{ // callseq {i}, 0\n\t.reg .b32 temp_param_reg;\n\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], %rd{d};\n\
                     \t.param .b32 param1;\n\tst.param.b32 \t[param1+0], %r{a};\n\t.param .b32 retval0;\n\tcall.uni (retval0), \n\
                     \thelper_{f}, \n\t(\n\tparam0, \n\tparam1\n\t);\n\tld.param.b32 \t%r{b}, [retval0+0];\n\t}} // callseq {i}\n"
                ),
                None => writeln!(out, "\txor.b32 \t%r{a}, %r{b}, -1;"),
            },
            _ => writeln!(out, "\tbar.sync \t0;"),
        };
    }
}
