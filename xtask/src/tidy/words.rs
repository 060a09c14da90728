//! Words and phrases that only this project would use, each with the word that a reader would
//! search for. They are looked for in everything that we write, also where a line ends between two
//! words of a phrase.
//!
//! A phrase belongs on the list when a reader of storage papers would have to guess what it means.

use std::path::Path;

/// A phrase that a reader has to guess, and what to write instead.
pub struct Word {
    /// In lower case; found only between the ends of words.
    pub not: &'static str,
    pub but: &'static str,
}

const fn word(not: &'static str, but: &'static str) -> Word {
    Word { not, but }
}

const WORDS: &[Word] = &[
    word("how-manieth", "sequence number"),
    word("is so no more", "a verb: invalidates, releases, ends"),
    word("no talk is possible", "required capabilities"),
    word("who we are", "authentication, identity, credentials"),
    word("what the capture brought home", "result of a capture"),
    word("brought home", "result, records"),
    word("you stand on", "of the current directory"),
    word("the rooms", "the components"),
    word("its rooms", "its components"),
    word("a wish", "a request"),
    word("'s wish", "'s request"),
    word("the wish", "the request"),
    word("wishes", "requests"),
    word("at most so often", "at most this many times"),
    word("so often the", "how often, or the count by its name"),
    word("a time that does not come", "later than any event"),
    word("the command before", "the previous command"),
    word("nobody offered", "was not offered"),
    word("nobody listens", "no server is listening; there is no observer"),
    word("held against", "compared with, checked against"),
    word("hold it against", "compare it with"),
    word("for want of", "because there is no"),
    word("client of old", "old client"),
    word("clients of old", "old clients"),
    word("kernel of old", "old kernel"),
    word("of today", "current"),
    word("what became of", "the outcome of, what happened to"),
    word("asks after", "asks for"),
    word("cannot be had", "is not available, is not possible"),
    word("to be had", "available"),
    word("given up for loss", "named as expendable"),
    word("of so many", "of this many, or the count by its name"),
    word("for so many", "for this many"),
    word("after so many", "after this many"),
    word("at most so many", "at most this many"),
    word("in so many", "in this many"),
    word("every so many", "every N"),
    word("up to so many", "up to this many"),
    word("so many ns", "this many ns"),
    word("so many times", "this many times"),
    word("makes room for so", "makes room for this"),
    word("and the like of", "such as"),
    word("and its like", "and similar statements"),
    word("has to say", "reports"),
    word("have to say", "report"),
    word("flushs", "flushes"),
    word("to and fro", "back and forth"),
    word("disk that is meant", "disk to measure"),
    word("disk is meant", "disk to measure"),
];

/// Whether a file, named from the root, is held to the list: the journal is history, and here they
/// stand.
pub fn is_checked(path: &Path) -> bool {
    !path.starts_with("docs/journal") && path != Path::new("xtask/src/tidy/words.rs")
}

/// The phrases of the list in `text`, with the lines on which they start.
pub fn found(text: &str) -> Vec<(usize, &'static Word)> {
    let lines: Vec<String> = text.lines().map(bare).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut window = line.clone();
        if let Some(next) = lines.get(at + 1) {
            window.push(' ');
            window.push_str(next);
        }
        for word in WORDS {
            if occurs(word.not, &window, line.len()) {
                found.push((at + 1, word));
            }
        }
    }
    found
}

/// A line in lower case without the mark of a comment and the end of a broken string.
fn bare(line: &str) -> String {
    let line = line.trim().trim_start_matches(['/', '!', '#', '>']).trim_end_matches('\\').trim();
    line.to_lowercase()
}

/// Whether `phrase` stands in `window` as words of its own and starts before `end`.
fn occurs(phrase: &str, window: &str, end: usize) -> bool {
    window.match_indices(phrase).any(|(at, _)| {
        let joins = |text: Option<char>| text.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let before = window[..at].chars().next_back();
        let before = !phrase.starts_with('\'') && joins(before);
        at < end && !before && !joins(window[at + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::found;

    fn words(text: &str) -> Vec<(usize, &'static str)> {
        found(text).into_iter().map(|(line, word)| (line, word.not)).collect()
    }

    #[test]
    fn phrases_are_found_over_the_end_of_a_line_and_only_as_words() {
        assert_eq!(
            words("/// Compared with what it was held\n    /// against.\n"),
            [(1, "held against")]
        );
        assert_eq!(words("fn of_so_many(year: u32) // held, against\n"), []);
        assert_eq!(words("let text = \"the kernel of\\\n     Today\";"), [(1, "of today")]);
        assert_eq!(words("the user's wish to stop"), [(1, "'s wish")]);
    }
}
