//! Long lines of Markdown: a paragraph or an entry of a list is filled anew from its first line
//! that is too long; fences, tables, headings and HTML are left alone.

use super::{breakable, fill, is_long, is_mark};

/// `text` with its long paragraphs broken.
pub fn wrap(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut fenced = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fence || fenced || !is_text(line) || !is_long(line) || !breakable(line) {
            out.push(line.to_owned());
            at += 1;
            continue;
        }
        let end = at + 1 + lines[at + 1..].iter().take_while(|line| continues(line)).count();
        let (first, text) = line.split_at(mark(line));
        // Continuation lines of the entry, or of the paragraph in the middle of which we are.
        let next = match lines.get(at + 1).filter(|_| end > at + 1) {
            Some(next) => " ".repeat(indent(next)),
            None => " ".repeat(first.len()),
        };
        let text = [text].into_iter().chain(lines[at + 1..end].iter().copied());
        let words: Vec<&str> = text.flat_map(str::split_whitespace).collect();
        out.extend(fill(&words, first, &next, 0));
        at = end;
    }
    let mut wrapped = out.join("\n");
    if text.ends_with('\n') {
        wrapped.push('\n');
    }
    wrapped
}

/// A line of a paragraph or of a list.
fn is_text(line: &str) -> bool {
    let text = line.trim_start();
    !text.is_empty() && !text.starts_with(['|', '#', '<', '>']) && indent(line) < 12
}

/// A line that belongs to the paragraph above it.
fn continues(line: &&str) -> bool {
    let first = line.split_whitespace().next().unwrap_or("");
    is_text(line) && !is_mark(first) && !first.starts_with("```")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Bytes of the indentation and of the mark of a list, with the space behind it.
fn mark(line: &str) -> usize {
    let indent = indent(line);
    let first = line[indent..].split(' ').next().unwrap_or("");
    if is_mark(first) { indent + first.len() + 1 } else { indent }
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn a_paragraph_is_filled_from_its_long_line_on_and_the_rest_is_left() {
        let long = "word ".repeat(25);
        let long = long.trim_end();
        let text = format!(
            "# {long}\n\nshort\n{long}\nlast\n\n- {long}\n  end\n- b\n\n```text\n{long}\n```\n\
             | {long} |\n"
        );
        let twenty = "word ".repeat(20);
        let expected = format!(
            "# {long}\n\nshort\n{0}\nword word word word word last\n\n- {1}\n  word word word word \
             word word end\n- b\n\n```text\n{long}\n```\n| {long} |\n",
            twenty.trim_end(),
            "word ".repeat(19).trim_end()
        );
        assert_eq!(wrap(&text), expected);
        assert_eq!(wrap(&expected), expected);
    }
}
