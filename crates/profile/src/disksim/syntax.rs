//! The syntax of DiskSim parameter files, as far as drives need it.
//!
//! Written from the DiskSim 4.0 manual's chapter on the parameter file and from the files: blocks
//! `TYPE NAME { Key with spaces = value, ... }`, values that are numbers, words, lists `[ ... ]`,
//! blocks, or `source FILE`; comments from `#` to the end of the line; statements `source FILE`,
//! `instantiate [ ... ] as NAME` and `topology ...` between blocks. Commas separate but are not
//! insisted on. What is not understood between blocks is skipped word by word: topologies and
//! workloads do not describe a drive.

use std::collections::BTreeMap;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Word(String),
    List(Vec<Value>),
    Block(Block),
    /// `source FILE`: the content is another file.
    Source(String),
}

/// A block with its entries by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Block {
    pub kind: String,
    pub name: String,
    /// Line of the opening, from 1.
    pub line: usize,
    pub entries: BTreeMap<String, Value>,
}

/// What stands at the top level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct File {
    pub blocks: Vec<Block>,
    /// Files named by `source`, in order.
    pub sources: Vec<String>,
}

/// A mistake: its line, from 1, and what is wrong.
pub(super) type Mistake = (usize, String);

/// Deepest nesting that is followed.
const MOST_DEPTH: usize = 32;

/// Reads a whole file.
pub(super) fn parse(text: &str) -> Result<File, Mistake> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut file = File::default();
    while let Some((_, token)) = parser.peek() {
        match token {
            "source" => {
                parser.at += 1;
                file.sources.push(parser.word("a file after 'source'")?);
            }
            // `KIND NAME {`: everything else between blocks is no description of a drive.
            _ if parser.ahead(2) == Some("{") => {
                let line = parser.line();
                let kind = parser.word("a block")?;
                let name = parser.word("the name of a block")?;
                parser.at += 1;
                file.blocks.push(parser.block(kind, name, line, 0)?);
            }
            _ => parser.at += 1,
        }
    }
    Ok(file)
}

struct Parser<'a> {
    tokens: Vec<(usize, &'a str)>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<(usize, &'a str)> {
        self.tokens.get(self.at).copied()
    }

    fn ahead(&self, by: usize) -> Option<&'a str> {
        self.tokens.get(self.at + by).map(|(_, token)| *token)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(line, _)| *line)
    }

    fn word(&mut self, wanted: &str) -> Result<String, Mistake> {
        match self.peek() {
            Some((_, token)) if !is_mark(token) => {
                self.at += 1;
                Ok(token.to_owned())
            }
            _ => Err((self.line(), format!("expected {wanted}"))),
        }
    }

    /// The entries up to and including the closing brace.
    fn block(
        &mut self,
        kind: String,
        name: String,
        line: usize,
        depth: usize,
    ) -> Result<Block, Mistake> {
        let mut block = Block { kind, name, line, entries: BTreeMap::new() };
        loop {
            match self.peek() {
                Some((_, "}")) => {
                    self.at += 1;
                    return Ok(block);
                }
                Some((_, ",")) => self.at += 1,
                Some(_) => {
                    let key = self.key()?;
                    let value = self.value(depth + 1)?;
                    block.entries.insert(key, value);
                }
                None => return Err((line, format!("'{} {{' is not closed", block.kind))),
            }
        }
    }

    /// The words before an equals sign, joined by single spaces.
    fn key(&mut self) -> Result<String, Mistake> {
        let mut words = Vec::new();
        loop {
            match self.peek() {
                Some((_, "=")) if !words.is_empty() => {
                    self.at += 1;
                    return Ok(words.join(" "));
                }
                Some((_, token)) if !is_mark(token) => {
                    self.at += 1;
                    words.push(token);
                }
                _ => return Err((self.line(), "expected 'Name = value'".to_owned())),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Mistake> {
        let line = self.line();
        if depth > MOST_DEPTH {
            return Err((line, "blocks are nested too deeply".to_owned()));
        }
        let Some((_, token)) = self.peek() else {
            return Err((line, "a value is missing".to_owned()));
        };
        self.at += 1;
        match token {
            "[" => self.list(line, depth),
            "source" => self.word("a file after 'source'").map(Value::Source),
            _ if is_mark(token) => Err((line, format!("'{token}' is not a value"))),
            _ if self.peek().is_some_and(|(_, next)| next == "{") => {
                self.at += 1;
                self.block(token.to_owned(), String::new(), line, depth).map(Value::Block)
            }
            _ => Ok(token.parse().map_or_else(|_| Value::Word(token.to_owned()), Value::Number)),
        }
    }

    fn list(&mut self, line: usize, depth: usize) -> Result<Value, Mistake> {
        let mut items = Vec::new();
        loop {
            match self.peek() {
                Some((_, "]")) => {
                    self.at += 1;
                    return Ok(Value::List(items));
                }
                Some((_, ",")) => self.at += 1,
                Some(_) => items.push(self.value(depth + 1)?),
                None => return Err((line, "'[' is not closed".to_owned())),
            }
        }
    }
}

fn is_mark(token: &str) -> bool {
    matches!(token, "{" | "}" | "[" | "]" | "=" | ",")
}

/// Words and marks with their lines; comments are left out.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            let Some(first) = rest.chars().next() else { break };
            let length = if is_mark(&rest[..first.len_utf8()]) {
                first.len_utf8()
            } else {
                rest.find(|c: char| c.is_whitespace() || "{}[]=,".contains(c)).unwrap_or(rest.len())
            };
            out.push((index + 1, &rest[..length]));
            rest = &rest[length..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_stands_in_the_files() {
        let text = "# a drive\nsource other.specs\ninstantiate [ a, b ] as X\n\
                    topology t d [ e f [] ]\n\
                    disksim_disk NAME { Model = source m.model, Some key (in ms) = -0.5, # why\n \
                    Inner = kind { A = [ 1, 2 3 ] }, Type = word }\ndisksim_bus B { type = 1 }";
        let file = parse(text).expect("it is sound");
        assert_eq!(file.sources, ["other.specs"]);
        assert_eq!(file.blocks.len(), 2);
        let disk = &file.blocks[0];
        assert_eq!(
            (disk.kind.as_str(), disk.name.as_str(), disk.line),
            ("disksim_disk", "NAME", 5)
        );
        assert_eq!(disk.entries["Model"], Value::Source("m.model".to_owned()));
        assert_eq!(disk.entries["Some key (in ms)"], Value::Number(-0.5));
        assert_eq!(disk.entries["Type"], Value::Word("word".to_owned()));
        let Value::Block(inner) = &disk.entries["Inner"] else { panic!("a block") };
        let list = [1.0, 2.0, 3.0].map(Value::Number).to_vec();
        assert_eq!(inner.entries["A"], Value::List(list));
    }

    #[test]
    fn mistakes_name_their_line() {
        let check = |text: &str, line: usize, cause: &str| {
            assert_eq!(parse(text), Err((line, cause.to_owned())), "{text}");
        };
        check("a b {\nK = 1,\n", 1, "'a {' is not closed");
        check("a b {\n\nK }", 3, "expected 'Name = value'");
        check("a b { K = [ 1, 2", 1, "'[' is not closed");
        check("a b { K = , }", 1, "',' is not a value");
        check("source", 1, "expected a file after 'source'");
        let deep = format!("a b {{ K = {}", "[".repeat(100_000));
        check(&deep, 1, "blocks are nested too deeply");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[a-c0-9 =,.\\[\\]{}#\n-]{0,200}|\\PC{0,80}") {
            let _ = parse(&text);
        }
    }
}
