//! `--stats`: the cost of a run, as text or JSON.

use crate::args::{RunArgs, StatsFormat};
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
    /// What the first launch executed, if it was counted.
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
        let product = |sizes: [u32; 3]| sizes.iter().map(|n| u64::from(*n)).product::<u64>();
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let mut out = format!(
            "{} on the {} engine: {} CTAs of {} threads, {} host thread{}\n",
            self.kernel.name(),
            self.kernel.engine(),
            product(args.grid),
            product(args.block),
            self.threads,
            plural(self.threads),
        );
        if let Some(why) = self.kernel.fallback() {
            out += &format!("  on the reference engine: {why}\n");
        }
        let steps = [("check and lower", self.front)].into_iter().chain(self.steps(false));
        let steps: Vec<String> = steps.map(|(what, time)| format!("{what} {time:.1?}")).collect();
        out += &format!("  compile       {:.3?}: {}\n", self.compile, steps.join(", "));
        let behind: Duration = self.steps(true).iter().map(|(_, time)| *time).sum();
        if !behind.is_zero() {
            out += &format!("                and {behind:.1?} in the background\n");
        }
        let tiers = self.kernel.tiers();
        let all: Duration = tiers.iter().map(|t| t.time).sum();
        if tiers.len() > 1 {
            let share = |t: &TierTime| format!("{} {:.1?} ({} CTAs)", name(t.tier), t.time, grouped(t.units));
            let shares: Vec<String> = tiers.iter().map(share).collect();
            out += &format!("  ran           {all:.1?} on all threads: {}\n", shares.join(", "));
        } else if let [only] = &tiers[..] {
            out += &format!("  ran           {all:.1?} on all threads, {}\n", name(only.tier));
        }
        let single = self.kernel.single_steps();
        if !single.is_empty() {
            out += &format!("  one at a time on the reference engine: {}\n", single.join(", "));
        }
        let launches = self.times.len();
        let (s, counted) =
            (plural(launches), if args.repeat == 1 && self.counts.is_some() { ", counting" } else { "" });
        out += &format!("  kernel        {:.3?}", self.least());
        out += &format!(
            " (median {:.3?}) in {launches} launch{}{counted}\n",
            self.median(),
            if s.is_empty() { "" } else { "es" }
        );
        let Some(counts) = self.counts else { return out };
        let get = |count| counts.get(count);
        let instructions = get(Count::Instructions);
        out += &format!(
            "  instructions  {} of warps, {:.1} of 32 lanes active\n",
            grouped(instructions),
            get(Count::Lanes) as f64 / instructions.max(1) as f64
        );
        out += &format!(
            "  accesses      {} contiguous, {} to one address, {} gathers and scatters\n",
            grouped(get(Count::Contiguous)),
            grouped(get(Count::Uniform)),
            grouped(get(Count::Scattered))
        );
        let bytes = COUNTED_SPACES.iter().map(|s| (s.name(), get(Count::Bytes(*s)))).filter(|(_, n)| *n > 0);
        let bytes: Vec<String> = bytes.map(|(name, n)| format!("{name} {}", size(n))).collect();
        out += &format!("  bytes         {}", if bytes.is_empty() { "none".into() } else { bytes.join(", ") });
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

/// `12 345 678`
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `1.5 MiB`
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = (0..units.len() - 1).find(|u| bytes >> (10 * (u + 1)) == 0).unwrap_or(units.len() - 1);
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{:.1} {}", bytes as f64 / (1u64 << (10 * unit)) as f64, units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_scaled() {
        assert_eq!([grouped(7), grouped(1000), grouped(12_345_678)], ["7", "1 000", "12 345 678"]);
        assert_eq!([size(0), size(1023), size(1536), size(3 << 30)], ["0 B", "1023 B", "1.5 KiB", "3.0 GiB"]);
    }
}
