//! Plain tables for the terminal, and the numbers in them.

/// Rows of cells as aligned text: the first column to the left, the others to the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(
                |(i, (cell, &width))| {
                    if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
    let mut text = line(&mut header.iter().copied());
    text += &line(&mut rule.iter().map(String::as_str));
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

/// Four significant digits or so, at any size.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1000.0..1e7).contains(&size) {
        format!("{value:.0}")
    } else if (0.1..1000.0).contains(&size) {
        let decimals = if size >= 100.0 {
            1
        } else if size >= 10.0 {
            2
        } else {
            3
        };
        format!("{value:.decimals$}")
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters_not_bytes() {
        let text = table(&["name", "ρ"], &[vec!["a".into(), "12".into()], vec!["β×γ δε".into(), "3".into()]]);
        assert_eq!(text, "name     ρ\n──────  ──\na       12\nβ×γ δε   3\n");
    }

    #[test]
    fn numbers_have_about_four_digits() {
        let cases = [
            (0.0, "0"),
            (1234.6, "1235"),
            (498.21, "498.2"),
            (8.3619, "8.362"),
            (0.5, "0.500"),
            (-12.345, "-12.35"),
            (0.01234, "1.23e-2"),
            (5e60, "5.00e60"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
