//! SQL text cut into statements, with its named parameters and the lines that stand before them.
//!
//! Only what separates is understood: texts, quoted names, comments, dollar quotes, semicolons, and
//! `:name` that is neither a cast (`::type`) nor an assignment (`:=`). Everything else is the
//! DBMS's. A comment right before a statement may say what is expected of it (`-- rows: 1`) and
//! where its first row goes (`-- into: a, b`).

use super::parser::is_of_a_name;

/// One statement as it stands in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Line of its first word, from 1.
    pub line: usize,
    /// Parts of its text: the code between parameters, and after each the parameter's name.
    pub parts: Vec<(String, Option<String>)>,
    /// The words outside texts, quotes and comments, in capitals.
    pub words: Vec<String>,
    /// What `-- rows:` says.
    pub rows: Option<String>,
    /// What `-- into:` says.
    pub into: Option<String>,
}

impl Piece {
    /// The statement with every parameter replaced by what `of` makes of its name.
    pub fn text(&self, mut of: impl FnMut(&str) -> String) -> String {
        let mut text = String::new();
        for (code, name) in &self.parts {
            text.push_str(code);
            if let Some(name) = name {
                text.push_str(&of(name));
            }
        }
        text.trim().to_owned()
    }

    /// The names of its parameters, in order, repeated ones again.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|(_, name)| name.as_deref())
    }

    /// Whether it may change something, by its words.
    pub fn writes(&self) -> bool {
        let first = self.words.first().map_or("", String::as_str);
        let reads = matches!(first, "SELECT" | "VALUES" | "TABLE" | "WITH" | "SHOW");
        let changes = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "SHARE"];
        !reads || self.words.iter().any(|word| changes.contains(&word.as_str()))
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Cuts a text into statements; `first` is the number of its first line.
///
/// # Errors
/// The line of a text or comment that does not end, and what it is.
pub fn statements(text: &str, first: usize) -> Result<Vec<Piece>, (usize, String)> {
    let mut cutter =
        Cutter { rest: text, line: first, piece: Piece::default(), code: String::new() };
    let mut pieces = Vec::new();
    while !cutter.rest.is_empty() {
        if cutter.step()? {
            pieces.extend(cutter.take());
        }
    }
    pieces.extend(cutter.take());
    Ok(pieces)
}

struct Cutter<'a> {
    rest: &'a str,
    line: usize,
    piece: Piece,
    /// Since the last parameter.
    code: String,
}

impl Cutter<'_> {
    /// Takes the next part; tells whether a statement ends with it.
    fn step(&mut self) -> Result<bool, (usize, String)> {
        let rest = self.rest;
        let first = rest.chars().next().unwrap_or(' ');
        if rest.starts_with("--") {
            let end = rest.find('\n').unwrap_or(rest.len());
            self.comment(rest[2..end].trim());
            self.skip(end);
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or((self.line, "a comment without its end".to_owned()))?;
            self.skip(end + 2);
            self.code.push(' ');
        } else if matches!(first, '\'' | '"' | '`') {
            self.quoted(first)?;
        } else if first == '$' && dollar_quote(rest).is_some() {
            self.dollar_quoted()?;
        } else if first == ';' {
            self.skip(1);
            return Ok(true);
        } else if rest.starts_with("::") || rest.starts_with(":=") {
            self.copy(2);
        } else if first == ':' && rest[1..].starts_with(|c: char| c == '_' || c.is_alphabetic()) {
            self.begin();
            let name: String = rest[1..].chars().take_while(|c| is_of_a_name(*c)).collect();
            self.skip(1 + name.len());
            self.piece.parts.push((std::mem::take(&mut self.code), Some(name)));
        } else if is_of_a_name(first) {
            self.begin();
            let word: String = rest.chars().take_while(|c| is_of_a_name(*c)).collect();
            self.copy(word.len());
            self.piece.words.push(word.to_uppercase());
        } else {
            self.copy(first.len_utf8());
        }
        Ok(false)
    }

    /// A statement begins where its first word does.
    fn begin(&mut self) {
        if self.piece.line == 0 {
            self.piece.line = self.line;
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.line += self.rest[..bytes].matches('\n').count();
        self.rest = &self.rest[bytes..];
    }

    fn copy(&mut self, bytes: usize) {
        self.code.push_str(&self.rest[..bytes]);
        self.skip(bytes);
    }

    fn comment(&mut self, text: &str) {
        if !self.piece.is_empty() {
            return;
        }
        if let Some(rows) = text.strip_prefix("rows:") {
            self.piece.rows = Some(rows.trim().to_owned());
        } else if let Some(into) = text.strip_prefix("into:") {
            self.piece.into = Some(into.trim().to_owned());
        }
    }

    fn quoted(&mut self, quote: char) -> Result<(), (usize, String)> {
        self.begin();
        let end = self.rest[1..].find(quote);
        let end = end.ok_or((self.line, format!("{quote} without its end")))?;
        self.copy(end + 2);
        Ok(())
    }

    fn dollar_quoted(&mut self) -> Result<(), (usize, String)> {
        self.begin();
        let tag = dollar_quote(self.rest).unwrap_or("$$");
        let end = self.rest[tag.len()..].find(tag);
        let end = end.ok_or((self.line, format!("{tag} without its end")))?;
        self.copy(end + 2 * tag.len());
        Ok(())
    }

    /// The statement so far, where there is one.
    fn take(&mut self) -> Option<Piece> {
        self.piece.parts.push((std::mem::take(&mut self.code), None));
        let piece = std::mem::take(&mut self.piece);
        (!piece.is_empty()).then_some(piece)
    }
}

/// The tag that a dollar quote begins with.
fn dollar_quote(text: &str) -> Option<&str> {
    let end = 1 + text[1..].find(|c: char| !is_of_a_name(c))?;
    let number = text[1..].starts_with(|c: char| c.is_ascii_digit());
    (text[end..].starts_with('$') && !number).then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(usize, String)> {
        let pieces = statements(text, 1).unwrap();
        pieces.iter().map(|p| (p.line, p.text(|name| format!("<{name}>")))).collect()
    }

    #[test]
    fn statements_are_cut_and_parameters_found() {
        let text = "-- the first\nSELECT a::int, ':no; ' || \"x;:y\" FROM t -- :not\n\
                    \x20WHERE b = :b\n\
                    ;;\n/* ; */ UPDATE t SET a = :a, `c;` = :b_2;";
        let expected = [
            (2, "SELECT a::int, ':no; ' || \"x;:y\" FROM t \n WHERE b = <b>".to_owned()),
            (5, "UPDATE t SET a = <a>, `c;` = <b_2>".to_owned()),
        ];
        assert_eq!(cut(text), expected);
        assert_eq!(cut("DO $x$ a; :b $x$; SELECT $1")[0].1, "DO $x$ a; :b $x$");
        assert_eq!(cut("SELECT 'it''s; :x'")[0].1, "SELECT 'it''s; :x'");
        assert_eq!(statements("SELECT\n 'a", 3).unwrap_err(), (4, "' without its end".to_owned()));
    }

    #[test]
    fn comments_before_a_statement_say_what_is_expected() {
        let text = "-- rows: 1\n-- into: a, b\nSELECT x, y FROM t;\nSELECT 1 -- rows: 5\n";
        let pieces = statements(text, 1).unwrap();
        assert_eq!(pieces[0].rows.as_deref(), Some("1"));
        assert_eq!(pieces[0].into.as_deref(), Some("a, b"));
        assert_eq!((&pieces[1].rows, &pieces[1].into), (&None, &None));
    }

    #[test]
    fn reading_is_told_from_writing() {
        for (text, writes) in [
            ("SELECT 1", false),
            ("WITH a AS (SELECT 1) SELECT * FROM a", false),
            ("SELECT 'UPDATE' FROM t", false),
            ("SELECT a FROM t FOR UPDATE", true),
            ("SELECT a FROM t LOCK IN SHARE MODE", true),
            ("WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a", true),
            ("insert into t values (1)", true),
            ("CALL p()", true),
        ] {
            assert_eq!(statements(text, 1).unwrap()[0].writes(), writes, "{text}");
        }
    }
}
