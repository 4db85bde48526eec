//! Cross-instruction rules, one file each.
