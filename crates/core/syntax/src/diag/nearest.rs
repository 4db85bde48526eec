//! Suggestions of similar names.

/// The candidate that is nearest to what was written, if it is near enough: a third of the letters may differ. Swapped
/// neighbors count as one difference. Of equally near ones the first.
pub fn nearest<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let letters: Vec<char> = written.chars().take(64).collect();
    let limit = (letters.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len().abs_diff(written.len()) > 3 * limit || candidate == written {
            continue;
        }
        let distance = distance(&letters, candidate);
        if distance <= limit && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbors (optimal string alignment) that lead from one to the other.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (last[j] + (x != y) as usize).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_was_meant() {
        let ops = ["add", "and", "mad", "sad", "mul"];
        assert_eq!(nearest("ad", ops), Some("add"));
        assert_eq!(nearest("mlu", ops), Some("mul"));
        assert_eq!(nearest("xyz", ops), None);
        assert_eq!(nearest("", ops), None);
        assert_eq!(nearest(".maxntdi", [".maxnreg", ".maxntid"]), Some(".maxntid"));
    }
}
