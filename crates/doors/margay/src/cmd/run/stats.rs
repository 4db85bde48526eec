//! `--stats`: the cost of a run, as text or JSON.

use crate::args::{RunArgs, StatsFormat};
use margay::quantity::{count, grouped, noun, size};
use margay_exec::{COUNTED_SPACES, Count, Counts};
use margay_runtime::{Kernel, Tier, TierTime};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The measurements of a run.
pub struct Measured<'a> {
    pub kernel: &'a Kernel,
    pub threads: usize,
    /// Time from the module's text to callable code, including the launches until then.
    pub compile: Duration,
    /// The part of it spent on checking, lowering and placing.
    pub front: Duration,
    /// Times of the launches that were not counted; sorted.
    pub times: Vec<Duration>,
    /// Counts of the first launch, if it was counted.
    pub counts: Option<&'a Counts>,
}

impl Measured<'_> {
    /// The report.
    pub fn show(&self, format: StatsFormat, args: &RunArgs) -> String {
        match format {
            StatsFormat::Json => self.json().to_string(),
            StatsFormat::Human => self.human(args),
        }
    }

    fn least(&self) -> Duration {
        self.times.first().copied().unwrap_or_default()
    }

    fn median(&self) -> Duration {
        self.times.get(self.times.len() / 2).copied().unwrap_or_default()
    }

    fn json(&self) -> Value {
        let nanoseconds = |steps: Vec<(&'static str, Duration)>| {
            let values = steps.into_iter().map(|(what, time)| (what.to_string(), json!(time.as_nanos() as u64)));
            Value::Object(values.collect::<Map<_, _>>())
        };
        let mut out = json!({
            "kernel": self.kernel.name(),
            "engine": self.kernel.engine(),
            "fallback": self.kernel.fallback(),
            "threads": self.threads,
            "compile_ns": self.compile.as_nanos() as u64,
            "kernel_ns_min": self.least().as_nanos() as u64,
            "kernel_ns_median": self.median().as_nanos() as u64,
            "launches": self.times.len(),
            "compile_steps_ns": nanoseconds(self.steps(false)),
            "background_steps_ns": nanoseconds(self.steps(true)),
            "tiers": self.tiers(),
            "single_steps": self.kernel.single_steps(),
        });
        if let (Some(counts), Some(fields)) = (self.counts, out.as_object_mut()) {
            let bytes = COUNTED_SPACES.map(|s| (s.name().to_string(), json!(counts.get(Count::Bytes(s)))));
            let counted = json!({
                "instructions": counts.get(Count::Instructions),
                "lanes": counts.get(Count::Lanes),
                "uniform": counts.get(Count::Uniform),
                "contiguous": counts.get(Count::Contiguous),
                "scattered": counts.get(Count::Scattered),
                "bytes": Value::Object(bytes.into_iter().collect()),
            });
            fields.insert("counts".into(), counted);
        }
        out
    }

    fn human(&self, args: &RunArgs) -> String {
        self.overview(args) + &self.code_and_times(args) + &self.counts.map_or(String::new(), executed)
    }

    /// The kernel, its engine, and the size of the launch.
    fn overview(&self, args: &RunArgs) -> String {
        let product = |sizes: [u32; 3]| sizes.iter().map(|n| u64::from(*n)).product::<u64>();
        let mut out = format!(
            "{} on the {} engine: {} of {}, {}\n",
            self.kernel.name(),
            self.kernel.engine(),
            count(product(args.grid), "CTA", "CTAs"),
            count(product(args.block), "thread", "threads"),
            count(self.threads as u64, "host thread", "host threads"),
        );
        if let Some(why) = self.kernel.fallback() {
            out += &format!("  on the reference engine: {why}\n");
        }
        out
    }

    /// How the code came about, which code ran, and how long the launches took.
    fn code_and_times(&self, args: &RunArgs) -> String {
        let steps = [("check and lower", self.front)].into_iter().chain(self.steps(false));
        let steps: Vec<String> = steps.map(|(what, time)| format!("{what} {time:.1?}")).collect();
        let mut out = format!("  compile       {:.3?}: {}\n", self.compile, steps.join(", "));
        let behind: Duration = self.steps(true).iter().map(|(_, time)| *time).sum();
        if !behind.is_zero() {
            out += &format!("                and {behind:.1?} in the background\n");
        }
        let tiers = self.kernel.tiers();
        let all: Duration = tiers.iter().map(|t| t.time).sum();
        if tiers.len() > 1 {
            let ctas = |n: u64| format!("{} {}", grouped(n), noun(n, "CTA", "CTAs"));
            let share = |t: &TierTime| format!("{} {:.1?} ({})", name(t.tier), t.time, ctas(t.units));
            let shares: Vec<String> = tiers.iter().map(share).collect();
            out += &format!("  ran           {all:.1?} on all threads: {}\n", shares.join(", "));
        } else if let [only] = &tiers[..] {
            out += &format!("  ran           {all:.1?} on all threads, {}\n", name(only.tier));
        }
        let single = self.kernel.single_steps();
        if !single.is_empty() {
            out += &format!("  one at a time on the reference engine: {}\n", single.join(", "));
        }
        let counted = if args.repeat == 1 && self.counts.is_some() { ", counting" } else { "" };
        let launches = count(self.times.len() as u64, "launch", "launches");
        out += &format!("  kernel        {:.3?} (median {:.3?}) in {launches}{counted}\n", self.least(), self.median());
        out
    }

    fn tiers(&self) -> Value {
        let tiers = self.kernel.tiers();
        let one = |t: &TierTime| json!({ "tier": tag(t.tier), "units": t.units, "ns": t.time.as_nanos() as u64 });
        tiers.iter().map(one).collect()
    }

    /// The steps in which the engine produced code, each with its total time.
    fn steps(&self, background: bool) -> Vec<(&'static str, Duration)> {
        let mut steps: Vec<(&'static str, Duration)> = Vec::new();
        for work in self.kernel.works().iter().filter(|w| w.background == background) {
            match steps.iter_mut().find(|(what, _)| *what == work.what) {
                Some((_, sum)) => *sum += work.time,
                None => steps.push((work.what, work.time)),
            }
        }
        steps
    }
}

/// The counts of a launch, in lines of text.
fn executed(counts: &Counts) -> String {
    let get = |count| counts.get(count);
    let instructions = get(Count::Instructions);
    let bytes = COUNTED_SPACES.iter().map(|s| (s.name(), get(Count::Bytes(*s)))).filter(|(_, n)| *n > 0);
    let bytes: Vec<String> = bytes.map(|(name, n)| format!("{name} {}", size(n))).collect();
    format!(
        "  instructions  {} of warps, {:.1} of 32 lanes active\n  \
         accesses      {} contiguous, {} to one address, {} gathers and scatters\n  \
         bytes         {}",
        grouped(instructions),
        get(Count::Lanes) as f64 / instructions.max(1) as f64,
        grouped(get(Count::Contiguous)),
        grouped(get(Count::Uniform)),
        grouped(get(Count::Scattered)),
        if bytes.is_empty() { "none".into() } else { bytes.join(", ") }
    )
}

/// The name of a tier in JSON.
fn tag(tier: Tier) -> &'static str {
    match tier {
        Tier::Reference => "reference",
        Tier::Light => "light",
        Tier::Full => "full",
    }
}

/// The name of a tier in text.
fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::Reference => "by the reference engine",
        Tier::Light => "compiled by the light tier",
        Tier::Full => "fully optimized",
    }
}
