//! The longest line that we write, in every kind of file, and `cargo xtask wrap`, which breaks the
//! lines of Markdown and TOML that are longer.
//!
//! Left alone, because they cannot be broken: rows of tables, a line that is one word (a link), and
//! what stands between fences of Markdown, which is copied to a shell or from it.

pub mod markdown;
mod toml;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Longest line, in characters; rustfmt's `max_width`.
pub const COLUMNS: usize = 100;

/// Kinds of files that people write and read. Lock files, data and pictures are none of them.
const KINDS: &[&str] = &["rs", "toml", "md", "py", "pyi", "js", "yml", "sh"];

/// Folders that hold nothing that we wrote.
const SKIPPED: &[&str] = &["target", ".git", "node_modules", "__pycache__", "runs", "corpus"];

/// Every file that people write, below `folder`.
pub fn written(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
            collect(&path, files)?;
        } else if kind.is_file() && has_kind(&path, KINDS) {
            files.push(path);
        }
    }
    Ok(())
}

fn has_kind(path: &Path, kinds: &[&str]) -> bool {
    path.extension().is_some_and(|extension| kinds.iter().any(|kind| extension == *kind))
}

/// Numbers of the lines of `text` that are too long and could be broken.
pub fn too_long(text: &str) -> impl Iterator<Item = usize> {
    let mut fenced = false;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        fenced ^= line.starts_with("```");
        is_long(line) && !fenced && breakable(line)
    });
    lines.map(|(at, _)| at + 1)
}

fn is_long(line: &str) -> bool {
    line.chars().count() > COLUMNS
}

/// Neither a row of a table nor a single word behind the mark of a list or of a comment.
fn breakable(line: &str) -> bool {
    let text = line.trim_start();
    let text = text.trim_start_matches("//!").trim_start_matches("///").trim_start();
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric));
    !text.starts_with('|') && words.count() > 1
}

/// Breaks what is too long in Markdown and TOML below `folder`; names the files.
pub fn wrap(folder: &Path) -> anyhow::Result<()> {
    for path in written(folder)? {
        let text = fs::read_to_string(&path)?;
        let wrapped = match path.extension().and_then(|extension| extension.to_str()) {
            Some("md") => markdown::wrap(&text),
            Some("toml") => toml::wrap(&text),
            _ => continue,
        };
        if wrapped != text {
            fs::write(&path, wrapped).with_context(|| path.display().to_string())?;
            println!("wrapped {}", path.display());
        }
    }
    Ok(())
}

/// Fills lines with `words`: `first` begins the first line, `next` the others, and `after` columns
/// are left free at their ends.
///
/// A word that would be a mark at the start of a line (`-`, `1.`, `#`) stays on the line of the
/// previous word.
fn fill(words: &[&str], first: &str, next: &str, after: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    let mut index = 0;
    while index < words.len() {
        let mut end = index + 1;
        while end < words.len() && is_mark(words[end]) {
            end += 1;
        }
        let piece = words[index..end].join(" ");
        let width = line.chars().count() + usize::from(!empty) + piece.chars().count();
        if !empty && width + after > COLUMNS {
            lines.push(std::mem::replace(&mut line, next.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&piece);
        empty = false;
        index = end;
    }
    lines.push(line);
    lines
}

/// Whether a word at the start of a line would be read as the mark of a list, a quotation, a
/// heading or a table.
fn is_mark(word: &str) -> bool {
    let numbered = word.strip_suffix(['.', ')']).is_some_and(|number| {
        !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit())
    });
    numbered || matches!(word, "-" | "*" | "+" | "=") || word.starts_with(['#', '>', '|'])
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, fill, too_long};

    #[test]
    fn characters_count_and_what_cannot_be_broken_is_excused() {
        let fits = "\u{2588} ".repeat(COLUMNS / 2);
        let long = "word ".repeat(COLUMNS / 5) + "x";
        let link = format!("- [x](https://example.org/{})", "a".repeat(COLUMNS));
        let row = format!("| {long} |");
        let fence = format!("```sh\n{long}\n```");
        let text = format!("{fits}\n{long}\n{link}\n{row}\n{fence}\n    // {long}\n");
        assert_eq!(too_long(&text).collect::<Vec<_>>(), [2, 8]);
    }

    #[test]
    fn no_line_starts_with_a_mark() {
        let long = "w".repeat(COLUMNS - 5);
        let lines = fill(&["a bit", &long, "-", "b"], "", "  ", 0);
        assert_eq!(lines, ["a bit".to_owned(), format!("  {long} -"), "  b".to_owned()]);
    }
}
