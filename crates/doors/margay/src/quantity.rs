//! Quantities in messages: counts with their nouns, groups of digits, sizes in bytes.

/// `1 launch`, `2 launches`
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", noun(n, one, many))
}

/// The form of a noun that goes with a number.
pub fn noun<'w>(n: u64, one: &'w str, many: &'w str) -> &'w str {
    if n == 1 { one } else { many }
}

/// `12 345 678`
pub fn grouped(n: u64) -> String {
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
        assert_eq!([0, 1, 2].map(|n| count(n, "launch", "launches")), ["0 launches", "1 launch", "2 launches"]);
    }
}
