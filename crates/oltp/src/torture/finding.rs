//! Damage that was met before and is understood.

use dbms::{Durability, System};
use serde::{Deserialize, Serialize};

use super::{Loss, TortureOptions};

/// A damage that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// InnoDB: the log after the last checkpoint does not fit a page that is older than it.
    InnodbUnsyncedPage,
}

impl Finding {
    /// What a server's last words name, where unsynced writes were lost and syncs were not lied
    /// about.
    pub(super) fn of(options: &TortureOptions, damage: &str) -> Option<Self> {
        // MariaDB's recv_recover_page(): a log record that the page's own state contradicts.
        let old_page =
            damage.contains("Not applying ") && damage.contains("due to corruption on [page id");
        let sound_disk = options.loss != Loss::Process && !options.lies;
        let sound_disk = sound_disk && options.settings.durability == Durability::Full;
        let known = options.system == System::Mariadb && sound_disk && old_page;
        known.then_some(Self::InnodbUnsyncedPage)
    }

    /// What it means, in a sentence, and where more stands.
    pub fn means(self) -> &'static str {
        match self {
            Self::InnodbUnsyncedPage => {
                "a page is older than the last checkpoint: InnoDB counts a page as durable that \
                 was written while an fsync was under way, and no later one covered it \
                 (docs/guide/innodb-checkpoints.md)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dbms::Places;

    use super::*;

    #[test]
    fn the_words_of_an_old_page_are_known() {
        let words = "mariadbd ended: [ERROR] InnoDB: Not applying INSERT_HEAP_DYNAMIC due to \
                     corruption on [page id: space=12, page number=116] / [ERROR] Aborting";
        let check = |system, change: &dyn Fn(&mut TortureOptions), words: &str| {
            let mut options = TortureOptions::new(system, Places::at("x"));
            options.loss = Loss::Unsynced;
            change(&mut options);
            Finding::of(&options, words)
        };
        let same = |_: &mut TortureOptions| {};
        let found = Some(Finding::InnodbUnsyncedPage);
        assert_eq!(check(System::Mariadb, &same, words), found);
        assert_eq!(check(System::Mariadb, &|o| o.loss = Loss::Torn, words), found);
        // Of these the cause is another.
        assert_eq!(check(System::Mariadb, &|o| o.lies = true, words), None);
        let relaxed = |o: &mut TortureOptions| o.settings.durability = Durability::Off;
        assert_eq!(check(System::Mariadb, &relaxed, words), None);
        assert_eq!(check(System::Mariadb, &|o| o.loss = Loss::Process, words), None);
        assert_eq!(check(System::Postgresql, &same, words), None);
        assert_eq!(check(System::Mariadb, &same, "[ERROR] InnoDB: corrupted doublewrite"), None);
    }
}
