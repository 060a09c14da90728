//! Long lines of TOML: comments are filled anew; a string that makes its line too long becomes a
//! multi-line string whose line ends are escaped, which has the same value.

use super::{COLUMNS, fill, is_long, is_mark};

/// `text` with its long comments and strings broken.
pub fn wrap(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut inside = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let starts_inside = inside;
        inside ^= line.matches("\"\"\"").count() % 2 == 1;
        at += 1;
        if starts_inside || inside || !is_long(line) {
            out.push(line.to_owned());
        } else if line.trim_start().starts_with('#') {
            let prefix = &line[..line.len() - line.trim_start().len()];
            let prefix = format!("{prefix}# ");
            let end = at + lines[at..].iter().take_while(|next| continues(next, &prefix)).count();
            let texts = lines[at - 1..end].iter().map(|line| line.trim_start_matches([' ', '#']));
            let words: Vec<&str> = texts.flat_map(str::split_whitespace).collect();
            out.extend(fill(&words, &prefix, &prefix, 0));
            at = end;
        } else {
            out.extend(value(line));
        }
    }
    let mut wrapped = out.join("\n");
    if text.ends_with('\n') {
        wrapped.push('\n');
    }
    wrapped
}

/// A comment that goes on with the sentence above it.
fn continues(line: &str, prefix: &str) -> bool {
    line.strip_prefix(prefix).is_some_and(|text| {
        !text.starts_with(' ')
            && !text.split(' ').next().is_none_or(is_mark)
            && !text.contains(" = ")
    })
}

/// The lines for a long line with a value: its longest string is broken, if that helps.
fn value(line: &str) -> Vec<String> {
    let Some((from, to)) = strings(line).into_iter().max_by_key(|(from, to)| to - from) else {
        return vec![line.to_owned()];
    };
    let (before, string, after) = (&line[..from], &line[from + 1..to], &line[to + 1..]);
    if string.split_whitespace().count() < 2 || string.contains("  ") || string.starts_with(' ') {
        return vec![line.to_owned()];
    }
    let words: Vec<&str> = string.split(' ').collect();
    // The last word bears the end of the string and what follows it, as far as it fits.
    let last = format!("{}\"\"\"{after}", words[words.len() - 1]);
    let mut words = words;
    *words.last_mut().expect("a string has a word") = &last;
    let mut lines = vec![format!("{before}\"\"\"\\")];
    let filled = fill(&words, "  ", "  ", 2);
    let count = filled.len();
    for (index, mut text) in filled.into_iter().enumerate() {
        if index + 1 < count {
            text.push_str(" \\");
        }
        lines.push(text);
    }
    if lines.iter().any(|line| line.chars().count() > COLUMNS) {
        vec![line.to_owned()]
    } else {
        lines
    }
}

/// Where the basic strings of a line start and end: the places of their quotation marks.
fn strings(line: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut open, mut escaped) = (None, false);
    for (at, character) in line.char_indices() {
        match (character, open) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
            ('"', None) => open = Some(at),
            ('"', Some(from)) => {
                found.push((from, at));
                open = None;
            }
            ('#', None) => break,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::wrap;
    use crate::lines::too_long;

    #[test]
    fn broken_strings_keep_their_values() {
        let long = "a source \\\"with\\\" words, ".repeat(12) + "end";
        let text = format!(
            "# {long}\nx = {{ value = 1, source = \"{long}\", assumed = true }}\ny = \"{long}\"\n\
             z = [\"short\"]\n"
        );
        let wrapped = wrap(&text);
        assert_eq!(too_long(&wrapped).count(), 0, "{wrapped}");
        // What TOML makes of a line end that is escaped.
        let mut joined = String::new();
        for line in wrapped.lines().skip_while(|line| line.starts_with('#')) {
            let (line, escaped) = match line.strip_suffix('\\') {
                Some(line) => (line, true),
                None => (line, false),
            };
            joined.push_str(line.trim_start());
            joined.push_str(if escaped { "" } else { "\n" });
        }
        let joined = joined.replace("\"\"\"", "\"");
        let values = text.split_once('\n').expect("a comment").1;
        assert_eq!(joined, values);
        assert_eq!(wrap(&wrapped), wrapped);
    }
}
