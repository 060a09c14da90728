//! Printing results: JSON or aligned text, to a pipe that may be gone.

use std::io::Write;

use serde::Serialize;

/// Prints a value as indented JSON.
pub fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Prints text; a closed pipe is an error that `main` forgives.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Whether standard output wants colour (NO_COLOR, see no-color.org, wins).
pub fn colour() -> bool {
    use std::io::IsTerminal;
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Columns of the terminal; 100 where there is none.
pub fn terminal_width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(100, |size| usize::from(size.ws_col))
}

/// Rows as columns separated by two spaces; numbers (anything that starts with a digit or a minus)
/// to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let number = cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            let padded =
                if number { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            line.push_str(&padded);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A sentence in lines of at most `width` columns, the later ones indented.
pub fn filled(sentence: &str, width: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push_str("\n ");
            column = 1;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn sentences_are_filled() {
        assert_eq!(super::filled("a bb ccc dddd", 6), "a bb\n  ccc\n  dddd\n");
        assert_eq!(super::filled("longer than", 3), "longer\n  than\n");
    }

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = [["name", "count"], ["a", "7"], ["long name", "1234567"]];
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.map(String::from).to_vec()).collect();
        assert_eq!(
            super::table(&rows),
            "name       count\na                7\nlong name  1234567\n"
        );
    }
}
