//! Verdicts in the forms that people and their tools read.

use report::format;

use crate::verdict::{Compared, Verdict, Whole, whole};

/// The first line of the Markdown form.
pub const MARKDOWN_MARK: &str = "<!-- wearmark compare -->";
/// The name of the suite in the JUnit form.
pub const JUNIT_NAME: &str = "wearmark compare";
/// The first line of the CSV form.
pub const CSV_HEADER: &str =
    "figure,unit,more_is_better,old,new,ratio,ratio_low,ratio_high,verdict";

/// New over old, with its interval.
fn ratio(figure: &Compared) -> String {
    figure.ratio.map_or_else(
        || "-".to_owned(),
        |ratio| format::ratio_with_interval(ratio.ratio, (ratio.low, ratio.high)),
    )
}

/// Rows for the terminal; the first is the header.
pub fn rows(compared: &[Compared]) -> Vec<Vec<String>> {
    let header = ["FIGURE", "UNIT", "OLD", "NEW", "NEW/OLD", "VERDICT"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for figure in compared {
        rows.push(vec![
            figure.figure.clone(),
            figure.unit.clone(),
            format::count(figure.old),
            format::count(figure.new),
            ratio(figure),
            figure.words(),
        ]);
    }
    rows
}

/// The verdict on the whole, one sentence.
pub fn headline(compared: &[Compared], bound: f64) -> String {
    let bound = format::percent(bound);
    let named = |verdicts: &[Verdict]| {
        let of = |figure: &&Compared| verdicts.contains(&figure.verdict);
        let names = compared.iter().filter(of).map(|figure| figure.figure.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    match whole(compared) {
        Whole::Regression => {
            format!("Regression beyond {bound}: {}", named(&[Verdict::Regressed]))
        }
        Whole::NoRegression => format!("No regression beyond {bound}"),
        Whole::NoVerdict if compared.is_empty() => "No verdict: no figure in common".to_owned(),
        Whole::NoVerdict => {
            let open = named(&[Verdict::Unproven, Verdict::TooWide]);
            format!("No verdict at a bound of {bound}: {open}")
        }
    }
}

/// A comment for a pull request.
pub fn markdown(
    compared: &[Compared],
    bound: f64,
    confidence: f64,
    (old, new): (&str, &str),
) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut text = format!(
        "{MARKDOWN_MARK}\n**{}**\n\n`{new}` against `{old}`; medians, ratios with intervals of \
         {}.\n\n",
        headline(compared, bound),
        format::percent(confidence)
    );
    text.push_str("| figure | unit | old | new | new/old | verdict |\n|---|---|--:|--:|--:|---|\n");
    for row in rows(compared).iter().skip(1) {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// A test report: a figure that regressed failed, one without a verdict was skipped.
pub fn junit(compared: &[Compared]) -> String {
    let count =
        |of: &dyn Fn(Verdict) -> bool| compared.iter().filter(|figure| of(figure.verdict)).count();
    let is_open = |verdict| matches!(verdict, Verdict::Unproven | Verdict::TooWide);
    let failed = count(&|verdict| verdict == Verdict::Regressed);
    let skipped = count(&is_open);
    let counts =
        format!("tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\"", compared.len());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{JUNIT_NAME}\" {counts}>\n\
         <testsuite name=\"{JUNIT_NAME}\" {counts}>\n"
    );
    for figure in compared {
        let name = escape(&format!("{} ({})", figure.figure, figure.unit));
        let told = escape(&format!(
            "{} to {}, new/old {}: {}",
            format::count(figure.old),
            format::count(figure.new),
            ratio(figure),
            figure.words()
        ));
        text.push_str(&format!("<testcase classname=\"wearmark\" name=\"{name}\">\n"));
        match figure.verdict {
            Verdict::Regressed => text.push_str(&format!("<failure message=\"{told}\"/>")),
            open if is_open(open) => text.push_str(&format!("<skipped message=\"{told}\"/>")),
            _ => text.push_str(&format!("<system-out>{told}</system-out>")),
        }
        text.push_str("\n</testcase>\n");
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// A text as part of XML.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

/// A table for other programs; where there is no ratio its fields are empty.
pub fn csv(compared: &[Compared]) -> String {
    let quoted = |text: &str| {
        let needs = text.contains([',', '"', '\n']);
        if needs { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let mut text = format!("{CSV_HEADER}\n");
    for figure in compared {
        let ratio = figure.ratio.map_or_else(
            || ",,".to_owned(),
            |ratio| format!("{},{},{}", ratio.ratio, ratio.low, ratio.high),
        );
        let verdict = serde_json::to_value(figure.verdict).expect("verdicts are words");
        text.push_str(&format!(
            "{},{},{},{},{},{ratio},{}\n",
            quoted(&figure.figure),
            quoted(&figure.unit),
            figure.more_is_better,
            figure.old,
            figure.new,
            verdict.as_str().unwrap_or_default()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Figure, Scatter, Side, compare};

    fn compared() -> Vec<Compared> {
        let side = |p99: f64| Side {
            kind: String::new(),
            figures: vec![
                Figure::new("a, <b>|\"c\"", "us", vec![p99]).decides().scatter(Scatter::None),
                Figure::new("rate", "/s", vec![5.0]).more_is_better(),
            ],
        };
        compare(&side(100.0), &side(160.0), 0.05)
    }

    #[test]
    fn each_form_says_the_same() {
        insta::assert_snapshot!(markdown(&compared(), 0.05, 0.95, ("old", "new")), @r#"
        <!-- wearmark compare -->
        **Regression beyond 5%: a, <b>|"c"**

        `new` against `old`; medians, ratios with intervals of 95%.

        | figure | unit | old | new | new/old | verdict |
        |---|---|--:|--:|--:|---|
        | a, <b>\|"c" | us | 100 | 160 | 1.600 (1.600 to 1.600) | REGRESSED |
        | rate | /s | 5 | 5 | - | unproven: too few runs |
        "#);
        insta::assert_snapshot!(junit(&compared()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="wearmark compare" tests="2" failures="1" skipped="1">
        <testsuite name="wearmark compare" tests="2" failures="1" skipped="1">
        <testcase classname="wearmark" name="a, &lt;b&gt;|&quot;c&quot; (us)">
        <failure message="100 to 160, new/old 1.600 (1.600 to 1.600): REGRESSED"/>
        </testcase>
        <testcase classname="wearmark" name="rate (/s)">
        <skipped message="5 to 5, new/old -: unproven: too few runs"/>
        </testcase>
        </testsuite>
        </testsuites>
        "#);
        insta::assert_snapshot!(csv(&compared()), @r#"
        figure,unit,more_is_better,old,new,ratio,ratio_low,ratio_high,verdict
        "a, <b>|""c""",us,false,100,160,1.6,1.6,1.6,regressed
        rate,/s,true,5,5,,,,unproven
        "#);
    }
}
